"""A run in words for people: worst first, nodes folded, the remedy beside the finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recovery.engine.history import RunStory, StepStory
from recovery.model.verdict import Level

Fold = Callable[[Iterable[str]], str]


@dataclass(frozen=True, slots=True)
class FoldedFinding:
    """One finding of one step, and all nodes that have it."""

    level: Level
    step: str
    nodes: tuple[str, ...]
    finding: str
    remedy: str
    component: str = ""
    code: str = ""


def folded_findings(story: RunStory) -> tuple[FoldedFinding, ...]:
    """All findings above PASS, worst first, then in step order; equal ones share their nodes."""
    rows: dict[tuple[Level, str, str, str, str, str], list[str]] = {}
    for step in story.steps.values():
        for node, result in step.results.items():
            for f in result.verdict.findings:
                key = (f.level, step.id, f.finding, f.remedy, f.component, f.code)
                rows.setdefault(key, []).append(node)
        for f in step.verdict.findings if step.verdict else ():
            rows.setdefault((f.level, step.id, f.finding, f.remedy, f.component, f.code), [])
    found = (
        FoldedFinding(level, step, tuple(nodes), finding, remedy, component, code)
        for (level, step, finding, remedy, component, code), nodes in rows.items()
        if level is not Level.PASS
    )
    return tuple(sorted(found, key=lambda f: -f.level))


def printable(text: str) -> str:
    """The text without control characters: what a node said must not move a cursor or a page."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def counts(step: StepStory) -> str:
    """``6 pass, 2 fail``: how many nodes have which level, best first."""
    levels = [r.verdict.level for r in step.results.values()]
    return ", ".join(f"{levels.count(v)} {v.word}" for v in Level if v in levels)


def took(seconds: float) -> str:
    """A duration for people: ``0.4 s``, ``12 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def summary_lines(story: RunStory, fold: Fold, *, most: int = 30) -> list[str]:
    """The end of the run: what is wrong, who was set aside, what was decided, what to type next."""
    lines = [""]
    findings = folded_findings(story)
    for f in findings[:most]:
        who = fold(f.nodes) if f.nodes else "the step"
        lines.append(f"{f.level.name:7} {f.step}: {who}: {f.finding}")
        lines.append(f"        remedy: {f.remedy}")
    if len(findings) > most:
        lines.append(f"        and {len(findings) - most} more: recover report --format text")
    lines += [f"set aside: {fold(nodes)}: {reason}" for reason, nodes in _set_aside(story).items()]
    lines += [f"saved: {name} = {value}" for name, value in story.saved.items()]
    lines += [f"verified: {words}" for words in _verified(story, fold)]
    return [printable(line) for line in lines + _end(story)]


def _verified(story: RunStory, fold: Fold) -> list[str]:
    """What passed as proof that the training goes on: the reason for the whole run."""
    found: dict[str, list[str]] = {}
    for step in story.steps.values():
        for node, result in step.results.items() if step.verb == "verify" else ():
            if result.verdict.level is Level.PASS:
                found.setdefault(result.verdict.worst.finding, []).append(node)
    return [f"{fold(nodes)}: {words}" for words, nodes in found.items()]


def _set_aside(story: RunStory) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node, event in story.quarantined.items():
        found.setdefault(f"{event.step}: {event.reason}", []).append(node)
    return found


def _end(story: RunStory) -> list[str]:
    if story.finished is None:
        return ["the run has not ended"]
    end = story.finished
    started = story.started.at if story.started else end.at
    lines = [f"{end.outcome.upper()}: {end.reason} ({took(end.at - started)})"]
    if story.interrupted is not None:
        left = story.interrupted.unfinished
        lines.append(f"unfinished at {story.interrupted.step or 'the start'}: {len(left)} nodes")
    if end.next_command:
        lines.append(f"next: {end.next_command}")
    return lines
