"""`verify`: did the training really go on, by its log from before the outage and since."""

from recovery.steps.verify.verb import VERIFY

__all__ = ["VERIFY"]
