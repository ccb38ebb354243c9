"""What we conclude: levels, findings, and the verdict that folds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad it is. UNKNOWN blocks a gate like FAIL: silence is never health."""

    PASS = 0
    WARN = 1
    UNKNOWN = 2
    FAIL = 3

    @property
    def blocks(self) -> bool:
        """Claims that a gate may not count this as passed."""
        return self >= Level.UNKNOWN

    @property
    def word(self) -> str:
        """The word in reports and JSON: pass, warn, unknown, fail."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing seen, and what to do about it.

    ``component`` is the part meant (``GPU3``, ``mlx5_2``), ``code`` a stable dotted name that
    `recover explain` knows (``gpu.ecc.uncorrectable``).
    """

    level: Level
    finding: str
    remedy: str = ""
    component: str = ""
    code: str = ""

    def __post_init__(self) -> None:
        if self.level is not Level.PASS and not self.remedy:
            raise ValueError(f"a {self.level.word} finding needs a remedy: {self.finding!r}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings of one question, worst first. No finding at all is UNKNOWN, never PASS."""

    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        """The worst level among the findings."""
        return max((f.level for f in self.findings), default=Level.UNKNOWN)

    @property
    def worst(self) -> Finding:
        """The finding to show when there is room for one."""
        return max(self.findings, key=lambda f: f.level, default=NOTHING_JUDGED)


NOTHING_JUDGED = Finding(
    Level.UNKNOWN, "nothing was judged", "look at the evidence of this step", code="nothing-judged"
)


def verdict(findings: Iterable[Finding], *, otherwise: str) -> Verdict:
    """Folds findings, worst first; with none, PASS with the words of ``otherwise``.

    Call it only when the facts really cover the question.
    """
    found = tuple(sorted(findings, key=lambda f: -f.level))
    return Verdict(found or (passed(otherwise),))


def single(finding: Finding) -> Verdict:
    """A verdict of one finding."""
    return Verdict((finding,))


def passed(finding: str, *, component: str = "", code: str = "") -> Finding:
    """It is as it should be."""
    return Finding(Level.PASS, finding, component=component, code=code)


def warned(finding: str, *, remedy: str, component: str = "", code: str = "") -> Finding:
    """Worth a look; does not hold a gate."""
    return Finding(Level.WARN, finding, remedy, component, code)


def unknown(finding: str, *, remedy: str, component: str = "", code: str = "") -> Finding:
    """We could not learn it: holds a gate as a failure does."""
    return Finding(Level.UNKNOWN, finding, remedy, component, code)


def failed(finding: str, *, remedy: str, component: str = "", code: str = "") -> Finding:
    """It is not as it must be."""
    return Finding(Level.FAIL, finding, remedy, component, code)
