"""Which nodes hang on one feed: waves that a breaker can carry, and who lost power together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from recovery.inventory import fold
from recovery.model.node import Node

SAME_S = 120.0
"""Losses so close are one event: the clocks of BMCs differ by a minute or so."""


def feed_of(node: Node, by: str) -> str:
    """What the node hangs on: its ``feed``, else its rack; nothing when neither is known."""
    feed = node.variables.get("feed") if by == "feed" else None
    return str(feed or node.rack or "")


def waves(nodes: tuple[Node, ...], by: str, most: int) -> tuple[tuple[Node, ...], ...]:
    """Nodes in waves: in each at most ``most`` of one feed; nodes of no known feed share one."""
    if by == "none":
        found = [nodes[start : start + most] for start in range(0, len(nodes), most)]
        return tuple(found)
    counts: dict[str, int] = {}
    cut: dict[int, list[Node]] = {}
    for node in nodes:
        feed = feed_of(node, by)
        wave = counts.get(feed, 0) // most
        counts[feed] = counts.get(feed, 0) + 1
        cut.setdefault(wave, []).append(node)
    return tuple(tuple(cut[number]) for number in sorted(cut))


def losses_told(nodes: Iterable[Node], lost_at: Mapping[str, str]) -> Iterator[str]:
    """Who lost power together, by feed and by rack, as the BMCs' clocks say."""
    every = tuple(nodes)
    ways: tuple[tuple[str, Callable[[Node], object]], ...] = (
        ("feed", lambda node: node.variables.get("feed")),
        ("rack", lambda node: node.rack),
    )
    for word, key in ways:
        groups: dict[str, list[str]] = {}
        for node in every:
            if key(node):
                groups.setdefault(str(key(node)), []).append(node.name)
        for name, members in groups.items():
            for lost in together({n: lost_at[n] for n in members if lost_at.get(n)}):
                yield _told(f"{word} {name}", lost, len(members), min(lost_at[n] for n in lost))


def _told(group: str, lost: tuple[str, ...], total: int, at: str) -> str:
    day, _, time = at.partition("T")
    when = f"at {time} ({day})" if time else f"at {at}"
    if len(lost) == total:
        return f"all of {group} lost AC {when}: {total} nodes"
    return f"{len(lost)} of {total} nodes of {group} lost AC {when}: {fold(lost)}"


def together(lost_at: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Two nodes and more that lost power within two minutes of the one before."""
    stamped = sorted((_seconds(at), name) for name, at in lost_at.items())
    group: list[str] = []
    before = 0.0
    for at, name in stamped:
        if group and at - before > SAME_S:
            yield from (tuple(group),) if len(group) > 1 else ()
            group = []
        group.append(name)
        before = at
    yield from (tuple(group),) if len(group) > 1 else ()


def _seconds(at: str) -> float:
    try:
        stamp = datetime.fromisoformat(at)
    except ValueError:
        return 0.0
    return stamp.timestamp()
