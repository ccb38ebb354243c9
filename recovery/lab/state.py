"""What the lab remembers of one node: power, boots, faults. A frozen value, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that the kernel log or the BMC's event log tells later; ``at`` in POSIX seconds."""

    at: float
    what: str  # boot | ac-lost | ac-back | the name of a fault


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node: who it is, whether it has power, since when it is up, and what is broken on it."""

    name: str
    index: int
    leaf: str
    port: int
    power: bool = True
    boot_id: str = ""
    booted_at: float = 0.0
    faults: Mapping[str, str] = field(default_factory=dict)
    happenings: tuple[Happening, ...] = ()

    def to_json(self) -> str:
        """The state as one JSON document."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)


def from_json(text: str) -> NodeState:
    """The state again, as `NodeState.to_json` wrote it."""
    raw = json.loads(text)
    raw["happenings"] = tuple(Happening(**h) for h in raw["happenings"])
    return NodeState(**raw)
