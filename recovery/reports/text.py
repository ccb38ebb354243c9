"""`text`: the run on a screen without colour: steps, then what is wrong, then what to type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from recovery.engine.history import StepStory, story_of
from recovery.engine.summary import counts, summary_lines, took
from recovery.model.events import Event
from recovery.model.ports import Evidence, Report


def _render(
    events: Sequence[Event], evidence: Evidence, fold: Callable[[Iterable[str]], str]
) -> str:
    story = story_of(events)
    lines = []
    if story.started:
        lines.append(f"run {story.started.run}: {story.started.runbook} on {story.started.cluster}")
    lines += [_line(step, story.last_at) for step in story.steps.values()]
    return "\n".join(lines + summary_lines(story, fold, most=1000))


def _line(step: StepStory, now: float) -> str:
    time = took((step.finished_at or now) - step.started_at)
    return f"{step.outcome:8} {step.id:24} {counts(step):30} {time}".rstrip()


TEXT = Report(name="text", about="for the terminal", suffix=".txt", render=_render)
