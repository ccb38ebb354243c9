"""Judging a run's kept evidence again with today's rules, and what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recovery.app import preparing
from recovery.engine.history import RunStory, StepStory, story_of
from recovery.engine.judging import AnyCheck, Judged, judge_one
from recovery.errors import InputError, StoreError
from recovery.inventory import merge_expectations
from recovery.model.check import Check
from recovery.model.output import Ending, Printed
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, Level
from recovery.registry import collect
from recovery.steps.check import STDERR
from recovery.store.evidence import FileEvidence
from recovery.store.journal import read_journal
from recovery.store.runs import find_run


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One check on one node: its level in the run, its level by today's rules."""

    step: str
    node: str
    check: str
    then: str
    now: Level
    worst: Finding

    @property
    def changed(self) -> bool:
        """Claims that today's rules conclude something else."""
        return self.then != self.now.word


@dataclass(frozen=True, slots=True)
class Again:
    """One kept answer, judged by today's rules."""

    step: str
    node: str
    check: AnyCheck
    then: str
    judged: Judged


def rejudge(state: Path, run: str) -> tuple[Rejudged, ...]:
    """Judges all kept answers of a run's check steps again.

    Raises:
        InputError: no such run, or its inventory is no longer there.
        StoreError: the journal cannot be read.
    """
    return tuple(
        Rejudged(a.step, a.node, a.check.name, a.then, found.level, found.worst)
        for a in judged_again(state, run)
        for found in (a.judged.verdict,)
    )


def judged_again(state: Path, run: str) -> Iterator[Again]:
    """Every kept answer of a run's check steps, with the facts that are read from it today.

    Raises:
        InputError: no such run, or its inventory is no longer there.
        StoreError: the journal cannot be read.
    """
    folder = find_run(state, run)
    story = story_of(read_journal(folder.journal))
    if story.started is None:
        raise InputError(f"run {folder.run} never started", remedy="`recover runs` lists them")
    yield from _all(story, folder.evidence)


def _all(story: RunStory, evidence: FileEvidence) -> Iterator[Again]:
    checks = collect("recovery.checks", Check)
    inputs = story.started.inputs if story.started else {}
    inventory = preparing.read_inventory(str(inputs.get("cluster", "")))
    for step in story.steps.values():
        if step.verb != "check":
            continue
        for result in step.results.values():
            node = inventory.nodes.get(result.node)
            profile = preparing.profile(node.profile) if node else None
            raw = merge_expectations(profile, node) if node else {}
            yield from _node(step, result, checks, raw, evidence)


def _node(
    step: StepStory,
    result: NodeResult,
    checks: dict[str, AnyCheck],
    raw: dict[str, Any],
    evidence: FileEvidence,
) -> Iterator[Again]:
    if result.ending is Ending.NEVER_STARTED:
        return
    kept = {k.name: k.digest for k in result.kept}
    statuses = result.values.get("statuses", {})
    for name, then in result.values.get("checks", {}).items():
        check = checks.get(name)
        line = next((s for s in statuses if check and s == check.command), None)
        if check is None or line is None:
            continue  # its command is another one today: this answer is not to its question
        text, error = _text(evidence, kept.get(line)), _text(evidence, kept.get(f"{STDERR}{line}"))
        judged = judge_one(check, Printed(text, error, statuses[line], line), raw)
        yield Again(step.id, result.node, check, then, judged)


def _text(evidence: FileEvidence, digest: str | None) -> str:
    if digest is None:
        return ""
    try:
        return evidence.get(digest).decode("utf-8", "backslashreplace")
    except StoreError:
        return ""
