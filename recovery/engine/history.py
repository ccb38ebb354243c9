"""The story of a run so far, folded from its events: for resume, the live view and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

from recovery.model.events import (
    Answered,
    Asked,
    Event,
    FileKept,
    GateDecided,
    Intended,
    Interrupted,
    NodeFinished,
    Noted,
    Quarantined,
    RunFinished,
    RunResumed,
    RunStarted,
    Saved,
    StepFinished,
    StepStarted,
)
from recovery.model.output import Ending
from recovery.model.result import NodeResult
from recovery.model.verdict import Level, Verdict

DONE, FAILED, SKIPPED, NOT_RUN, RUNNING = "done", "failed", "skipped", "not-run", "running"


@dataclass(slots=True)
class StepStory:
    """What is known of one step. ``results`` holds each node's newest result."""

    id: str
    verb: str
    started_at: float
    attempt: int = 0
    finished_at: float | None = None
    outcome: str = RUNNING
    deadline_s: float = 0.0
    verdict: Verdict | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    results: dict[str, NodeResult] = field(default_factory=dict)
    finished_nodes: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)  # an ordered set
    tried: dict[str, None] = field(default_factory=dict)  # every node with an intent
    gate: GateDecided | None = None
    notes: list[Noted] = field(default_factory=list)
    files: list[FileKept] = field(default_factory=list)
    touched: int = 0  # the number of the event that began or ended it last

    @property
    def level(self) -> Level | None:
        """The worst level among its nodes and the step itself; None when nothing was judged."""
        levels = [r.verdict.level for r in self.results.values()]
        levels += [self.verdict.level] if self.verdict else []
        return max(levels, default=None)

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Nodes that may have done the step's work: asked, and how it ended is not known."""
        cut = [n for n, r in self.results.items() if r.ending in (Ending.LOST, Ending.TIMEOUT)]
        return tuple(dict.fromkeys((*self.waiting, *cut)))

    def with_level(self, test: Callable[[Level], bool]) -> tuple[str, ...]:
        """Nodes whose newest result has such a level."""
        return tuple(n for n, r in self.results.items() if test(r.verdict.level))


@dataclass(slots=True)
class RunStory:
    """What is known of a run. `tell` it events in order."""

    started: RunStarted | None = None
    steps: dict[str, StepStory] = field(default_factory=dict)
    saved: dict[str, Any] = field(default_factory=dict)
    quarantined: dict[str, Quarantined] = field(default_factory=dict)
    intended: list[Intended] = field(default_factory=list)
    asked: dict[str, Asked] = field(default_factory=dict)
    answered: dict[str, Answered] = field(default_factory=dict)
    interrupted: Interrupted | None = None
    finished: RunFinished | None = None
    notes: list[Noted] = field(default_factory=list)  # those that belong to no step
    sittings: int = 1
    last_at: float = 0.0
    n_told: int = 0

    def tell(self, event: Event) -> None:
        """Takes in the next event."""
        self.last_at = event.at
        self.n_told += 1
        self._take(event)

    @property
    def current(self) -> StepStory | None:
        """The step that runs now, if any."""
        running = [s for s in self.steps.values() if s.outcome == RUNNING]
        return running[-1] if running else None

    def step(self, name: str) -> StepStory:
        """The story of one step that has begun."""
        return self.steps[name]

    @singledispatchmethod
    def _take(self, event: Event) -> None:
        raise TypeError(f"not an event of a run: {event!r}")

    @_take.register
    def _(self, event: RunStarted) -> None:
        self.started = event

    @_take.register
    def _(self, event: RunResumed) -> None:
        self.sittings += 1
        self.finished = self.interrupted = None

    @_take.register
    def _(self, event: StepStarted) -> None:
        story = self.steps.get(event.step)
        if story is None or story.outcome in (DONE, SKIPPED, NOT_RUN):
            story = StepStory(event.step, event.verb, event.at)
            self.steps.pop(event.step, None)
            self.steps[event.step] = story
        story.outcome, story.finished_at, story.gate = RUNNING, None, None
        story.attempt, story.deadline_s = event.attempt, event.deadline_s
        story.touched = self.n_told
        story.waiting = dict.fromkeys(event.nodes)
        story.tried |= story.waiting

    @_take.register
    def _(self, event: NodeFinished) -> None:
        story = self.steps[event.step]
        story.results[event.result.node] = event.result
        story.finished_nodes[event.result.node] = event.at
        story.waiting.pop(event.result.node, None)

    @_take.register
    def _(self, event: Noted) -> None:
        told = self.steps[event.step].notes if event.step in self.steps else self.notes
        told.append(event)

    @_take.register
    def _(self, event: Intended) -> None:
        self.intended.append(event)

    @_take.register
    def _(self, event: FileKept) -> None:
        if event.step in self.steps:
            self.steps[event.step].files.append(event)

    @_take.register
    def _(self, event: Saved) -> None:
        self.saved[event.name] = event.value

    @_take.register
    def _(self, event: GateDecided) -> None:
        if event.step in self.steps:
            self.steps[event.step].gate = event

    @_take.register
    def _(self, event: Quarantined) -> None:
        self.quarantined.update(dict.fromkeys(event.nodes, event))

    @_take.register
    def _(self, event: StepFinished) -> None:
        story = self.steps.get(event.step)
        if story is None:
            story = self.steps[event.step] = StepStory(event.step, "", event.at)
        story.outcome, story.finished_at = event.outcome, event.at
        story.verdict, story.values = event.verdict, event.values
        story.waiting, story.touched = {}, self.n_told

    @_take.register
    def _(self, event: Asked) -> None:
        self.asked[event.id] = event

    @_take.register
    def _(self, event: Answered) -> None:
        self.answered[event.id] = event

    @_take.register
    def _(self, event: Interrupted) -> None:
        self.interrupted = event

    @_take.register
    def _(self, event: RunFinished) -> None:
        self.finished = event


def story_of(events: Iterable[Event]) -> RunStory:
    """Folds all events of a run."""
    story = RunStory()
    for event in events:
        story.tell(event)
    return story
