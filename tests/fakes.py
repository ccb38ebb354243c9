"""Hand-written fakes of the ports; nothing here mocks our own code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recovery.model.bmc import BmcAsk
from recovery.model.kind import Kept, NodeResult
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.runbook import Place, Step
from recovery.model.verdict import Finding
from recovery.registry import pick


def finished(stdout: str | bytes = "", *, status: int = 0, stderr: str = "") -> Output:
    """An output that ended by itself."""
    raw = stdout if isinstance(stdout, bytes) else stdout.encode()
    return Output(Ending.FINISHED, exit_status=status, stdout=raw, stderr=stderr.encode())


def a_step(verb: str = "run", **changes: Any) -> Step:
    """A plain step for tests."""
    values: dict[str, Any] = {"id": f"{verb}-1", "verb": verb, "fields": {"argument": "true"}}
    return Step(**{**values, "place": Place("test.yaml", 1, 1), **changes})


@dataclass
class FakeClock:
    """Time that moves only when somebody sleeps."""

    at: float = 1_700_000_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


Answer = Callable[[Node, Command], Output]


@dataclass
class FakeTransport:
    """Answers by a function, and remembers what was asked."""

    answer: Answer = lambda node, command: finished()
    asked: list[tuple[str, str]] = field(default_factory=list)
    name: str = "fake"

    def run(self, node: Node, command: Command) -> Output:
        self.asked.append((node.name, command.line))
        return self.answer(node, command)

    def stop(self, grace_s: float) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class FakeWorld:
    """The world of one verb: one fake transport, evidence in a dict, notes in a list."""

    transport: FakeTransport = field(default_factory=FakeTransport)
    run_id: str = "run-1"
    cluster: str = "test"
    seed: int = 1
    step: Step = field(default_factory=a_step)
    variables: Mapping[str, Any] = field(default_factory=dict)
    inventory_nodes: Mapping[str, Node] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)
    profiles: Mapping[str, Any] = field(default_factory=dict)
    earlier: dict[str, Mapping[str, NodeResult]] = field(default_factory=dict)
    earlier_values: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    evidence: dict[str, bytes] = field(default_factory=dict)
    notes: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    intents: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    bmcs: Callable[[Node, BmcAsk], Output | None] = lambda node, question: None
    holds: dict[str, Finding] = field(default_factory=dict)
    aside: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)
    said_of_drain: str = ""
    answers: list[tuple[bool | None, str]] = field(default_factory=list)
    reports: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, node: Node, command: Command) -> Output:
        return self.transport.run(node, command)

    def bmc(self, node: Node, question: BmcAsk) -> Output | None:
        return self.bmcs(node, question)

    def fan_out(
        self, nodes: Iterable[Node], work: Callable[[Node], NodeResult]
    ) -> dict[str, NodeResult]:
        return {node.name: work(node) for node in nodes}

    def each(
        self, items: Iterable[Any], work: Callable[[Any], Any], *, at_least: int = 1
    ) -> list[Any]:
        return [work(item) for item in items]

    def keep(self, name: str, content: bytes) -> Kept:
        digest = hashlib.sha256(content).hexdigest()
        self.evidence[digest] = content
        return Kept(name, digest, len(content))

    def kept(self, digest: str) -> bytes:
        return self.evidence[digest]

    def note(self, message: str, *, kind: str = "", facts: Mapping[str, Any] | None = None) -> None:
        self.notes.append((kind, message, facts or {}))

    def intend(self, what: str, facts: Mapping[str, Any]) -> None:
        self.intents.append((what, facts))

    def intentions(self, what: str) -> tuple[Mapping[str, Any], ...]:
        return tuple(facts for name, facts in self.intents if name == what)

    def spent(self, node: Node) -> Finding | None:
        return self.holds.get(node.name)

    def set_aside(self, nodes: tuple[Node, ...], reason: str, remedy: str) -> str:
        self.aside.append((tuple(node.name for node in nodes), reason, remedy))
        return self.said_of_drain

    def results(self, verb: str) -> Mapping[str, NodeResult]:
        return self.earlier.get(verb, {})

    def values(self, verb: str) -> Mapping[str, Any]:
        return self.earlier_values.get(verb, {})

    def profile(self, node: Node) -> Mapping[str, Any]:
        return {**self.profiles, **node.variables}

    def check(self, name: str) -> Any:
        from recovery.model.check import Check

        return pick("recovery.checks", Check, name)

    def launcher(self, name: str) -> Any:
        from recovery.model.ports import Launcher

        return pick("recovery.launchers", Launcher, name)

    def payload(self, name: str) -> str:
        return (Path(__file__).parents[1] / "recovery" / "payloads" / name).read_text()

    def local_file(self, path: str) -> bytes:
        return self.files[path]

    def ask(self, question: str, timeout_s: float) -> tuple[bool | None, str]:
        return self.answers.pop(0)

    def report(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        self.reports.append(formats)
        return tuple(f"report.{f}" for f in formats)

    def playbook(
        self, playbook: str, nodes: tuple[Node, ...], options: Mapping[str, Any]
    ) -> dict[str, NodeResult]:
        raise NotImplementedError("give the test a world of its own for playbooks")
