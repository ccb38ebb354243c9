"""The words of a resume's verdict: what is asked, what is concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from recovery.continuity.band import WINDOW
from recovery.model.verdict import Verdict
from recovery.reading.training_point import Point
from recovery.reading.training_points import Points


class Strength(StrEnum):
    """How much a verdict rests on. What is WEAK or NONE is not verified, whatever it says."""

    STRONG = "strong"  # 16 iterations or more, logged twice, of the same data
    MODERATE = "moderate"  # 8 or more logged twice
    WEAK = "weak"  # fewer: trend and noise alone
    NONE = "none"  # nothing to compare with


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``same_data`` is false where the data loader is known not to go on where it was.

    ``window`` is how many points from before the crash make the band.
    """

    same_data: bool = True
    window: int = WINDOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """What two logs say of a resume.

    ``overlap`` counts iterations whose loss both logged. ``diagnosis`` names the likely cause of
    a difference, ``""`` if there is none. ``statistics`` are JSON-able.
    """

    verdict: Verdict
    strength: Strength
    diagnosis: str = ""
    overlap: int = 0
    first_iteration: int | None = None
    last_iteration: int | None = None
    statistics: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def verified(self) -> bool:
        """Claims that the training really went on: nothing blocks, and it rests on enough."""
        enough = self.strength in (Strength.STRONG, Strength.MODERATE)
        return enough and not self.verdict.level.blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two logs made ready: iterations before, iterations since, the checkpoint between them."""

    before: Sequence[Point]
    after: Sequence[Point]
    logged: Points
    step: int | None
    interval: int

    @property
    def pairs(self) -> list[tuple[Point, Point]]:
        """The same iteration before and after."""
        old = {point.iteration: point for point in self.before}
        return [(old[p.iteration], p) for p in self.after if p.iteration in old]

    @property
    def go_back(self) -> str:
        """What to do when the training did not go on as it was."""
        before = f"the one before {self.step}" if self.step is not None else "the one before"
        return f"stop the job, keep both logs, resume from a checkpoint older by one: {before}"
