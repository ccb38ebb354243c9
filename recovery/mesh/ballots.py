"""Votes about one node (or one rail of it), counted from what was played.

Two passes clear; one does where the partner of its only failures is convicted. Three failures
convict, or more where three by chance are not rare enough among so many nodes (`Risk`). Six votes
without a decision are a tie, which is unknown.

A failure with a good partner is a vote. A failure of two nodes that were both in question is one
only once the other has been found good: until then either may be the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import comb

from recovery.mesh.folding import fold
from recovery.mesh.words import Level, Outcome, Played, Result, State

LEAST_FAILURES = 3
PASSES_TO_CLEAR = 2
MOST_VOTES = 6
TRIES = 3  # of a test that does not run
_RARE = 2.5e-4  # of meshes may convict somebody by chance
_RARE_EACH = 6.5e-5  # or so many for each node that is about to be convicted
_CHANCE = 0.01

Key = tuple[str, int | None]  # a node, and the rail where only that is in question


class Standing(StrEnum):
    """Where a node stands."""

    FRESH = "fresh"  # not tested yet
    GOOD = "good"
    SUSPECT = "suspect"
    WAITING = "waiting"  # passed since; its partner of the failed test is about to be convicted
    CONVICTED = "convicted"
    TIED = "tied"
    STUCK = "stuck"  # its tests do not run


@dataclass(slots=True)
class Ballot:
    """The votes about one node, as they come in."""

    passes: int = 0
    began_well: bool = False  # its first test with a good partner passed
    failures: int = 0  # with a partner that is known to be good
    shared: tuple[str, ...] = ()  # partners of failures that either may cause
    not_run: int = 0
    blocked: Result | None = None  # the test cannot run on this node, and why
    wrong: Result | None = None
    results: list[Result] = field(default_factory=list)
    beside: tuple[Result, ...] = ()  # of tests in which it was a witness

    @property
    def cleared(self) -> bool:
        """Claims two passes, and more passes than failures with good partners."""
        return self.passes >= PASSES_TO_CLEAR and self.passes > self.failures

    @property
    def suspected(self) -> bool:
        """Claims that something failed with this node in it."""
        return bool(self.failures or self.shared)

    @property
    def looks_good(self) -> bool:
        """Claims that a pass speaks for it and nothing of its own against it."""
        return self.passes > self.failures

    @property
    def explained(self) -> bool:
        """Claims a pass, and failures that all were shared: a partner that is bad explains them."""
        return self.passes > 0 and not self.failures and self.wrong is None

    @property
    def partners(self) -> set[str]:
        """Whom it was tested with, and the node itself: no pair is tested twice."""
        every = (*self.results, *self.beside)
        return {n for r in every if r.outcome is not Outcome.NOT_RUN for n in r.group.nodes}

    @property
    def met(self) -> set[str]:
        """Those, and whose test with it did not run: not met again while there are others."""
        return {name for r in (*self.results, *self.beside) for name in r.group.nodes}

    @property
    def votes(self) -> int:
        """Tests with known-good partners so far."""
        return self.passes + self.failures


@fold(Level.PAIRS, Level.SUSPECTS, Level.RAILS)
def pair_ballots(state: State) -> dict[Key, Ballot]:
    """Votes from tests of two nodes inside a leaf, by node, and of rails, by node and rail."""
    return {**_node_ballots(state), **_rail_ballots(state)}


@fold(Level.PAIRS, Level.SUSPECTS)
def _node_ballots(state: State) -> dict[Key, Ballot]:
    return _count(state.history, (Level.PAIRS, Level.SUSPECTS))


@fold(Level.RAILS)
def _rail_ballots(state: State) -> dict[Key, Ballot]:
    return _count(state.history, (Level.RAILS,))


@fold(Level.ALONE)
def alone_ballots(state: State) -> dict[Key, Ballot]:
    """Votes from tests of one node by itself."""
    return _count(state.history, (Level.ALONE,))


def _count(history: Iterable[Played], levels: tuple[Level, ...]) -> dict[Key, Ballot]:
    ballots: dict[Key, Ballot] = {}
    for played in history:
        for result in played.results:
            if result.group.level in levels:
                _cast(ballots, result)
    return ballots


def _cast(ballots: dict[Key, Ballot], result: Result) -> None:
    group = result.group
    for name in group.nodes:
        ballot = ballots.get((name, group.rail))
        if ballot is None:
            ballot = ballots[name, group.rail] = Ballot()
        if group.witness:
            ballot.beside = (*ballot.beside, result)
            continue
        ballot.results.append(result)
        if result.outcome is Outcome.PASS:
            ballot.began_well |= not ballot.passes and not ballot.failures
            ballot.passes += 1
        else:
            _vote(ballot, name, [other for other in group.nodes if other != name], result)


def _vote(ballot: Ballot, name: str, others: list[str], result: Result) -> None:
    in_question = not result.group.subject or result.group.subject == name
    if result.outcome is Outcome.NOT_RUN:
        if name in result.blamed:
            ballot.blocked = result
        ballot.not_run += 1
        return
    if not in_question:
        return
    if result.outcome is Outcome.WRONG:
        ballot.wrong = ballot.wrong or result
    if others and not result.group.subject:
        ballot.shared = (*ballot.shared, others[0])
    else:
        ballot.failures += 1


def failures_against(ballots: Mapping[Key, Ballot], key: Key) -> int:
    """Failures that count: with good partners, and shared ones whose other node proved good."""
    _, rail = key
    ballot = ballots[key]
    explained = (ballots.get((other, rail)) for other in ballot.shared)
    return ballot.failures + sum(1 for other in explained if other and other.looks_good)


@dataclass(frozen=True, slots=True)
class Risk:
    """How likely chance alone convicts somebody.

    ``in_question`` are the innocents whose first test fails by chance, ``noise`` is the share of
    tests that do. Both are estimated from this very mesh, from the first pairs that failed though
    both members passed the next test (one in a hundred before anything is seen); the noise more
    carefully, as it counts for every further vote. Later rounds change neither: who is convicted
    stays so.
    """

    in_question: float
    noise: float
    n_candidates: int

    def allows(self, against: int, passes: int) -> bool:
        """Claims that so many failures convict: at least three, two more than passes, and rare.

        Rare: chance produces such a ballot in less than one of 4,000 meshes, or one of 15,000 for
        each node that is about to be convicted.
        """
        if against < LEAST_FAILURES or against - passes < 2:
            return False
        orders = comb(against - 1 + passes, passes)
        innocent = self.in_question * orders * self.noise ** (against - 1)
        return innocent <= max(_RARE, _RARE_EACH * self.n_candidates)


@fold(Level.PAIRS, Level.SUSPECTS, Level.RAILS)
def _by_rail(state: State) -> dict[int | None, list[Ballot]]:
    found: dict[int | None, list[Ballot]] = {}
    for (_, rail), ballot in pair_ballots(state).items():
        found.setdefault(rail, []).append(ballot)
    return found


def risk_of(state: State, *, rail: int | None = None) -> Risk:
    """The risk of a wrong conviction in this mesh, by what was seen so far."""
    ballots, mine = pair_ballots(state), _by_rail(state).get(rail, [])
    n_first = sum(1 for b in mine if b.shared or (b.passes and not b.failures)) / 2
    chance = sum(
        1
        for ballot in mine
        if ballot.shared and ballot.began_well and _began_well(ballots, ballot.shared[0], rail)
    )
    in_question = len(state.members) * _share(chance / 2, n_first, weight=100)
    noise = _share(chance / 2, n_first, weight=500)
    candidates = sum(1 for b in mine if b.failures >= LEAST_FAILURES - 1 and not b.passes)
    return Risk(in_question, noise, candidates)


def _share(failed: float, tests: float, *, weight: float) -> float:
    """The share that fails, drawn towards one in a hundred as by so many tests."""
    return (failed + _CHANCE * weight) / (tests + weight)


def _began_well(ballots: Mapping[Key, Ballot], name: str, rail: int | None) -> bool:
    ballot = ballots.get((name, rail))
    return ballot is not None and ballot.began_well


def standing_of(ballots: Mapping[Key, Ballot], key: Key, risk: Risk) -> Standing:
    """Where the node (or its rail) stands by the votes so far."""
    ballot = ballots.get(key)
    if ballot is None:
        return Standing.FRESH
    if ballot.blocked is not None or (not ballot.votes and ballot.not_run >= TRIES):
        return Standing.STUCK
    if not ballot.suspected:
        return Standing.GOOD if ballot.passes else Standing.FRESH
    return _suspect_standing(ballots, key, risk)


def _convicted(ballots: Mapping[Key, Ballot], key: Key, risk: Risk) -> bool:
    return risk.allows(failures_against(ballots, key), ballots[key].passes)


def _is_failing(ballot: Ballot) -> bool:
    open_ = ballot.votes < MOST_VOTES and ballot.not_run < TRIES
    return open_ and ballot.failures > ballot.passes


def _suspect_standing(ballots: Mapping[Key, Ballot], key: Key, risk: Risk) -> Standing:
    ballot = ballots[key]
    if _convicted(ballots, key, risk):
        return Standing.CONVICTED
    if ballot.cleared:
        return Standing.GOOD if ballot.wrong is None else Standing.TIED
    if ballot.explained:
        partners = [(other, key[1]) for other in ballot.shared]
        if all(_convicted(ballots, partner, risk) for partner in partners):
            return Standing.GOOD
        if all(_is_failing(ballots[partner]) for partner in partners):
            return Standing.WAITING
    if ballot.votes >= MOST_VOTES:
        return Standing.TIED
    return Standing.STUCK if ballot.not_run >= TRIES else Standing.SUSPECT


@fold(Level.ALONE, Level.PAIRS, Level.SUSPECTS)
def standings(state: State) -> dict[str, Standing]:
    """Where each member stands by its pair tests; those that failed alone are convicted or tied."""
    alone = alone_standings(state)
    ballots = pair_ballots(state)
    risk = risk_of(state)
    found: dict[str, Standing] = {}
    for member in state.members:
        by_itself = alone[member.name]
        if by_itself is not Standing.GOOD:
            found[member.name] = by_itself
            continue
        found[member.name] = standing_of(ballots, (member.name, None), risk)
        if member.known_good and found[member.name] is Standing.FRESH:
            found[member.name] = Standing.GOOD
    return found


@fold(Level.ALONE)
def alone_standings(state: State) -> dict[str, Standing]:
    """Where each member stands by itself; GOOD for all where the level is not asked for."""
    if Level.ALONE not in state.options.levels:
        return {member.name: Standing.GOOD for member in state.members}
    ballots = alone_ballots(state)
    return {
        member.name: Standing.GOOD
        if member.known_good
        else _alone_standing(ballots.get((member.name, None)))
        for member in state.members
    }


_ONE_NODE = Risk(in_question=_CHANCE, noise=_CHANCE, n_candidates=1)


def _alone_standing(ballot: Ballot | None) -> Standing:
    if ballot is None:
        return Standing.FRESH
    if ballot.wrong is not None:
        return Standing.CONVICTED  # nobody else took part: wrong values need no second vote
    return standing_of({("", None): ballot}, ("", None), _ONE_NODE)
