"""Did the training really resume: the before/after statistic and its verdict."""

from recovery.continuity.compare import compare
from recovery.continuity.curves import curves
from recovery.continuity.words import Continuity, Options, Strength

__all__ = ["Continuity", "Options", "Strength", "compare", "curves"]
