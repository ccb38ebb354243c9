"""`json`: the whole story of a run for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from recovery.engine.history import RunStory, StepStory, story_of
from recovery.engine.summary import folded_findings
from recovery.model.events import Event
from recovery.model.ports import Evidence, Report
from recovery.model.result import NodeResult

SCHEMA = "recover-report-1"


def _render(
    events: Sequence[Event], evidence: Evidence, fold: Callable[[Iterable[str]], str]
) -> str:
    story = story_of(events)
    return json.dumps(report_values(story, fold), indent=1, default=str)


def report_values(story: RunStory, fold: Callable[[Iterable[str]], str]) -> dict[str, Any]:
    """The report as JSON-able values; keys are stable within one value of ``schema``."""
    started, finished = story.started, story.finished
    return {
        "schema": SCHEMA,
        "run": started.run if started else "",
        "cluster": started.cluster if started else "",
        "runbook": started.runbook if started else "",
        "digest": started.digest if started else "",
        "started_at": started.at if started else None,
        "finished_at": finished.at if finished else None,
        "outcome": finished.outcome if finished else "unfinished",
        "exit_code": finished.exit_code if finished else None,
        "reason": finished.reason if finished else "",
        "next_command": finished.next_command if finished else "",
        "saved": story.saved,
        "findings": [
            {
                "level": f.level.word,
                "step": f.step,
                "nodes": list(f.nodes),
                "folded": fold(f.nodes),
                "finding": f.finding,
                "remedy": f.remedy,
                "component": f.component,
                "code": f.code,
            }
            for f in folded_findings(story)
        ],
        "set_aside": {
            node: {"step": q.step, "reason": q.reason, "remedy": q.remedy}
            for node, q in story.quarantined.items()
        },
        "steps": [_step(step) for step in story.steps.values()],
    }


def _step(step: StepStory) -> dict[str, Any]:
    gate = step.gate
    return {
        "id": step.id,
        "verb": step.verb,
        "outcome": step.outcome,
        "attempts": step.attempt,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "level": step.level.word if step.level is not None else None,
        "gate": gate
        and {
            "decision": gate.decision,
            "passed": gate.passed,
            "needed": gate.needed,
            "total": gate.total,
            "without": list(gate.without),
            "reason": gate.reason,
        },
        "values": dict(step.values),
        "nodes": {name: _node(result) for name, result in step.results.items()},
    }


def _node(result: NodeResult) -> dict[str, Any]:
    return {
        "level": result.verdict.level.word,
        "ending": result.ending.value,
        "exit_status": result.exit_status,
        "duration_s": result.duration_s,
        "findings": [
            {"level": f.level.word, "finding": f.finding, "remedy": f.remedy, "code": f.code}
            for f in result.verdict.findings
        ],
        "evidence": [
            {"name": k.name, "sha256": k.digest, "bytes": k.size_bytes} for k in result.kept
        ],
    }


JSON = Report(name="json", about="the whole story for programs", suffix=".json", render=_render)
