"""Which leaf (or its uplinks) is bad: a tournament of leaves, then six confirming rounds.

Nodes of one leaf look the same from the fabric, so covering every pair of leaves takes as many
rounds as there are leaves, not as many as there are nodes; every node works in each of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import NamedTuple

from recovery.mesh.ballots import Standing, standings
from recovery.mesh.folding import fold
from recovery.mesh.order import shuffled
from recovery.mesh.words import Group, Level, Outcome, Played, Result, State

CANDIDATE_Z = 3.0
NAMED_Z = 5.0
CONFIRM_ROUNDS = 6
_FEWEST_CONFIRMS = 2
_CHANCE = 0.01  # a test fails by chance this often at least
_NODE_FAILURES = 4  # across leaves, with as many partners, to convict a node that pairs missed


@dataclass(frozen=True, slots=True)
class LeafScore:
    """Tests of a leaf with other leaves: failed, all, and how far that is above the usual."""

    leaf: str
    failed: int
    tests: int
    z: float


@dataclass(frozen=True, slots=True)
class LeafFinding:
    """A leaf that is bad, or two of which one is (``leaves`` has both)."""

    leaves: tuple[str, ...]
    score: LeafScore


@dataclass(frozen=True, slots=True)
class _Played:
    sweep: tuple[Played, ...]
    confirm: tuple[Played, ...]


def _rounds(state: State) -> _Played:
    mine = [played for played in state.history if played.round.stage == "leaves"]
    first = _sweep_rounds(state)
    return _Played(tuple(mine[:first]), tuple(mine[first:]))


def _sweep_rounds(state: State) -> int:
    n_leaves = len({member.leaf for member in state.members})
    return state.options.leaf_rounds or (12 if n_leaves <= 8 else 8)


def leaf_groups(state: State) -> tuple[Group, ...]:
    """The groups of the next round across leaves; none when that is answered or not asked."""
    if Level.LEAVES not in state.options.levels:
        return ()
    leaves = _good_by_leaf(state)
    if len(leaves) < 2:
        return ()
    played = _rounds(state)
    if len(played.sweep) < _sweep_rounds(state) and not played.confirm:
        groups = _sweep(leaves, len(played.sweep) + 1, _met(state))
        if groups:
            return tuple(groups)
    return tuple(_confirm(state, leaves))


@fold(Level.ALONE, Level.PAIRS, Level.SUSPECTS, Level.LEAVES)
def _good_by_leaf(state: State) -> dict[str, list[str]]:
    where = standings(state)
    late = {name for name, _ in failed_across(state)}
    found: dict[str, list[str]] = defaultdict(list)
    leaf_of = {member.name: member.leaf for member in state.members}
    good = (name for name, standing in where.items() if standing is Standing.GOOD)
    for name in shuffled(good, state.options.seed, "leaves"):
        if name not in late:
            found[leaf_of[name]].append(name)
    order = shuffled(found, state.options.seed, "leaf order")
    return {leaf: found[leaf] for leaf in order}


@fold(Level.PAIRS, Level.SUSPECTS, Level.LEAVES)
def _met(state: State) -> set[frozenset[str]]:
    return {
        group.pair
        for played in state.history
        for group in played.round.groups
        if group.level in (Level.PAIRS, Level.SUSPECTS, Level.LEAVES)
    }


def _sweep(leaves: Mapping[str, list[str]], r: int, met: set[frozenset[str]]) -> list[Group]:
    names = list(leaves)
    groups: list[Group] = []
    for first, second in _circle(len(names), r):
        groups += _across(leaves[names[first]], leaves[names[second]], r, met)
    return groups


def _circle(n: int, r: int) -> list[tuple[int, int]]:
    """Round ``r`` of the circle method: i meets (r - i) mod n; the two that would sit out meet."""
    pairs = [(i, (r - i) % n) for i in range(n) if i < (r - i) % n]
    idle = [i for i in range(n) if (r - i) % n == i]
    return [*pairs, (idle[0], idle[1])] if len(idle) == 2 else pairs


def _across(
    first: Sequence[str], second: Sequence[str], shift: int, met: set[frozenset[str]]
) -> list[Group]:
    """Node a of one leaf with node a + shift of the other, the next free one if they have met."""
    if len(first) > len(second):
        first, second = second, first
    groups, used = [], set[int]()
    n = len(second)
    for a, name in enumerate(first):
        steps = ((a + shift + step) % n for step in range(n))
        at = next((i for i in steps if i not in used and {name, second[i]} not in met), None)
        if at is not None:
            used.add(at)
            groups.append(Group(Level.LEAVES, (name, second[at])))
    return groups


def _confirm(state: State, leaves: Mapping[str, list[str]]) -> list[Group]:
    played = _rounds(state)
    if len(played.confirm) >= CONFIRM_ROUNDS:
        return []
    candidates = _candidates(state)
    decided = {leaf for finding in bad_leaves(state) for leaf in finding.leaves}
    undecided = [leaf for leaf in candidates if leaf not in decided]
    clean = [leaf for leaf in leaves if leaf not in candidates]
    groups: list[Group] = []
    turn = len(played.confirm) * max(1, len(undecided))
    for k, leaf in enumerate(undecided[: len(clean)]):
        against = clean[(turn + k) % len(clean)]
        groups += _across(leaves.get(leaf, []), leaves[against], turn + k, _met(state))
    return groups


@fold(Level.LEAVES)
def _candidates(state: State) -> list[str]:
    """Leaves that stand out after the sweep, in the order of their score."""
    scores = _iterated(_tests(state, _rounds(state).sweep), CANDIDATE_Z)
    return [score.leaf for score in scores]


class _Test(NamedTuple):
    leaves: tuple[str, str]
    failed: bool


def _tests(state: State, rounds: Iterable[Played]) -> list[_Test]:
    leaf_of = {member.name: member.leaf for member in state.members}
    late = {name for name, _ in failed_across(state)}
    found = []
    for played in rounds:
        for result in played.results:
            one, two = result.group.nodes
            if result.outcome is not Outcome.NOT_RUN and not {one, two} & late:
                found.append(_Test((leaf_of[one], leaf_of[two]), result.outcome.failed))
    return found


def _scores(tests: Sequence[_Test]) -> list[LeafScore]:
    """Scores of all leaves against the median leaf, worst first."""
    total = Counter(leaf for test in tests for leaf in test.leaves)
    failed = Counter(leaf for test in tests if test.failed for leaf in test.leaves)
    usual = median(failed[leaf] / total[leaf] for leaf in total) if total else 0.0
    rate = max(usual, _CHANCE)
    scores = [
        LeafScore(
            leaf, failed[leaf], n, (failed[leaf] - n * rate) / sqrt(max(n * rate * (1 - rate), 0.5))
        )
        for leaf, n in total.items()
    ]
    return sorted(scores, key=lambda score: (-score.z, score.leaf))


def _iterated(tests: list[_Test], least_z: float) -> list[LeafScore]:
    """Leaves above a score, each taken out before the next is scored: guilt does not spread."""
    found: list[LeafScore] = []
    while tests:
        worst = _scores(tests)[0]
        if worst.z <= least_z:
            break
        found.append(worst)
        tests = [test for test in tests if worst.leaf not in test.leaves]
    return found


@fold(Level.LEAVES)
def bad_leaves(state: State) -> tuple[LeafFinding, ...]:
    """The leaves that stand out after the sweep and again, far, with the confirming rounds.

    With two leaves nothing tells which of them (or the way between) is bad: both are named.
    """
    played = _rounds(state)
    if len({member.leaf for member in state.members}) == 2:
        return _one_of_two(state, played)
    if len(played.confirm) < _FEWEST_CONFIRMS:
        return ()
    candidates = set(_candidates(state))
    confirmed = {score.leaf for score in _scores(_tests(state, played.confirm)) if score.failed > 1}
    whole = _iterated(_tests(state, (*played.sweep, *played.confirm)), NAMED_Z)
    named = [score for score in whole if score.leaf in candidates & confirmed]
    return tuple(LeafFinding((score.leaf,), score) for score in named)


def _one_of_two(state: State, played: _Played) -> tuple[LeafFinding, ...]:
    tests = _tests(state, (*played.sweep, *played.confirm))
    failed, n = sum(test.failed for test in tests), len(tests)
    if not n:
        return ()
    z = (failed - n * _CHANCE) / sqrt(max(n * _CHANCE, 0.5))
    if z <= NAMED_Z or failed < 4:
        return ()
    both = tuple(sorted({member.leaf for member in state.members}))
    return (LeafFinding(both, LeafScore("+".join(both), failed, n, z)),)


@fold(Level.LEAVES)
def failed_across(state: State) -> tuple[tuple[str, tuple[Result, ...]], ...]:
    """Nodes that failed most of their tests with other leaves, whatever the leaf: bad themselves.

    A node whose whole leaf fails as much is not among them.
    """
    tests: dict[str, list[Result]] = defaultdict(list)
    for played in state.history:
        if played.round.stage == "leaves":
            for result in played.results:
                if result.outcome is not Outcome.NOT_RUN:
                    for name in result.group.nodes:
                        tests[name].append(result)
    rate = _leaf_rates(state, tests)
    found = []
    for member in state.members:
        mine = tests.get(member.name, [])
        bad = tuple(result for result in mine if result.outcome.failed)
        if len(bad) >= _NODE_FAILURES and len(bad) > 0.7 * len(mine) and rate[member.leaf] < 0.5:
            found.append((member.name, bad))
    return tuple(found)


def _leaf_rates(state: State, tests: Mapping[str, Sequence[Result]]) -> dict[str, float]:
    """The median node's share of failures in each leaf."""
    shares: dict[str, list[float]] = defaultdict(list)
    for member in state.members:
        mine = tests.get(member.name, ())
        if mine:
            shares[member.leaf].append(sum(r.outcome.failed for r in mine) / len(mine))
        else:
            shares.setdefault(member.leaf, [])
    return {leaf: median(values) if values else 0.0 for leaf, values in shares.items()}
