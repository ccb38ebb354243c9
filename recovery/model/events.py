"""What happened, one frozen type each. The journal is their sequence; nothing else is recorded.

Times are POSIX seconds of the controller's clock. Node names are tuples; people see them folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.model.result import NodeResult
from recovery.model.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a time."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began. ``plan`` is the plan as JSON-able values, enough to render reports."""

    run: str
    cluster: str
    runbook: str
    digest: str
    nodes: tuple[str, ...]
    seed: int
    version: str
    owner: str
    inputs: Mapping[str, Any] = field(default_factory=dict)  # what the plan was made from
    plan: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(Event):
    """A run that was interrupted or crashed goes on."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """Intent: written and flushed before anything of the attempt is done. Attempts count from 1."""

    step: str
    verb: str
    attempt: int
    nodes: tuple[str, ...]
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished(Event):
    """One node ended one attempt of one step."""

    step: str
    attempt: int
    result: NodeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """Progress inside a step, for people; ``facts`` for reports (a mesh test, a votes table)."""

    step: str
    message: str
    kind: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended(Event):
    """Intent of one side effect inside a step (a launch), flushed before it is done."""

    step: str
    what: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKept(Event):
    """A file kept as evidence or written as a report, beside those of node results."""

    step: str
    node: str
    name: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved(Event):
    """A value that later steps use."""

    step: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecided(Event):
    """Whether the run goes on: ``open``, ``open-without`` (some nodes), ``shut``."""

    step: str
    decision: str
    passed: int
    needed: int
    total: int
    without: tuple[str, ...] = ()
    undecided: int = 0  # of those not passed, how many gave no answer
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined(Event):
    """Nodes that leave the later steps, and why."""

    step: str
    nodes: tuple[str, ...]
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Event):
    """A step ended: ``done``, ``failed``, ``skipped`` (when said no), ``not-run`` (probe)."""

    step: str
    outcome: str
    verdict: Verdict | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Event):
    """A question to the operator; ``id`` is what `--approve ID` names."""

    step: str
    id: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Event):
    """The operator's answer and how it came (terminal, --yes, --approve, timeout)."""

    step: str
    id: str
    approved: bool
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    """The operator said stop, or the run's time was up."""

    step: str
    signal: str
    unfinished: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """The run ended: ``done``, ``shut``, ``undecided``, ``interrupted``, ``failed``."""

    outcome: str
    exit_code: int
    reason: str
    next_command: str = ""
