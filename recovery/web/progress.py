"""A run so far as JSON-able values: what the live page shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from recovery.engine.history import RunStory, StepStory
from recovery.engine.summary import counts, folded_findings, printable, took

FINDINGS, NOTES, NAMES = 60, 8, 200
Fold = Callable[[Iterable[str]], str]


def progress(story: RunStory, state: str, why: str, fold: Fold, now: float) -> dict[str, Any]:
    """Everything on the live page; texts have no control characters."""
    started, end = story.started, story.finished
    until = end.at if end else now if state == "running" else story.last_at
    begun = started.at if started else until
    return {
        "state": state,
        "why": printable(why),
        "next": printable(_next(story, state)),
        "took": took(max(0.0, until - begun)),
        "about": _about(story),
        "steps": [_step(s, fold, until) for s in story.steps.values()],
        "findings": _findings(story, fold),
        "notes": [printable(n.message) for s in story.steps.values() for n in s.notes][-NOTES:],
    }


def _about(story: RunStory) -> str:
    started = story.started
    if started is None:
        return "a run that never began"
    return printable(f"{started.runbook} on {started.cluster}, {len(started.nodes)} nodes")


def _next(story: RunStory, state: str) -> str:
    """The command to type now; empty while nobody is needed."""
    run = story.started.run if story.started else "RUN"
    if story.finished is not None:
        return story.finished.next_command or f"recover report {run}"
    waiting = [asked for name, asked in story.asked.items() if name not in story.answered]
    if waiting:
        return f"{waiting[-1].question} Answer at its terminal; later: " + (
            f"recover resume {run} --approve {waiting[-1].id}"
        )
    return f"recover resume {run}" if state == "crashed" else ""


def _step(step: StepStory, fold: Fold, now: float) -> dict[str, Any]:
    level, gate = step.level, step.gate
    waiting = fold(step.waiting) if step.outcome == "running" and step.waiting else ""
    done = len(step.finished_nodes)
    return {
        "id": printable(step.id),
        "verb": step.verb,
        "outcome": step.outcome,
        "level": level.word if level is not None else "",
        "counts": counts(step),
        "waiting": printable(waiting if len(waiting) <= NAMES else f"{waiting[:NAMES]}..."),
        "done": done,
        "of": done + len(step.waiting),
        "attempt": step.attempt,
        "gate": f"{gate.decision}: {gate.passed} of {gate.total}, {gate.needed} needed"
        if gate
        else "",
        "took": took(max(0.0, (step.finished_at or now) - step.started_at)),
    }


def _findings(story: RunStory, fold: Fold) -> dict[str, Any]:
    found = folded_findings(story)
    rows = [
        {
            "level": f.level.word,
            "step": printable(f.step),
            "nodes": printable(fold(f.nodes) if f.nodes else "the step"),
            "finding": printable(f.finding),
            "remedy": printable(f.remedy),
        }
        for f in found[:FINDINGS]
    ]
    return {"rows": rows, "more": len(found) - len(rows)}
