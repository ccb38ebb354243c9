"""`html`: one self-contained page: summary, findings, gates, grid, heat maps, evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, Template

from recovery.engine.history import RunStory, StepStory, story_of
from recovery.engine.summary import counts, folded_findings, printable, took
from recovery.errors import ParseError, StoreError
from recovery.model.events import Event
from recovery.model.output import Printed
from recovery.model.ports import Evidence, Report
from recovery.model.verdict import Level
from recovery.reading.topo import looks_like_topology, read_topology
from recovery.reading.topo_words import Topology

Fold = Callable[[Iterable[str]], str]
PAIRS_SHOWN = 48  # a heat map of more nodes is no longer read; the table of tests has them all


@cache
def _page() -> Template:
    text = files("recovery.reports").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=False)
    return environment.from_string(text)


def _render(events: Sequence[Event], evidence: Evidence, fold: Fold) -> str:
    story = story_of(events)
    values = {
        **_head(story),
        "findings": _findings(story, fold),
        "set_aside": _set_aside(story, fold),
        "steps": [_step(s, story.last_at) for s in story.steps.values()],
        "grid": _grid(story, fold),
        "timeline": _timeline(story),
        "mesh": _mesh(story, fold),
        "pairs": _pairs(story),
        "curves": _curves(story),
        "topologies": _topologies(story, evidence, fold),
        "evidence": _evidence(story),
    }
    return _page().render({k: _clean(v) for k, v in values.items()})


def _clean(value: Any) -> Any:
    """Text without control characters: they have no place in a page."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {k: _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def _head(story: RunStory) -> dict[str, Any]:
    started, end = story.started, story.finished
    begun = started.at if started else story.last_at
    return {
        "title": f"{started.runbook} on {started.cluster}" if started else "a run that never began",
        "run": started.run if started else "",
        "digest": started.digest[:12] if started else "",
        "started": datetime.fromtimestamp(begun, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "outcome": end.outcome if end else "unfinished",
        "reason": end.reason if end else "",
        "next": end.next_command if end else "",
        "took": took((end.at if end else story.last_at) - begun),
        "saved": [(name, str(value)) for name, value in story.saved.items()],
    }


def _findings(story: RunStory, fold: Fold) -> list[dict[str, str]]:
    return [
        {
            "level": f.level.word,
            "nodes": fold(f.nodes) if f.nodes else "the step",
            "finding": f.finding if f.component in f.finding else f"{f.component}: {f.finding}",
            "remedy": f.remedy,
            "step": f.step,
        }
        for f in folded_findings(story)
    ]


def _set_aside(story: RunStory, fold: Fold) -> list[dict[str, str]]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for node, q in story.quarantined.items():
        grouped.setdefault((q.reason, q.step), []).append(node)
    return [{"nodes": fold(n), "reason": r, "step": s} for (r, s), n in grouped.items()]


def _step(step: StepStory, now: float) -> dict[str, Any]:
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


def _grid(story: RunStory, fold: Fold) -> list[dict[str, Any]]:
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
        for levels, names in worst_first
    ]


def _timeline(story: RunStory) -> list[dict[str, Any]]:
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


def _tests(story: RunStory) -> list[Mapping[str, Any]]:
    notes = [n for s in story.steps.values() for n in s.notes]
    return [n.facts for n in notes if n.kind == "mesh.test"]


def _mesh(story: RunStory, fold: Fold) -> list[dict[str, Any]]:
    tests = _tests(story)
    best = max((float(t.get("busbw_gb_per_s") or 0) for t in tests), default=0.0)
    rows = [
        {
            "round": f"{t.get('round', '')} {t.get('level', '')}".strip(),
            "group": fold(t.get("group", ())),
            "busbw": _busbw(t),
            "colour": _colour(t.get("busbw_gb_per_s"), best),
            "level": "pass" if t.get("ok") else "fail",
            "finding": str(t.get("finding") or ""),
        }
        for t in tests
    ]
    return sorted(rows, key=lambda row: row["level"] == "pass")


def _busbw(test: Mapping[str, Any]) -> str:
    value = test.get("busbw_gb_per_s")
    return f"{float(value):.1f} GB/s" if value is not None else "none"


def _colour(value: Any, best: float) -> str:
    """Green at the best seen, red at nothing; half transparent, so that it reads in both modes."""
    share = float(value) / best if value is not None and best > 0 else 0.0
    return f"hsl({round(120 * max(0.0, min(1.0, share)))} 70% 50% / 0.35)"


