"""`md`: the run for a ticket or a chat: summary, findings, steps, nodes set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from recovery.engine.history import RunStory, story_of
from recovery.engine.summary import counts, folded_findings, took
from recovery.model.events import Event
from recovery.model.ports import Evidence, Report

Fold = Callable[[Iterable[str]], str]


def _render(events: Sequence[Event], evidence: Evidence, fold: Fold) -> str:
    story = story_of(events)
    return "\n".join([*_head(story), *_findings(story, fold), *_steps(story, fold)]) + "\n"


def _head(story: RunStory) -> list[str]:
    started, end = story.started, story.finished
    if started is None:
        return ["# a run that never started"]
    lines = [f"# {started.runbook} on {started.cluster}", "", f"Run `{started.run}`"]
    if end is None:
        return [*lines, "", "**The run has not ended.**"]
    lines += ["", f"**{end.outcome}**: {_cell(end.reason)} ({took(end.at - started.at)})"]
    return [*lines, "", f"Next: `{end.next_command}`"] if end.next_command else lines


def _findings(story: RunStory, fold: Fold) -> list[str]:
    rows = folded_findings(story)
    if not rows:
        return ["", "No findings."]
    lines = [
        "",
        "## Findings",
        "",
        "| level | step | nodes | finding | remedy |",
        "|---|---|---|---|---|",
    ]
    for f in rows:
        who = fold(f.nodes) if f.nodes else "the step"
        cells = (f.level.word, f.step, who, f.finding, f.remedy)
        lines.append("| " + " | ".join(_cell(c) for c in cells) + " |")
    return lines


def _steps(story: RunStory, fold: Fold) -> list[str]:
    lines = [
        "",
        "## Steps",
        "",
        "| step | outcome | nodes | gate | time |",
        "|---|---|---|---|---|",
    ]
    for step in story.steps.values():
        gate = ""
        if step.gate:
            count = f"{step.gate.passed} of {step.gate.total}, {step.gate.needed} needed"
            gate = f"{step.gate.decision} ({count})"
        time = took((step.finished_at or story.last_at) - step.started_at)
        lines.append(f"| {step.id} | {step.outcome} | {counts(step)} | {gate} | {time} |")
    if story.quarantined:
        lines += ["", "## Set aside", ""]
        lines += [
            f"- {node}: {_cell(q.reason)} ({q.step})" for node, q in story.quarantined.items()
        ]
    return lines


def _cell(text: str) -> str:
    flat = "".join(c if c.isprintable() else " " for c in text)
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")


MARKDOWN = Report(name="md", about="for a ticket", suffix=".md", render=_render)
