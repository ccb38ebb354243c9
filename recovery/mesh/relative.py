"""Tests held against each other: one far behind those of its kind is slow, whatever the floor.

And a round held against itself: where pairs of good nodes are slow too, it convicts nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from recovery.mesh.words import Level, Outcome, Played, Result
from recovery.reading.nccl_size import rate_word

SIGMAS = 3.0  # below the median of its kind, in MAD-sigma
LEAST_SHARE = 0.9  # and at least a tenth below it: equal tests differ by a few percent
FEWEST = 3
HANG = "mesh.hang"

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
    judged = [_against(result, speeds.get(kind_of(result), []), share) for result in results]
    return unless_starved(judged)


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


def unless_starved(results: Sequence[Result]) -> list[Result]:
    """Results of a round; where its witnesses were slow as well, slow suspects are no votes.

    Most witnesses must be slow: one may be by chance. Where nobody was free to be one, a round is
    starved in which every suspect failed: one node of a failed pair is good nearly always.
    """
    ran = [r for r in results if r.outcome is not Outcome.NOT_RUN]
    witnesses = [r for r in ran if r.group.witness]
    peers = witnesses or [r for r in ran if r.group.level is Level.SUSPECTS]
    slow = sum(1 for r in peers if _is_slow(r))
    starved = 2 * slow > len(peers) if witnesses else slow == len(peers) > 1
    if not starved:
        return list(results)
    whose = "pairs of good nodes" if witnesses else "tests of this round, of suspects all,"
    words = f"{slow} of {len(peers)} {whose} were slow at the same time"
    return [_no_vote(r, words) if _is_slow(r) else r for r in results]


def _is_slow(result: Result) -> bool:
    return result.outcome is Outcome.SLOW or (
        result.outcome is Outcome.BROKEN and result.code == HANG
    )


def _no_vote(result: Result, words: str) -> Result:
    if result.group.level is not Level.SUSPECTS:
        return result
    return replace(
        result,
        outcome=Outcome.NOT_RUN,
        finding=f"{result.finding or 'slow'}, but {words}: no vote",
        remedy="something else loads the nodes or the network: end it, and run the mesh again",
        code="mesh.starved",
    )
