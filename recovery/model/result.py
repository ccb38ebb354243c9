"""What a step learned, on one node and as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.model.output import Ending
from recovery.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Kept:
    """A piece of evidence: its name, the digest it is stored under, its size in bytes."""

    name: str
    digest: str
    size_bytes: int
    dropped_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """What one step learned on one node.

    ``values`` is what `parse`, `expect`, `agree` and `save` see (``stdout``, ``rc``, ``lines``,
    facts...); JSON-able and small: big texts are evidence. ``trouble`` is the `Output`'s.
    """

    node: str
    verdict: Verdict
    ending: Ending = Ending.FINISHED
    exit_status: int | None = None
    trouble: str = ""
    kept: tuple[Kept, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step learned: a result for every node it was given, and what it says as a whole.

    ``values`` feed `save` (``save: {step: last_complete}`` takes ``values["last_complete"]``).
    ``verdict`` is about the step, not a node (no checkpoint is complete); when it blocks, the
    gate shuts whatever the nodes say.
    """

    nodes: Mapping[str, NodeResult]
    values: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
