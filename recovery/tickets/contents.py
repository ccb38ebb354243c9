"""Which evidence of a node goes into a ticket, under which name, and what stays at home and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.engine.history import RunStory, StepStory
from recovery.errors import InputError
from recovery.model.result import Kept
from recovery.model.verdict import Level
from recovery.registry import did_you_mean

# Of the training, not of the machine: its log, its checkpoints, where they lie.
_TRAINING_VERBS = ("launch", "verify", "checkpoint")
_TRAINING_NAMES = ("train.log", "checkpoints.txt")
_OURS = ("manifest.json",)
LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence. ``left_out`` says why it stays at home; empty when it goes."""

    path: str
    step: str
    kept: Kept
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """All about one node of one run."""

    run: str
    node: str
    runbook: str
    started_at: float
    pieces: tuple[Piece, ...]
    verdicts: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    aside: str = ""

    @property
    def going(self) -> tuple[Piece, ...]:
        """What goes."""
        return tuple(p for p in self.pieces if not p.left_out)


def ticket_of(story: RunStory, node: str, *, also: tuple[str, ...] = ()) -> Ticket:
    """The ticket of one node. ``also`` are names of evidence that would be left out else.

    Raises:
        InputError: the run has no such node, or no such evidence.
    """
    started = story.started
    names = dict.fromkeys(name for step in story.steps.values() for name in step.results)
    if started is None or node not in names:
        known = list(names)
        raise InputError(
            f"the run has nothing about {node!r}{did_you_mean(node, known)}",
            remedy="`recover report RUN` lists its nodes",
        )
    pieces = tuple(_pieces(story, node, also))
    strange = set(also) - {piece.kept.name for piece in pieces}
    if strange:
        raise InputError(
            f"no evidence is called {sorted(strange)[0]!r}", remedy="`--list` shows the names"
        )
    aside = story.quarantined.get(node)
    return Ticket(
        run=started.run,
        node=node,
        runbook=started.runbook,
        started_at=started.at,
        pieces=pieces,
        verdicts=tuple(_verdicts(story, node)),
        facts=_facts(story, node),
        aside=f"{aside.step}: {aside.reason}" if aside else "",
    )


def _pieces(story: RunStory, node: str, also: tuple[str, ...]) -> Iterator[Piece]:
    taken: set[str] = set()
    paths: set[str] = set()
    for step in story.steps.values():
        result = step.results.get(node)
        for kept in result.kept if result else ():
            why = "" if kept.name in also else _left_out(step, kept)
            if kept.digest in taken and not why:
                why = "the same as another piece"
            taken.add(kept.digest)
            path = _path(step.id, kept.name, paths)
            yield Piece(path, step.id, kept, why)


def _left_out(step: StepStory, kept: Kept) -> str:
    if kept.name in _OURS:
        return "our own list; the ticket has one of its own"
    if step.verb in _TRAINING_VERBS or kept.name in _TRAINING_NAMES:
        return "of the training, not of the machine"
    return ""


def _path(step: str, name: str, paths: set[str]) -> str:
    """``evidence/STEP/NAME``: of letters, digits, ``.``, ``_`` and ``-`` alone; each once."""
    plain = [re.sub(r"[^\w.-]+", "_", part, flags=re.ASCII).strip("._-") for part in (step, name)]
    short = plain[1][:LONGEST_NAME].rstrip("._-") or "evidence"
    base = f"evidence/{plain[0] or 'step'}/{short}"
    path, number = base, 1
    while path in paths:
        number += 1
        path = f"{base}-{number}"
    paths.add(path)
    return path


def _verdicts(story: RunStory, node: str) -> Iterator[Mapping[str, Any]]:
    for step in story.steps.values():
        result = step.results.get(node)
        if result is None:
            continue
        findings = sorted(result.verdict.findings, key=lambda f: -f.level)
        yield {
            "step": step.id,
            "level": result.verdict.level.word,
            "ended": result.ending.value,
            "findings": [
                {
                    "level": f.level.word,
                    "component": f.component,
                    "code": f.code,
                    "finding": f.finding,
                    "remedy": f.remedy if f.level is not Level.PASS else "",
                }
                for f in findings
            ],
        }


def _facts(story: RunStory, node: str) -> Mapping[str, Any]:
    """What the checks read, by check: versions of driver, firmware, BIOS; the newest answer."""
    found: dict[str, Any] = {}
    for step in story.steps.values():
        result = step.results.get(node)
        told = result.values.get("facts") if result else None
        if isinstance(told, Mapping):
            found |= {str(check): facts for check, facts in told.items() if facts}
    return found
