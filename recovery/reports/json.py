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


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_TIME: dict[str, Any] = {"type": ["number", "null"], "description": "POSIX seconds"}
_LEVEL: dict[str, Any] = {"enum": ["pass", "warn", "unknown", "fail"]}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 7) of the report; a test holds every report against it."""
    finding = {"level": _LEVEL, "finding": _TEXT, "remedy": _TEXT, "code": _TEXT}
    evidence = {"name": _TEXT, "sha256": _TEXT, "bytes": {"type": "integer"}}
    node = {
        "level": _LEVEL,
        "ending": {"enum": ["finished", "timeout", "lost", "never-started"]},
        "exit_status": {"type": ["integer", "null"]},
        "duration_s": {"type": "number"},
        "findings": {"type": "array", "items": _closed(finding)},
        "evidence": {"type": "array", "items": _closed(evidence)},
    }
    counts = {name: {"type": "integer"} for name in ("passed", "needed", "total")}
    gate = _closed({"decision": _TEXT, **counts, "without": _TEXTS, "reason": _TEXT})
    step = {
        "id": _TEXT,
        "verb": _TEXT,
        "outcome": {"enum": ["running", "done", "failed", "skipped", "not-run"]},
        "attempts": {"type": "integer"},
        "started_at": _TIME,
        "finished_at": _TIME,
        "level": {"anyOf": [_LEVEL, {"type": "null"}]},
        "gate": {"anyOf": [gate, {"type": "null"}]},
        "values": {"type": "object"},
        "nodes": {"type": "object", "additionalProperties": _closed(node)},
    }
    folded = {"step": _TEXT, "nodes": _TEXTS, "folded": _TEXT, "component": _TEXT}
    aside = _closed({"step": _TEXT, "reason": _TEXT, "remedy": _TEXT})
    names = ("run", "cluster", "runbook", "digest", "outcome", "reason", "next_command")
    report = {
        "schema": {"const": SCHEMA},
        **dict.fromkeys(names, _TEXT),
        "started_at": _TIME,
        "finished_at": _TIME,
        "exit_code": {"type": ["integer", "null"]},
        "saved": {"type": "object"},
        "findings": {"type": "array", "items": _closed({**finding, **folded})},
        "set_aside": {"type": "object", "additionalProperties": aside},
        "steps": {"type": "array", "items": _closed(step)},
    }
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_closed(report)}


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