def _pairs(story: RunStory) -> dict[str, Any] | None:
    seen = {
        frozenset(t["group"]): t.get("busbw_gb_per_s")
        for t in _tests(story)
        if len(t.get("group", ())) == 2
    }
    names = sorted({n for pair in seen for n in pair})
    if not names or len(names) > PAIRS_SHOWN:
        return None
    best = max((float(v) for v in seen.values() if v is not None), default=0.0)

    def cell(a: str, b: str) -> dict[str, str]:
        if frozenset((a, b)) not in seen:
            return {"text": "", "colour": "transparent"}
        value = seen[frozenset((a, b))]
        text = f"{float(value):.0f}" if value is not None else "none"
        return {"text": text, "colour": _colour(value, best)}

    rows = [{"name": a, "cells": [cell(a, b) for b in names]} for a in names]
    return {"names": names, "rows": rows}


def _curves(story: RunStory) -> list[dict[str, Any]]:
    """From the values of `verify`: ``curves: {loss: {before: [[iteration, y]], after: ...}}``."""
    found = []
    for step in story.steps.values():
        for name, curve in dict(step.values.get("curves", {})).items():
            drawn = _curve(name, curve.get("before", []), curve.get("after", []))
            found += [drawn] if drawn else []
    return found


def _curve(
    name: str, before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]
) -> dict[str, Any] | None:
    points = [*before, *after]
    if len(points) < 2:
        return None
    xs, ys = [float(p[0]) for p in points], [float(p[1]) for p in points]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)

    def drawn(part: Sequence[Sequence[float]]) -> str:
        return " ".join(
            f"{60 + 830 * (float(p[0]) - left) / max(right - left, 1e-9):.1f},"
            f"{230 - 200 * (float(p[1]) - low) / max(high - low, 1e-12):.1f}"
            for p in part
        )

    return {
        "name": name,
        "before": drawn(before),
        "after": drawn(after),
        "first": f"{left:g}",
        "last": f"{right:g}",
        "top": f"{high:.4g}",
        "bottom": f"{low:.4g}",
    }


def _topologies(story: RunStory, evidence: Evidence, fold: Fold) -> list[dict[str, Any]]:
    """Each different matrix once, with the nodes that have it; the rarest first."""
    nodes_of: dict[str, list[str]] = {}
    for step in story.steps.values():
        for node, result in step.results.items():
            for kept in result.kept:
                if looks_like_topology(Printed("", command=kept.name)):
                    nodes_of.setdefault(kept.digest, []).append(node)
    rows = []
    for digest, nodes in sorted(nodes_of.items(), key=lambda item: len(item[1])):
        topology = _topology(evidence, digest)
        if topology is not None:
            rows.append({"nodes": fold(dict.fromkeys(nodes)), **_matrix(topology)})
    return rows


def _topology(evidence: Evidence, digest: str) -> Topology | None:
    try:
        text = evidence.get(digest).decode("utf-8", "backslashreplace")
        return read_topology(Printed(text))
    except (StoreError, ParseError):
        return None


def _matrix(topology: Topology) -> dict[str, Any]:
    names = list(topology.gpus)
    links = list(topology.pair_links().values())
    common = max(links, key=links.count, default="")

    def cell(a: str, b: str) -> dict[str, str]:
        link = topology.links.get((a, b)) or topology.links.get((b, a)) or "X"
        return {"text": link, "level": "" if link in ("X", common) else "fail"}

    rows = [{"name": a, "cells": [cell(a, b) for b in names]} for a in names]
    return {"names": names, "rows": rows}


def _evidence(story: RunStory) -> list[dict[str, Any]]:
    by_node: dict[str, list[dict[str, str]]] = {}
    for step in story.steps.values():
        for node, result in step.results.items():
            for kept in result.kept:
                by_node.setdefault(node, []).append(
                    {
                        "step": step.id,
                        "name": kept.name[:100],
                        "href": f"../evidence/{kept.digest[:2]}/{kept.digest}",
                        "size": f"{kept.size_bytes:,} B",
                        "digest": kept.digest[:12],
                    }
                )
    return [{"node": node, "files": by_node[node]} for node in sorted(by_node)]


HTML = Report(name="html", about="one page, no network", suffix=".html", render=_render)
