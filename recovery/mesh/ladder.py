"""The ladder: which groups test together next, until every node, leaf and rail is decided.

A pure state machine. `next_round` looks only at what was played, so a mesh can be replayed from
its kept results, judged again by newer rules, and continued after an interruption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recovery.errors import InputError
from recovery.mesh.leaves import leaf_groups
from recovery.mesh.pairing import node_groups
from recovery.mesh.rails import rail_groups
from recovery.mesh.whole import whole_groups
from recovery.mesh.words import Group, Level, Member, Options, Played, Result, Round, State

_STAGES = (
    ("nodes", node_groups),
    ("leaves", leaf_groups),
    ("rails", rail_groups),
    ("all", whole_groups),
)


def start(members: Iterable[Member], options: Options) -> State:
    """A mesh in which nothing was played yet.

    Raises:
        InputError: a node named twice.
    """
    state = State((), options)
    return join(state, members)


def join(state: State, members: Iterable[Member]) -> State:
    """The mesh with nodes that came late; they are tested from the next round on.

    Raises:
        InputError: a node that is already in it.
    """
    known = {member.name for member in state.members}
    new = tuple(members)
    for member in new:
        if member.name in known:
            raise InputError(
                f"node {member.name!r} is in the mesh twice", remedy="name each node once"
            )
        known.add(member.name)
    return State((*state.members, *new), state.options, state.history)


def next_round(state: State) -> Round | None:
    """The groups to run at the same time now; None when the ladder has answered."""
    number = len(state.history) + 1
    for stage, groups_of in _STAGES:
        groups = groups_of(state)
        if groups:
            return Round(number, _name(stage, groups, state), tuple(groups))
    return None


def _name(stage: str, groups: Sequence[Group], state: State) -> str:
    if stage != "nodes":
        return stage
    kinds = {group.level for group in groups}
    seen = {g.level for played in state.history for g in played.round.groups}
    if Level.SUSPECTS in kinds:
        return "suspects"
    if Level.PAIRS in kinds:
        return "remix" if Level.PAIRS in seen and not any(g.subject for g in groups) else "pairs"
    return "alone"


def record(state: State, played: Round, results: Iterable[Result]) -> State:
    """The state after a round.

    Raises:
        InputError: a group of the round without a result, or a result of another group.
    """
    by_group = {result.group: result for result in results}
    if set(by_group) != set(played.groups):
        raise InputError(
            f"round {played.number} has {len(played.groups)} groups, results are of others",
            remedy="record one result for each group of the round",
        )
    return state.after(Played(played, tuple(by_group[group] for group in played.groups)))
