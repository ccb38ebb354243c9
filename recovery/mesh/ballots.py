"""Votes about one node (or one rail of it), counted from what was played.

Two passes clear. Three failures convict, or more where three by chance are not rare enough among
so many nodes (`Risk`). Six votes without a decision are a tie, which is unknown.

A failure with a good partner is a vote. A failure of two nodes that were both in question is one
only once the other has been found good: until then either may be the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import comb

from recovery.mesh.words import Level, Outcome, Played, Result, State

LEAST_FAILURES = 3
PASSES_TO_CLEAR = 2
MOST_VOTES = 6
TRIES = 3  # of a test that does not run
_RARE = 6.5e-5
_CHANCE = 0.01

Key = tuple[str, int | None]  # a node, and the rail where only that is in question


class Standing(StrEnum):
    """Where a node stands."""

    FRESH = "fresh"  # not tested yet
    GOOD = "good"
    SUSPECT = "suspect"
    CONVICTED = "convicted"
    TIED = "tied"
    STUCK = "stuck"  # its tests do not run


@dataclass(slots=True)
class Ballot:
    """The votes about one node, as they come in."""

    passes: int = 0
    failures: int = 0  # with a partner that is known to be good
    shared: list[str] = field(default_factory=list)  # partners of failures that either may cause
    partners: set[str] = field(default_factory=set)
    not_run: int = 0
    blocked: Result | None = None  # the test cannot run on this node, and why
    wrong: Result | None = None
    results: list[Result] = field(default_factory=list)

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
    def votes(self) -> int:
        """Tests with known-good partners so far."""
        return self.passes + self.failures


def pair_ballots(history: Iterable[Played]) -> dict[Key, Ballot]:
    """Votes from tests of two nodes inside a leaf, by node, and of rails, by node and rail."""
    wanted = (Level.PAIRS, Level.SUSPECTS, Level.RAILS)
    return _count(history, wanted)


def alone_ballots(history: Iterable[Played]) -> dict[Key, Ballot]:
    """Votes from tests of one node by itself."""
    return _count(history, (Level.ALONE,))


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
        ballot = ballots.setdefault((name, group.rail), Ballot())
        ballot.results.append(result)
        others = [other for other in group.nodes if other != name]
        ballot.partners.update(others)
        _vote(ballot, name, others, result)


def _vote(ballot: Ballot, name: str, others: list[str], result: Result) -> None:
    in_question = not result.group.subject or result.group.subject == name
    if result.outcome is Outcome.NOT_RUN:
        if name in result.blamed:
            ballot.blocked = result
        ballot.not_run += 1
        return
    if result.outcome is Outcome.PASS:
        ballot.passes += 1
        return
    if not in_question:
        return
    if result.outcome is Outcome.WRONG:
        ballot.wrong = ballot.wrong or result
    if others and not result.group.subject:
        ballot.shared.append(others[0])
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

    ``noise`` is the share of tests that fail by chance, estimated from this very mesh: first pairs
    that failed though both members were cleared (one in a hundred before anything is seen).
    """

    n_nodes: int
    noise: float
    n_candidates: int

    def allows(self, against: int, passes: int) -> bool:
        """Claims that so many failures convict: at least three, two more than passes, and rare.

        Rare: among all nodes, chance produces such a ballot in less than one of 15,000 meshes for
        each node that is about to be convicted.
        """
        if against < LEAST_FAILURES or against - passes < 2:
            return False
        orders = comb(against - 1 + passes, passes)
        innocent = self.n_nodes * orders * self.noise**against
        return innocent <= _RARE * max(1, self.n_candidates)


def risk_of(ballots: Mapping[Key, Ballot], n_nodes: int, *, rail: int | None = None) -> Risk:
    """The risk of a wrong conviction in this mesh, by what was seen so far."""
    mine = [ballot for (_, which), ballot in ballots.items() if which == rail]
    n_first = sum(1 for b in mine if b.shared or (b.passes and not b.failures)) / 2
    chance = sum(
        1
        for ballot in mine
        if ballot.cleared and ballot.shared and _cleared(ballots, ballot.shared[0], rail)
    )
    noise = (chance / 2 + 1) / (n_first + 100)
    candidates = sum(1 for b in mine if b.failures >= LEAST_FAILURES - 1 and not b.passes)
    return Risk(n_nodes, noise, candidates)


def _cleared(ballots: Mapping[Key, Ballot], name: str, rail: int | None) -> bool:
    ballot = ballots.get((name, rail))
    return ballot is not None and ballot.cleared


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


def _suspect_standing(ballots: Mapping[Key, Ballot], key: Key, risk: Risk) -> Standing:
    ballot = ballots[key]
    against = failures_against(ballots, key)
    if risk.allows(against, ballot.passes):
        return Standing.CONVICTED
    if ballot.cleared:
        return Standing.GOOD if ballot.wrong is None else Standing.TIED
    if ballot.votes >= MOST_VOTES:
        return Standing.TIED
    return Standing.STUCK if ballot.not_run >= TRIES else Standing.SUSPECT


def standings(state: State) -> dict[str, Standing]:
    """Where each member stands by its pair tests; those that failed alone are convicted or tied."""
    alone = alone_standings(state)
    ballots = pair_ballots(state.history)
    risk = risk_of(ballots, len(state.members))
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


def alone_standings(state: State) -> dict[str, Standing]:
    """Where each member stands by itself; GOOD for all where the level is not asked for."""
    if Level.ALONE not in state.options.levels:
        return {member.name: Standing.GOOD for member in state.members}
    ballots = alone_ballots(state.history)
    return {
        member.name: Standing.GOOD
        if member.known_good
        else _alone_standing(ballots.get((member.name, None)))
        for member in state.members
    }


_ONE_NODE = Risk(n_nodes=1, noise=_CHANCE, n_candidates=1)


def _alone_standing(ballot: Ballot | None) -> Standing:
    if ballot is None:
        return Standing.FRESH
    if ballot.wrong is not None:
        return Standing.CONVICTED  # nobody else took part: wrong values need no second vote
    return standing_of({("", None): ballot}, ("", None), _ONE_NODE)
