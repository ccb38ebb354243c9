"""The logs from before the outage, as `freeze` kept them: all ranks may log the same training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery.continuity.frozen import near_end
from recovery.errors import ParseError
from recovery.model.ports import World
from recovery.reading.training_points import Points, read_points

_NAME = "train.log"
_LARGEST = 4  # logs that are read to find the longest; equal ones count once


@dataclass(slots=True)
class Before:
    """Frozen logs by node, read when asked for and each once."""

    world: World
    digests: Mapping[str, tuple[str, int]]
    fmt: str
    regex: str
    known: dict[str, Points | None] = field(default_factory=dict)

    def raw(self, node: str) -> bytes:
        """The node's own frozen log; nothing where none was kept."""
        return self.world.kept(self.digests[node][0]) if node in self.digests else b""

    def points(self, node: str) -> Points | None:
        """What the node's own log says; None of no log, or one without a training line."""
        if node not in self.digests:
            return None
        digest = self.digests[node][0]
        if digest not in self.known:
            self.known[digest] = self.read(near_end(self.world.kept(digest)))
        return self.known[digest]

    def logs(self, node: str) -> bool:
        """Claims that this node logged training lines before."""
        return self.points(node) is not None

    def read(self, content: bytes) -> Points | None:
        """Reads a log; None of one without a training line."""
        text = content.decode("utf-8", "backslashreplace")
        try:
            return read_points(text, fmt=self.fmt, regex=self.regex)
        except ParseError:
            return None

    def longest(self, node: str) -> str | None:
        """The other node, quarantined ones included, whose log reaches furthest."""
        distinct = {d: (size, n) for n, (d, size) in self.digests.items() if n != node}
        largest = sorted(distinct.values(), reverse=True)[:_LARGEST]
        reach = {n: p.all[-1].iteration for _, n in largest if (p := self.points(n)) is not None}
        return max(reach, key=lambda n: reach[n], default=None)


def frozen_logs(world: World, *, fmt: str, regex: str) -> Before:
    """The training logs that this run froze."""
    found = {
        node: (kept.digest, kept.size_bytes)
        for node, result in world.results("freeze").items()
        for kept in result.kept
        if kept.name == _NAME
    }
    return Before(world, found, fmt, regex)
