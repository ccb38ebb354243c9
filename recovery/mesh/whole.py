"""All nodes at once; when only the full size fails, halves until the size that works is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recovery.mesh.ballots import Standing, standings
from recovery.mesh.leaves import failed_across
from recovery.mesh.words import Group, Level, Outcome, Result, State

COLLECTIVES = ("all_reduce", "alltoall")
_VOTES = 2  # a full-size test that failed is asked once more before anything is halved
_SMALLEST = 3  # two nodes were tested as pairs


@dataclass(frozen=True, slots=True)
class SizeFault:
    """A collective that fails on ``nodes`` together though each half of them passes."""

    collective: str
    nodes: tuple[str, ...]
    passes_at: int
    results: tuple[Result, ...]


def whole_groups(state: State) -> tuple[Group, ...]:
    """The groups of the next round with all nodes, or with halves of them."""
    if Level.ALL not in state.options.levels:
        return ()
    nodes = _nodes(state)
    if len(nodes) < _SMALLEST:
        return ()
    for collective in COLLECTIVES:
        groups = tuple(_open(state, nodes, collective))
        if groups:
            return groups
    return ()


def _nodes(state: State) -> tuple[str, ...]:
    """Every good node, those of one leaf next to each other, fixed by the first such test."""
    for result in _results(state):
        if set(result.group.nodes) <= {member.name for member in state.members}:
            return result.group.nodes
    where = standings(state)
    late = {name for name, _ in failed_across(state)}
    good = [m for m in state.members if where[m.name] is Standing.GOOD and m.name not in late]
    return tuple(m.name for m in sorted(good, key=lambda m: (m.leaf, m.name)))


def _results(state: State) -> list[Result]:
    return [r for p in state.history for r in p.results if r.group.level is Level.ALL]


def _about(state: State, nodes: tuple[str, ...], collective: str) -> list[Result]:
    return [
        result
        for result in _results(state)
        if (result.group.nodes, result.group.collective) == (nodes, collective)
    ]


def _open(state: State, nodes: tuple[str, ...], collective: str) -> Iterator[Group]:
    """The groups of this set that are still to be played: itself, or those inside its halves."""
    seen = _about(state, nodes, collective)
    failed = [result for result in seen if result.outcome.failed]
    if any(r.outcome is Outcome.PASS for r in seen) or len(seen) - len(failed) >= _VOTES:
        return
    if len(failed) < _VOTES:
        yield Group(Level.ALL, nodes, collective=collective)
    elif len(nodes) >= 2 * _SMALLEST:
        for half in halves(nodes):
            yield from _open(state, half, collective)


def halves(nodes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The two halves of a group, the first one larger where it is odd."""
    middle = (len(nodes) + 1) // 2
    return nodes[:middle], nodes[middle:]


def size_faults(state: State) -> tuple[SizeFault, ...]:
    """The smallest groups that fail as a whole while their halves pass or are too small to ask."""
    found: list[SizeFault] = []
    for collective in COLLECTIVES:
        found += _faults(state, _nodes(state), collective)
    return tuple(found)


def _faults(state: State, nodes: tuple[str, ...], collective: str) -> list[SizeFault]:
    seen = tuple(r for r in _about(state, nodes, collective) if r.outcome.failed)
    if len(seen) < _VOTES:
        return []
    parts = halves(nodes)
    inner = [fault for half in parts for fault in _faults(state, half, collective)]
    if inner:
        return inner
    passed = [half for half in parts if _passed(state, half, collective)]
    return [SizeFault(collective, nodes, max(map(len, passed), default=2), seen)]


def _passed(state: State, nodes: tuple[str, ...], collective: str) -> bool:
    return any(r.outcome is Outcome.PASS for r in _about(state, nodes, collective))


def ran_whole(state: State) -> bool:
    """Claims that the full size was tested and passed with every collective."""
    nodes = _nodes(state)
    return all(_passed(state, nodes, collective) for collective in COLLECTIVES)
