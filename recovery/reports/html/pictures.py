"""The page's pictures: mesh, bandwidth of pairs, training curves, GPU topologies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recovery.engine.history import RunStory
from recovery.errors import ParseError, StoreError
from recovery.model.output import Printed
from recovery.model.ports import Evidence
from recovery.reading.nccl_size import rate_word
from recovery.reading.topo import looks_like_topology, read_topology
from recovery.reading.topo_words import Topology

Fold = Callable[[Iterable[str]], str]
PAIRS_SHOWN = 16  # nodes in the heat map of pairs: as many as fit side by side, the worst
RAILS_SHOWN = 48
TESTS_SHOWN = 200  # the worst; a node's own page has all of its tests


def tests(story: RunStory) -> list[Mapping[str, Any]]:
    """The facts of all tests of the network, in order."""
    notes = [n for s in story.steps.values() for n in s.notes]
    return [n.facts for n in notes if n.kind == "mesh.test"]


def ladder(story: RunStory) -> list[str]:
    """Each round of each mesh in words."""
    notes = [n for s in story.steps.values() for n in s.notes]
    return [n.message for n in notes if n.kind == "mesh.round"]


def mesh(story: RunStory, fold: Fold) -> list[dict[str, Any]]:
    """The tests of the network, failed ones first, then the slowest."""
    found = sorted(tests(story), key=lambda t: (bool(t.get("ok")), t.get("busbw_gb_per_s") or 0))
    best: dict[tuple[object, ...], float] = {}
    for test in found:
        speed = float(test.get("busbw_gb_per_s") or 0)
        best[_kind(test)] = max(speed, best.get(_kind(test), 0.0))
    return [
        {
            "round": f"{t.get('round', '')} {t.get('level', '')}".strip(),
            "group": fold(t.get("group", ())) + _rail(t),
            "busbw": _busbw(t),
            "colour": _colour(t.get("busbw_gb_per_s"), best[_kind(t)]),
            "level": "pass" if t.get("ok") else "fail",
            "finding": str(t.get("finding") or ""),
        }
        for t in found[:TESTS_SHOWN]
    ]


def _kind(test: Mapping[str, Any]) -> tuple[object, ...]:
    """What a test is compared with: one NIC is no node, a node alone no pair."""
    return len(test.get("group", ())), test.get("rail") is not None, test.get("collective")


def _busbw(test: Mapping[str, Any]) -> str:
    value = test.get("busbw_gb_per_s")
    return rate_word(float(value)) if value is not None else "none"


def _rail(test: Mapping[str, Any]) -> str:
    rail = test.get("rail")
    return f" rail {rail}" if rail is not None else ""


def _colour(value: Any, best: float) -> str:
    """Green at the best seen, red at nothing; half transparent, so that it reads in both modes."""
    share = float(value) / best if value is not None and best > 0 else 0.0
    return f"hsl({round(120 * max(0.0, min(1.0, share)))} 70% 50% / 0.35)"


def pairs(story: RunStory) -> dict[str, Any] | None:
    """The heat map of tests of two nodes, of the worst where there are many; None without any."""
    seen = {
        frozenset(t["group"]): t.get("busbw_gb_per_s")
        for t in tests(story)
        if len(t.get("group", ())) == 2 and t.get("rail") is None
    }
    every = sorted({n for pair in seen for n in pair})
    if not every:
        return None
    names = every if len(every) <= PAIRS_SHOWN else _worst(seen)
    best = max((float(v) for v in seen.values() if v is not None), default=0.0)

    def cell(a: str, b: str) -> dict[str, str]:
        if frozenset((a, b)) not in seen:
            return {"text": "", "colour": "transparent"}
        value = seen[frozenset((a, b))]
        text = f"{float(value):.0f}" if value is not None else "none"
        return {"text": text, "colour": _colour(value, best)}

    rows = [{"name": a, "cells": [cell(a, b) for b in names]} for a in names]
    return {"names": names, "rows": rows, "of": len(every)}


def _worst(seen: Mapping[frozenset[str], Any]) -> list[str]:
    """The nodes of the slowest pairs, as many as are shown, those of the slowest first."""
    found: dict[str, None] = {}
    for pair in sorted(seen, key=lambda pair: (float(seen[pair] or 0), sorted(pair))):
        found.update(dict.fromkeys(sorted(pair)))
        if len(found) >= PAIRS_SHOWN:
            break
    return list(found)[:PAIRS_SHOWN]


def rails(story: RunStory) -> dict[str, Any] | None:
    """The best that each NIC of a node reached, the worst nodes first; None without such tests.

    The best: a slow partner makes one test slow, a slow NIC all of them.
    """
    best: dict[str, dict[int, float]] = {}
    for test in tests(story):
        if test.get("rail") is not None:
            for name in test.get("group", ()):
                reached, rail = float(test.get("busbw_gb_per_s") or 0.0), int(test["rail"])
                of_node = best.setdefault(name, {})
                of_node[rail] = max(reached, of_node.get(rail, 0.0))
    if not best:
        return None
    names = sorted({rail for of_node in best.values() for rail in of_node})
    top = max(value for of_node in best.values() for value in of_node.values())
    worst = sorted(best, key=lambda name: (min(best[name].values()), name))[:RAILS_SHOWN]
    rows = [{"name": n, "cells": [_rail_cell(best[n].get(r), top) for r in names]} for n in worst]
    return {"names": names, "rows": rows, "of": len(best)}


def _rail_cell(value: float | None, top: float) -> dict[str, str]:
    if value is None:
        return {"text": "", "colour": "transparent"}
    return {"text": f"{value:.0f}" if value else "none", "colour": _colour(value, top)}


def curves(story: RunStory) -> list[dict[str, Any]]:
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


def topologies(story: RunStory, evidence: Evidence, fold: Fold) -> list[dict[str, Any]]:
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
