"""The page's overview, also for readers without JavaScript: end, findings, gates, grid, time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from recovery.engine.history import RunStory, StepStory
from recovery.engine.summary import counts, folded_findings, took
from recovery.model.verdict import Level

Fold = Callable[[Iterable[str]], str]
ROWS = 200  # findings and rows of the grid that stand in the page itself; its script has them all


def head(story: RunStory) -> dict[str, Any]:
    """Title, times, how it ended, what to type next."""
    started, end = story.started, story.finished
    begun = started.at if started else story.last_at
    return {
        "title": f"{started.runbook} on {started.cluster}" if started else "a run that never began",
        "run": started.run if started else "",
        "cluster": str(started.inputs.get("cluster", started.cluster)) if started else "",
        "digest": started.digest[:12] if started else "",
        "started": datetime.fromtimestamp(begun, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "outcome": end.outcome if end else "unfinished",
        "reason": end.reason if end else "",
        "next": end.next_command if end else "",
        "took": took((end.at if end else story.last_at) - begun),
        "saved": [(name, str(value)) for name, value in story.saved.items()],
    }


def findings(story: RunStory, fold: Fold) -> list[dict[str, str]]:
    """The first findings, worst first, with the nodes that have them."""
    return [
        {
            "level": f.level.word,
            "nodes": fold(f.nodes) if f.nodes else "the step",
            "finding": f.finding if f.component in f.finding else f"{f.component}: {f.finding}",
            "remedy": f.remedy,
            "step": f.step,
        }
        for f in folded_findings(story)[:ROWS]
    ]


def set_aside(story: RunStory, fold: Fold) -> list[dict[str, str]]:
    """Nodes that left the run, by reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for node, q in story.quarantined.items():
        grouped.setdefault((q.reason, q.step), []).append(node)
    return [{"nodes": fold(n), "reason": r, "step": s} for (r, s), n in grouped.items()]


def step(step: StepStory, now: float) -> dict[str, Any]:
    """One row of the gates."""
    gate = step.gate
    return {
        "id": step.id,
        "outcome": step.outcome,
        "attempts": step.attempt,
        "decision": gate.decision if gate else "",
        "why": gate.reason if gate else "",
        "passed": f"{gate.passed} of {gate.total}, {gate.needed} needed" if gate else "",
        "counts": counts(step),
        "took": took((step.finished_at or now) - step.started_at),
    }


def grid(story: RunStory, fold: Fold) -> list[dict[str, Any]]:
    """A row for all nodes that fared alike, worst first."""
    steps = list(story.steps.values())
    nodes = dict.fromkeys(n for s in steps for n in s.results)
    alike: dict[tuple[Level | None, ...], list[str]] = {}
    for node in nodes:
        levels = tuple(s.results[node].verdict.level if node in s.results else None for s in steps)
        alike.setdefault(levels, []).append(node)
    worst_first = sorted(alike.items(), key=lambda row: -max((v or 0 for v in row[0]), default=0))
    return [
        {"nodes": fold(names), "levels": [v.word if v is not None else "" for v in levels]}
        for levels, names in worst_first[:ROWS]
    ]


def timeline(story: RunStory) -> list[dict[str, Any]]:
    """A bar for each step."""
    steps = list(story.steps.values())
    if not steps:
        return []
    first, left, width = min(s.started_at for s in steps), 190.0, 700.0
    total = max(story.last_at - first, 0.001)
    bars = []
    for step in steps:
        length = (step.finished_at or story.last_at) - step.started_at
        bars.append(
            {
                "id": step.id[:24],
                "x": round(left + (step.started_at - first) / total * width, 1),
                "width": round(max(2.0, length / total * width), 1),
                "took": took(length),
            }
        )
    return bars
