"""The live view of a run, and its summary: a row a step, who is waited for, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from recovery.engine.history import RunStory, StepStory
from recovery.engine.summary import Fold, counts, printable, summary_lines, took
from recovery.model.events import (
    Event,
    GateDecided,
    Interrupted,
    NodeFinished,
    Noted,
    Quarantined,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from recovery.model.verdict import Level

_STYLE = {Level.PASS: "green", Level.WARN: "yellow", Level.UNKNOWN: "magenta", Level.FAIL: "red"}
_NOTES_SHOWN = 3
NAMES_SHOWN = 60


class View:
    """Is told of every event. On a terminal a live table; elsewhere one line an event."""

    def __init__(
        self, stream: TextIO, fold: Fold, *, now: Callable[[], float], quiet: bool = False
    ) -> None:
        self._now = now
        self._console = Console(file=stream, highlight=False)
        self._fold = fold
        self._quiet = quiet
        self._story = RunStory()
        self._last = ""
        shows = self._console.is_terminal and not quiet
        self._live = self._new_live() if shows else None

    def __enter__(self) -> View:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *unused: object) -> None:
        if self._live:
            self._live.stop()

    def _new_live(self) -> Live:
        return Live(
            console=self._console,
            get_renderable=self._table,
            refresh_per_second=4,
            transient=False,
        )

    def tell(self, event: Event) -> None:
        """Takes in the next event and shows it."""
        self._story.tell(event)
        if self._live and not self._live.is_started:
            self._live = self._new_live()  # a stopped one would repaint over what was said since
            self._live.start()
        if self._live or self._quiet:
            return
        for line in lines_of(event, self._story, self._fold):
            if line != self._last:  # a node compared with others is told again with the same words
                self._console.print(Text(line), soft_wrap=True)
            self._last = line

    def recall(self, event: Event) -> None:
        """Takes in what an earlier sitting journaled, without showing it again."""
        self._story.tell(event)

    def say(self, words: str) -> None:
        """Shows words beside the table (a question, what a signal does)."""
        if self._live:
            self._live.stop()  # a question must stay readable; the next event brings the table back
        self._console.print(Text(words), soft_wrap=True)

    def summary(self) -> str:
        """The end of the run in words: worst first, nodes folded, the next command."""
        return "\n".join(summary_lines(self._story, self._fold))

    def _table(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for story in self._story.steps.values():
            table.add_row(*_row(story, self._fold, self._now()))
        notes = [n for s in self._story.steps.values() for n in s.notes][-_NOTES_SHOWN:]
        return Group(table, *(Text(f"    {printable(n.message)}", style="dim") for n in notes))


def open_view(stream: TextIO, fold: Fold, *, now: Callable[[], float], quiet: bool) -> View:
    """The view for this stream; ``now`` gives POSIX seconds."""
    return View(stream, fold, now=now, quiet=quiet)


def _row(story: StepStory, fold: Fold, now: float) -> tuple[Any, ...]:
    level = story.level
    word = {"done": "done", "failed": "FAILED", "running": "..."}.get(story.outcome, story.outcome)
    style = _STYLE[level] if level is not None else "dim"
    end = story.finished_at or now
    waiting = ""
    if story.outcome == "running" and story.waiting:
        waiting = f"{left_words(story, now)}waiting for {_short(fold(story.waiting))}"
    attempt = f"attempt {story.attempt}" if story.attempt > 1 else ""
    time = took(end - story.started_at)
    return Text(word, style=style), story.id, counts(story), time, attempt, waiting


def _short(names: str) -> str:
    return escape(names if len(names) <= NAMES_SHOWN else f"{names[:NAMES_SHOWN]}...")


def left_words(story: StepStory, now: float) -> str:
    """``about 12 s left, ``: from the nodes that ended so far; nothing before the first did."""
    done, spent = len(story.finished_nodes), now - story.started_at
    if not done or spent <= 0:
        return ""
    left = spent / done * len(story.waiting)
    if story.deadline_s:
        left = min(left, max(0.0, story.deadline_s - spent))
    return f"about {took(left)} left, "


def lines_of(event: Event, story: RunStory, fold: Fold) -> Iterator[str]:
    """What one event says where there is no terminal; silent for what a later event sums up."""
    for line in (*_of_run(event, fold), *_of_step(event, story, fold)):
        yield printable(line)


def _of_run(event: Event, fold: Fold) -> Iterator[str]:
    match event:
        case RunStarted():
            yield f"run {event.run}: {event.runbook} on {fold(event.nodes)}"
        case Quarantined():
            yield f"{event.step}: {fold(event.nodes)} set aside: {event.reason}"
        case Interrupted():
            yield f"interrupted ({event.signal}); unfinished: {fold(event.unfinished) or 'none'}"
        case RunFinished():
            yield f"{event.outcome}: {event.reason}"
        case _:
            pass


def _of_step(event: Event, story: RunStory, fold: Fold) -> Iterator[str]:
    match event:
        case StepStarted():
            again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            yield f"{event.step}: started on {fold(event.nodes)}{again}"
        case NodeFinished() if event.result.verdict.level.blocks:
            worst = event.result.verdict.worst
            yield f"{event.step}: {event.result.node} {worst.level.word}: {worst.finding}"
        case Noted():
            yield f"{event.step}: {event.message}"
        case GateDecided() if event.decision != "open":
            reason = f": {event.reason}" if event.reason else ""
            yield f"{event.step}: gate {event.decision} {fold(event.without)}{reason}"
        case StepFinished():
            yield f"{event.step}: {event.outcome} {counts(story.steps[event.step])}".rstrip()
        case _:
            pass
