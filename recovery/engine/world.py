"""The world that a verb is given: the ports, bound to one step of one run."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from recovery.engine.fanout import fan_out
from recovery.engine.history import RunStory, StepStory
from recovery.engine.lost import with_cause
from recovery.engine.outcome import silent_result
from recovery.engine.parts import Parts
from recovery.engine.secrecy import strike_out, strike_out_bytes
from recovery.engine.transporting import Transports
from recovery.errors import InterruptedRunError
from recovery.model.bmc import BmcAsk
from recovery.model.check import Check
from recovery.model.events import (
    Answered,
    Asked,
    Event,
    FileKept,
    Intended,
    NodeFinished,
    Noted,
    RunStarted,
)
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Clock, Launcher
from recovery.model.result import Kept, NodeResult
from recovery.model.runbook import Step
from recovery.model.verdict import Finding

BMC_S = 60.0  # the longest that one question to a BMC may take: an event log of 4,000 records
_deadline: contextvars.ContextVar[float] = contextvars.ContextVar("deadline")


@dataclass(slots=True)
class Recorder:
    """Writes each event to the journal first and then into the story; nothing is kept twice."""

    parts: Parts
    story: RunStory
    listen: Callable[[Event], None] = lambda event: None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def tell(self, event: Event) -> None:
        """Journals the event; whoever listens is told after it is safe. For any thread."""
        if not isinstance(event, RunStarted):  # its plan names secrets and never holds them
            event = strike_out(event, self.parts.secrets)
        with self.lock:
            self.parts.journal.append(event)
            self.story.tell(event)
            self.listen(event)

    @property
    def now(self) -> float:
        """The controller's clock."""
        return self.parts.clock.now()

    def ask(self, step: str, question: str, timeout_s: float) -> tuple[bool | None, str]:
        """Asks the operator; question and answer are journaled, silence is not."""
        self.tell(Asked(at=self.now, step=step, id=step, question=question))
        answer, by = self.parts.asker.ask(question, step, timeout_s)
        if answer is not None:
            self.tell(Answered(at=self.now, step=step, id=step, approved=answer, by=by))
        return answer, by


