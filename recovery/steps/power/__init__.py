"""`power`: switch nodes by their BMCs, in waves, with the evidence saved first."""

from recovery.steps.power.params import PowerParams
from recovery.steps.power.verb import POWER

__all__ = ["POWER", "PowerParams"]
