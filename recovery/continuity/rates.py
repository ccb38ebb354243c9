"""The learning rate: the same at every iteration logged twice, or on the slope where none is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from recovery.continuity.words import Case
from recovery.model.verdict import Finding, failed, passed, warned
from recovery.reading.training_point import Point

SAME = 2e-4
"""Relative difference of two rates that one format prints alike."""

_RECENT = 50
_SLOPE = 10
_FLAT = 8  # new points that all have one rate, where it used to change


def rate_findings(case: Case) -> Iterator[Finding]:
    """What is wrong with the learning rate; a uniform shift by one line is only noted."""
    pairs = [(o, n) for o, n in case.pairs if o.lr is not None and n.lr is not None]
    bad = [(o, n) for o, n in pairs if _differ(o.lr, n.lr)]
    if bad and _shifted(case, pairs):
        yield passed("the learning rate is that of before, one line apart", code="verify.lr.shift")
    elif bad:
        old, new = bad[0]
        yield failed(
            f"the learning rate at iteration {new.iteration} is {new.lr:g}, it was {old.lr:g}"
            + (f" (and at {len(bad) - 1} more)" if len(bad) > 1 else ""),
            remedy="stop the job: its scheduler was not restored, or its settings changed",
            code="verify.lr",
        )
    elif not pairs:
        yield from _on_the_slope(case)
    if not bad:
        yield from _stuck(case)


def n_rates(case: Case) -> int:
    """How many iterations have a rate both before and after."""
    return sum(1 for old, new in case.pairs if old.lr is not None and new.lr is not None)


def _differ(one: float | None, other: float | None) -> bool:
    a, b = one or 0.0, other or 0.0
    return not abs(a - b) <= SAME * max(abs(a), abs(b))


def _shifted(case: Case, pairs: Sequence[tuple[Point, Point]]) -> bool:
    """Some versions log the rate before the scheduler's step, some after it."""
    rates = [p.lr for p in case.before]
    place = {p.iteration: n for n, p in enumerate(case.before)}
    for shift in (-1, 1):
        moved = [
            (rates[at], new.lr)
            for old, new in pairs
            if 0 <= (at := place[old.iteration] + shift) < len(rates)
        ]
        if len(moved) >= 3 and not any(a is None or _differ(a, b) for a, b in moved):
            return True
    return False


def _changes(points: Sequence[Point]) -> list[float]:
    """Change of the rate an iteration, of the last points."""
    told = [(p.iteration, p.lr) for p in points if p.lr is not None][-_RECENT:]
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(told) if b[0] > a[0]]


def _on_the_slope(case: Case) -> Iterator[Finding]:
    changes = _changes(case.before)
    old = next((p for p in reversed(case.before) if p.lr is not None), None)
    new = next((p for p in case.after if p.lr is not None), None)
    if old is None or new is None or old.lr is None or new.lr is None or not changes:
        return
    apart = new.iteration - old.iteration
    expected = old.lr + median(changes[-_SLOPE:]) * apart
    allowed = 2.0 * max(map(abs, changes)) * max(abs(apart), 1) + SAME * abs(expected)
    if abs(new.lr - expected) > allowed:
        yield failed(
            f"the learning rate goes on with {new.lr:g} at iteration {new.iteration},"
            f" expected about {expected:.4g}",
            remedy="stop the job: its scheduler was not restored, or its settings changed",
            code="verify.lr",
        )


def _stuck(case: Case) -> Iterator[Finding]:
    """DeepSpeed issue 4344: right at first, and then it never changes."""
    rates = [p.lr for p in case.after if p.lr is not None]
    changes = _changes(case.before)[-len(rates) :] if rates else []
    if len(rates) < _FLAT or len(changes) < _FLAT or len(set(rates)) > 1:
        return
    span = case.after[-1].iteration - case.after[0].iteration
    if min(map(abs, changes)) * span > 5 * SAME * abs(rates[0]):
        yield warned(
            f"the learning rate stays {rates[0]:g} since the relaunch, it used to change",
            remedy="has the schedule reached its end? else the scheduler is not stepped",
            code="verify.lr.stuck",
        )
