"""A verb of the runbook language: one file on the shelf ``recovery/steps``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recovery.model.output import Ending
from recovery.model.runbook import Effect, Rerun
from recovery.model.verdict import Verdict

if TYPE_CHECKING:
    from pydantic import BaseModel

    from recovery.model.node import Node
    from recovery.model.ports import World

Params = TypeVar("Params", bound="BaseModel")


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


def _no_commands(params: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb(Generic[Params]):
    """One verb.

    ``params`` is a frozen pydantic model with ``extra="forbid"``: its field ``argument`` is the
    value of the verb key (`mesh: all_reduce`), its other fields are keys that this verb adds to a
    step (`size: 8G`). ``describe`` says in one line what the step will do, ``commands`` the exact
    lines that it runs on a node. ``run`` must return a result for every node it is given and must
    not raise for what goes wrong on a node. ``on_nodes`` is false for verbs that run on the
    controller alone (approve, report): they are given the one node `CONTROLLER`.
    """

    name: str
    about: str
    effect: Effect
    params: type[Params]
    describe: Callable[[Params], str]
    run: Callable[[Params, tuple[Node, ...], World], StepResult]
    commands: Callable[[Params], tuple[str, ...]] = _no_commands
    on_nodes: bool = True
    rerun: Rerun = Rerun.SAFE
    timeout_s: float = 60.0
