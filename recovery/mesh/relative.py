"""Tests held against each other: one far behind those of its kind is slow, whatever the floor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from recovery.mesh.words import Outcome, Played, Result
from recovery.reading.nccl_size import rate_word

SIGMAS = 3.0  # below the median of its kind, in MAD-sigma
LEAST_SHARE = 0.9  # and at least a tenth below it: equal tests differ by a few percent
FEWEST = 3

Kind = tuple[int, bool, str]  # nodes in the test, whether it is of one rail, its collective


def kind_of(result: Result) -> Kind:
    """What a test is compared with: tests of as many nodes, of the same collective and width."""
    group = result.group
    return len(group.nodes), group.rail is not None, group.collective


def held_against(
    results: Sequence[Result], before: Iterable[Played], share: float = LEAST_SHARE
) -> list[Result]:
    """Results with those marked slow that fall far behind others of their kind.

    Far is below ``share`` of their median, and 3 MAD-sigma.

    Tests of earlier rounds count too: a round of two suspects has no median of its own.
    """
    speeds: dict[Kind, list[float]] = {}
    earlier = (result for played in before for result in played.results)
    for result in (*earlier, *results):
        if result.outcome is Outcome.PASS and result.busbw_gb_per_s is not None:
            speeds.setdefault(kind_of(result), []).append(result.busbw_gb_per_s)
    return [_against(result, speeds.get(kind_of(result), []), share) for result in results]


def _against(result: Result, speeds: Sequence[float], share: float) -> Result:
    speed = result.busbw_gb_per_s
    if len(speeds) < FEWEST or result.outcome is not Outcome.PASS or speed is None:
        return result
    middle = median(speeds)
    sigma = 1.4826 * median(abs(one - middle) for one in speeds)
    if speed >= min(middle * share, middle - SIGMAS * sigma):
        return result
    words = f"{rate_word(speed)}, the median of such tests is {rate_word(middle)}"
    return replace(result, outcome=Outcome.SLOW, finding=words, code="mesh.slow")
