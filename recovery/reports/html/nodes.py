"""What the page's script draws from: every node, finding, test and piece of evidence, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from recovery.engine.history import RunStory
from recovery.engine.summary import folded_findings
from recovery.errors import StoreError
from recovery.model.node import CONTROLLER
from recovery.model.ports import Evidence
from recovery.model.result import Kept, NodeResult
from recovery.model.verdict import Finding
from recovery.reports.html.pictures import tests

Fold = Callable[[Iterable[str]], str]
Row = TypeVar("Row", bound=Hashable)
INSIDE_BYTES = 4_000_000  # of evidence that stands in the page itself
HEAD, TAIL = 24_000, 8_000  # of one piece, in characters
LARGEST = 4_000_000  # a larger piece is not opened for the page
FIRST = 8_192  # a piece with a zero byte in its first bytes is no text


@dataclass(slots=True)
class Numbered(Generic[Row]):
    """Each different value once, in the order met, and its number."""

    rows: dict[Row, int] = field(default_factory=dict)

    def of(self, value: Row) -> int:
        """The number of a value, a new one for a new value."""
        return self.rows.setdefault(value, len(self.rows))


def page_data(story: RunStory, evidence: Evidence, fold: Fold) -> dict[str, Any]:
    """JSON-able values; numbers in lists are indexes into the lists of their kind.

    ``nodes``: name, worst level (-1 where nobody answered), why it was set aside, for each step
    null or ``[level, findings, kept, seconds]``. ``kept``: name, digest, bytes. ``texts``: by
    digest ``[text, characters cut from its middle]``.
    """
    names = _names(story)
    found: Numbered[Finding] = Numbered()
    kept: Numbered[Kept] = Numbered()
    nodes = [_node(story, name, found, kept) for name in names]
    places = {name: number for number, name in enumerate(names)}
    findings = [
        [int(f.level), f.step, places_of(f.nodes, places), fold(f.nodes), _words(f), f.remedy]
        for f in folded_findings(story)
    ]
    return {
        "steps": list(story.steps),
        "nodes": nodes,
        "findings": findings,
        "said": [[int(f.level), _words(f), f.remedy, f.code] for f in found.rows],
        "kept": [[k.name, k.digest, k.size_bytes] for k in kept.rows],
        "tests": [_test(t, places, fold) for t in tests(story)],
        "texts": _texts(nodes, list(kept.rows), evidence),
    }


def places_of(names: Iterable[str], places: Mapping[str, int]) -> list[int]:
    """The numbers of nodes by name; a name that no step knows has none."""
    return [places[name] for name in names if name in places]


def _names(story: RunStory) -> list[str]:
    """All nodes, as the run was given them, then those of single steps.

    The controller is one only where it has something to say.
    """
    planned = story.started.nodes if story.started else ()
    results = [r for step in story.steps.values() for r in step.results.values()]
    told = (r.node for r in results if r.node != CONTROLLER.name or r.kept or r.verdict.level)
    return list(dict.fromkeys((*planned, *told)))


def _node(story: RunStory, name: str, found: Numbered[Finding], kept: Numbered[Kept]) -> list[Any]:
    results = [step.results.get(name) for step in story.steps.values()]
    levels = [r.verdict.level for r in results if r is not None]
    aside = story.quarantined.get(name)
    why = f"{aside.step}: {aside.reason}" if aside else ""
    steps = [_result(r, found, kept) if r is not None else None for r in results]
    return [name, int(max(levels)) if levels else -1, why, steps]


def _result(result: NodeResult, found: Numbered[Finding], kept: Numbered[Kept]) -> list[Any]:
    return [
        int(result.verdict.level),
        [found.of(f) for f in result.verdict.findings],
        [kept.of(k) for k in result.kept],
        round(result.duration_s, 1),
    ]


def _words(finding: Any) -> str:
    if finding.component in finding.finding:
        return str(finding.finding)
    return f"{finding.component}: {finding.finding}"


def _test(test: Mapping[str, Any], places: Mapping[str, int], fold: Fold) -> list[Any]:
    group = [str(name) for name in test.get("group", ())]
    speed = test.get("busbw_gb_per_s")
    return [
        f"{test.get('round', '')} {test.get('level', '')}".strip(),
        places_of(group, places),
        fold(group) if group else "",
        None if speed is None else round(float(speed), 1),
        bool(test.get("ok")),
        str(test.get("finding") or ""),
    ]


def _texts(nodes: list[list[Any]], kept: list[Kept], evidence: Evidence) -> dict[str, Any]:
    """The evidence of the worst nodes first, as long as there is room."""
    texts: dict[str, Any] = {}
    room = INSIDE_BYTES
    for digest, size in _worst_first(nodes, kept):
        takes = min(size, HEAD + TAIL)
        if digest in texts or size > LARGEST or takes > room:
            continue
        text = _text_of(evidence, digest)
        if text is not None:
            texts[digest] = text
            room -= takes
        if room < FIRST:
            break
    return texts


def _worst_first(nodes: list[list[Any]], kept: list[Kept]) -> Iterable[tuple[str, int]]:
    for node in sorted(nodes, key=lambda n: -int(n[1])):
        results = [r for r in node[3] if r is not None]
        for result in sorted(results, key=lambda r: -int(r[0])):
            yield from ((kept[number].digest, kept[number].size_bytes) for number in result[2])


def _text_of(evidence: Evidence, digest: str) -> list[Any] | None:
    """The text and how much of its middle was cut; None for what is no text, or not there."""
    try:
        content = evidence.get(digest)
    except StoreError:
        return None
    if b"\0" in content[:FIRST]:
        return None
    text = content.decode("utf-8", "backslashreplace")
    cut = len(text) - HEAD - TAIL
    if cut <= 0:
        return [text, 0]
    return [f"{text[:HEAD]}\n\n[... {cut:,} characters ...]\n\n{text[-TAIL:]}", cut]
