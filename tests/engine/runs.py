"""A whole run of the real engine in memory: fake clock, fake transport, journal in a list."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from recovery.engine.history import RunStory, story_of
from recovery.engine.loop import Run
from recovery.engine.outcome import command_result
from recovery.engine.parts import Parts
from recovery.engine.transporting import Transports
from recovery.engine.world import Recorder
from recovery.model.events import RunResumed, RunStarted
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import CONTROLLER, Node
from recovery.model.output import Command
from recovery.model.runbook import Effect, Limits, Plan, Rerun
from recovery.model.verdict import failed, passed, single
from recovery.steps.approve import APPROVE
from tests.fakes import FakeClock, FakeTransport, a_step

NODES = tuple(Node(f"n{i}", transport="fake") for i in range(1, 5))


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str


def _run(params, nodes, world):
    def on(node):
        output = world.run(node, Command(params.argument, timeout_s=world.step.timeout_s))
        return command_result(world, node, output, what="command")

    return StepResult(nodes=world.fan_out(nodes, on))


def _choose(params, nodes, world):
    """A verb that judges all nodes together and gives step values; may be told to fail."""
    results = {n.name: NodeResult(node=n.name, verdict=single(passed("seen"))) for n in nodes}
    bad = single(failed("nothing is complete", remedy="look")) if params.argument == "bad" else None
    return StepResult(nodes=results, values={"last": 120, "path": "a b"}, verdict=bad)


def _defect(params, nodes, world):
    raise ZeroDivisionError("a defect")


def _meet(params, nodes, world):
    """A verb whose pieces of work wait for each other, as the ranks of one test do."""
    barrier = threading.Barrier(len(nodes))
    world.each(nodes, lambda node: barrier.wait(60), at_least=len(nodes))
    return StepResult(
        nodes={n.name: NodeResult(node=n.name, verdict=single(passed("met"))) for n in nodes}
    )


def _verb(name, run, effect=Effect.READ, **more):
    return Verb(name=name, about=name, effect=effect, params=Line, describe=str, run=run, **more)


VERBS = {
    v.name: v
    for v in (
        _verb("run", _run),
        _verb("choose", _choose, together=True),
        _verb("defect", _defect),
        _verb("meet", _meet, together=True),
        APPROVE,
    )
}


def line(id, argument="true", verb="run", **more):
    names = tuple(n.name for n in NODES)
    more.setdefault("effect", Effect.READ)
    more.setdefault("rerun", Rerun.SAFE)
    return a_step(verb, id=id, fields={"argument": argument}, **{"nodes": names, **more})


@dataclass
class Journal:
    """Events in a list; may be told to die before the N-th."""

    events: list = field(default_factory=list)
    die_at: int | None = None

    def append(self, event):
        if self.die_at is not None and len(self.events) >= self.die_at:
            raise KilledError
        self.events.append(event)


class KilledError(BaseException):
    """Stands for kill -9: nothing of ours catches it."""


class Evidence:
    def __init__(self):
        self.kept = {}

    def put(self, content):
        import hashlib

        digest = hashlib.sha256(content).hexdigest()
        self.kept[digest] = content
        return digest

    def get(self, digest):
        return self.kept[digest]


class Asker:
    def __init__(self, answer=None):
        self.answer, self.asked = answer, []

    def ask(self, question, approval, timeout_s):
        self.asked.append(question)
        return self.answer, "the test"


@dataclass
class Bench:
    """One cluster that runs can be carried out on, again and again."""

    answer: Any = None
    transport: FakeTransport = field(default_factory=FakeTransport)
    clock: FakeClock = field(default_factory=FakeClock)
    journal: Journal = field(default_factory=Journal)
    asker: Asker = field(default_factory=Asker)
    drained: list = field(default_factory=list)
    stop_when: Any = lambda bench: ""
    stopped: str = ""
    verbs: dict = field(default_factory=lambda: dict(VERBS))

    def __post_init__(self):
        if self.answer:
            self.transport.answer = self.answer

    def plan(self, *steps, finally_=(), variables=None, **limits):
        return Plan(
            runbook="test",
            about="",
            cluster="c",
            nodes=tuple(n.name for n in NODES),
            steps=steps,
            finally_=tuple(finally_),
            variables=variables or {},
            limits=Limits(**limits),
            seed=1,
            digest="d",
        )

    def _stopping(self):
        self.stopped = self.stopped or self.stop_when(self)
        return self.stopped

    def _heeded(self):
        self.stopped, self.stop_when = "", lambda bench: ""

    def _drain(self, nodes, reason):
        self.drained.append((nodes, reason))
        return "drained in Slurm"

    def parts(self):
        nothing = lambda *args: None  # noqa: E731
        return Parts(
            clock=self.clock,
            journal=self.journal,
            evidence=Evidence(),
            asker=self.asker,
            nodes={n.name: n for n in (*NODES, CONTROLLER)},
            verbs=self.verbs,
            transport=lambda name: self.transport,
            check=nothing,
            launcher=nothing,
            expectations=lambda node: {},
            payload=nothing,
            local_file=nothing,
            report=nothing,
            playbook=nothing,
            stopping=self._stopping,
            heeded=self._heeded,
            drain=self._drain,
        )

    def carry_out(self, *steps, **more):
        """A new sitting of the run: a fresh one, or a resume when the journal has events."""
        probe = more.pop("probe", False)
        plan = self.plan(*steps, **more)
        story = story_of(self.journal.events)
        recorder = Recorder(self.parts(), story)
        now = self.clock.now()
        if story.started is None:
            first = RunStarted(
                at=now,
                run="r",
                cluster="c",
                runbook="test",
                digest="d",
                nodes=plan.nodes,
                seed=1,
                version="0",
                owner="me",
            )
        else:
            first = RunResumed(at=now, owner="me")
        recorder.tell(first)
        run = Run(
            plan=plan,
            run_id="r",
            recorder=recorder,
            transports=Transports(lambda name: self.transport),
            started_at=self.clock.monotonic(),
            probe=probe,
        )
        return run.carry_out()

    @property
    def story(self) -> RunStory:
        return story_of(self.journal.events)

    def asked(self, text):
        """Which nodes were asked this line, in order of names, with repeats."""
        return sorted(n for n, asked in self.transport.asked if asked == text)