@dataclass(slots=True, kw_only=True)
class StepWorld:
    """Implements the port `World` for one attempt of one step."""

    run_id: str
    cluster: str
    seed: int
    step: Step
    variables: Mapping[str, Any]
    recorder: Recorder
    transports: Transports
    width: int
    ends_at: float  # monotonic; the attempt's own limit or the run's
    attempt: int = 1
    conclude: Callable[[NodeResult], NodeResult] = lambda result: result
    holds: Callable[[Node], Finding | None] = lambda node: None
    aside: Callable[[tuple[str, ...], str, str], str] = lambda names, reason, remedy: ""
    told: dict[str, NodeResult] = field(default_factory=dict)

    @property
    def parts(self) -> Parts:
        """The ports."""
        return self.recorder.parts

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return self.parts.clock

    @property
    def inventory_nodes(self) -> Mapping[str, Node]:
        """Every node of the inventory."""
        return self.parts.nodes

    def run(self, node: Node, command: Command) -> Output:
        """Runs one command within what is left of the step's time on this node."""
        self._heed_stop()
        left = _deadline.get(self.ends_at) - self.clock.monotonic()
        if left <= 0:
            return Output(Ending.TIMEOUT, reason="the step's time was over before this command")
        secrets = (*self.parts.secrets, *command.secrets)
        # What is a hair less than the limit as written stays as written: people read it.
        limit_s = command.timeout_s if left > command.timeout_s - 0.1 else left
        started = self.clock.monotonic()
        output = self.transports.run(node, replace(command, timeout_s=limit_s, secrets=secrets))
        if output.ending in (Ending.LOST, Ending.NEVER_STARTED) and not output.trouble:
            self._heed_stop()  # cut off by the operator: unfinished, not a finding
        ask = partial(self.transports.run, node)
        return with_cause(output, self.clock, ask, sent_at=started)

    def bmc(self, node: Node, question: BmcAsk) -> Output | None:
        """Asks the node's BMC within what is left of the step's time on this node."""
        self._heed_stop()
        left = _deadline.get(self.ends_at) - self.clock.monotonic()
        if left <= 0:
            return Output(Ending.TIMEOUT, reason="the step's time was over before this question")
        return self.parts.bmc(node, question, min(left, BMC_S))

    def _heed_stop(self) -> None:
        why = self.parts.stopping()
        if why:
            raise InterruptedRunError(f"stopped ({why})", remedy="`recover resume` goes on")

    def fan_out(
        self, nodes: Iterable[Node], work: Callable[[Node], NodeResult]
    ) -> dict[str, NodeResult]:
        """Does ``work`` on all nodes at once; each result is concluded and journaled at once."""

        def timed(node: Node) -> NodeResult:
            token = _deadline.set(min(self.clock.monotonic() + self.step.timeout_s, self.ends_at))
            try:
                return self.conclude(work(node))
            finally:
                _deadline.reset(token)

        todo = list(nodes)
        found = fan_out(
            todo, timed, width=self.width, broken=self.broken, done=lambda _, r: self.tell(r)
        )
        return {node.name: result for node, result in zip(todo, found, strict=True)}

    def each(
        self, items: Iterable[Any], work: Callable[[Any], Any], *, at_least: int = 1
    ) -> list[Any]:
        """Does ``work`` on all items at once, in order; an exception in it is the step's own."""

        def broken(item: Any, trace: str) -> Any:
            raise RuntimeError(f"{item!r}: {trace}")

        width = max(self.width, at_least)
        return fan_out(items, work, width=width, broken=broken, done=lambda item, result: None)

    def tell(self, result: NodeResult) -> None:
        """Journals a node's result of this attempt, once unless it changed."""
        if self.told.get(result.node) != result:
            self.told[result.node] = result
            now = self.recorder.now
            self.recorder.tell(
                NodeFinished(at=now, step=self.step.id, attempt=self.attempt, result=result)
            )

    def keep(self, name: str, content: bytes) -> Kept:
        """Stores evidence, secrets struck out."""
        clean = strike_out_bytes(content, self.parts.secrets)
        return Kept(name, self.parts.evidence.put(clean), len(clean))

    def keep_file(self, node: str, name: str, content: bytes) -> None:
        """Stores evidence that belongs to no node result."""
        kept = self.keep(name, content)
        self.recorder.tell(
            FileKept(
                at=self.recorder.now,
                step=self.step.id,
                node=node,
                name=name,
                digest=kept.digest,
                size_bytes=kept.size_bytes,
            )
        )

    def kept(self, digest: str) -> bytes:
        """Evidence of this run again."""
        return self.parts.evidence.get(digest)

    def note(self, message: str, *, kind: str = "", facts: Mapping[str, Any] | None = None) -> None:
        """Tells people and reports about progress."""
        now = self.recorder.now
        self.recorder.tell(
            Noted(at=now, step=self.step.id, message=message, kind=kind, facts=facts or {})
        )

    def intend(self, what: str, facts: Mapping[str, Any]) -> None:
        """Journals the intent of a side effect; on disk when this returns."""
        self.recorder.tell(
            Intended(at=self.recorder.now, step=self.step.id, what=what, facts=facts)
        )

    def intentions(self, what: str) -> tuple[Mapping[str, Any], ...]:
        """Facts of all intents of this name in this run so far."""
        return tuple(i.facts for i in self.recorder.story.intended if i.what == what)

    def spent(self, node: Node) -> Finding | None:
        """Why this verb may not disrupt the node once more; None when it may."""
        return self.holds(node)

    def set_aside(self, nodes: tuple[Node, ...], reason: str, remedy: str) -> str:
        """Takes nodes out of the later steps and of the scheduler; returns what it said."""
        return self.aside(tuple(node.name for node in nodes), reason, remedy)

    def results(self, verb: str) -> Mapping[str, NodeResult]:
        """The newest result of each node in this run's steps of this verb."""
        found: dict[str, NodeResult] = {}
        for story in self._stories(verb):
            found.update(story.results)
        return found

    def values(self, verb: str) -> Mapping[str, Any]:
        """The step values of the newest finished step of this verb."""
        stories = [s for s in self._stories(verb) if s.outcome == "done"]
        return stories[-1].values if stories else {}

    def _stories(self, verb: str) -> list[StepStory]:
        mine = self.step.id
        return [s for s in self.recorder.story.steps.values() if s.verb == verb and s.id != mine]

    def profile(self, node: Node) -> Mapping[str, Any]:
        """Expectations for the node."""
        return self.parts.expectations(node)

    def check(self, name: str) -> Check[Any, Any]:
        """The check called so."""
        return self.parts.check(name)

    def launcher(self, name: str) -> Launcher:
        """The launcher called so."""
        return self.parts.launcher(name)

    def payload(self, name: str) -> str:
        """The text of a payload."""
        return self.parts.payload(name)

    def local_file(self, path: str) -> bytes:
        """A file of the controller."""
        return self.parts.local_file(path)

    def ask(self, question: str, timeout_s: float) -> tuple[bool | None, str]:
        """Asks the operator; question and answer are journaled."""
        return self.recorder.ask(self.step.id, question, timeout_s)

    def report(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        """Writes reports of the run so far."""
        return self.parts.report(formats)

    def playbook(
        self, playbook: str, nodes: tuple[Node, ...], options: Mapping[str, Any]
    ) -> dict[str, NodeResult]:
        """Runs an Ansible playbook on the nodes."""
        return self.parts.playbook(playbook, nodes, options)

    def broken(self, node: Node, trace: str) -> NodeResult:
        """The result of a node whose work raised: unknown, with the traceback as evidence."""
        last = trace.strip().splitlines()[-1]
        result = silent_result(
            node.name,
            f"{self.step.verb} broke: {last[:160]}",
            remedy="report this as a defect of recover, with the traceback kept as evidence",
        )
        return replace(result, kept=(self.keep("traceback.txt", trace.encode()),))
