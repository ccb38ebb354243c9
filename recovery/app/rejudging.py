"""Judging a run's kept evidence again with today's rules, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
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
from recovery.steps.mesh import MESH, rejudged
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
    """Judges all kept answers of a run's check steps, and its tests of the network, again.

    Raises:
        InputError: no such run, or its inventory is no longer there.
        StoreError: the journal cannot be read.
        ParseError: the run's network tests are of a version that did not keep enough.
    """
    checks = tuple(
        Rejudged(a.step, a.node, a.check.name, a.then, found.level, found.worst)
        for a in judged_again(state, run)
        for found in (a.judged.verdict,)
    )
    return (*checks, *_meshes(*_opened(state, run)))


def judged_again(state: Path, run: str) -> Iterator[Again]:
    """Every kept answer of a run's check steps, with the facts that are read from it today.

    Raises:
        InputError: no such run, or its inventory is no longer there.
        StoreError: the journal cannot be read.
    """
    yield from _all(*_opened(state, run))


def _opened(state: Path, run: str) -> tuple[RunStory, FileEvidence]:
    folder = find_run(state, run)
    story = story_of(read_journal(folder.journal))
    if story.started is None:
        raise InputError(f"run {folder.run} never started", remedy="`recover runs` lists them")
    return story, folder.evidence


def _meshes(story: RunStory, evidence: FileEvidence) -> Iterator[Rejudged]:
    steps = [step for step in story.steps.values() if step.verb == MESH.name]
    if not steps:
        return
    expect = _expectations(story)
    for step in steps:
        plans = [at for at, note in enumerate(step.notes) if note.kind == "mesh.plan"]
        if not plans:
            continue  # it ended before its first test
        newest = step.notes[plans[-1] :]
        tests = [note.facts for note in newest if note.kind == "mesh.test"]
        now = rejudged(newest[0].facts, tests, expect, partial(_kept_text, evidence))
        for node, finding in now.items():
            if node in step.results:
                then = _then(step.results[node])
                yield Rejudged(step.id, node, MESH.name, then.word, finding.level, finding)


def _then(result: NodeResult) -> Level:
    """The level of what its tests said: counters and odd versions are remarks beside it."""
    beside = ("mesh.counters", "mesh.version", "mesh.hca-name", "mesh.no-launcher")
    levels = [f.level for f in result.verdict.findings if f.code not in beside]
    return max(levels, default=Level.PASS)


def _expectations(story: RunStory) -> Callable[[str], dict[str, Any]]:
    inputs = story.started.inputs if story.started else {}
    inventory = preparing.read_inventory(str(inputs.get("cluster", "")))

    def of(name: str) -> dict[str, Any]:
        node = inventory.nodes.get(name)
        return merge_expectations(preparing.profile(node.profile), node) if node else {}

    return of


def _all(story: RunStory, evidence: FileEvidence) -> Iterator[Again]:
    checks = collect("recovery.checks", Check)
    expect = _expectations(story)
    for step in story.steps.values():
        if step.verb != "check":
            continue
        for result in step.results.values():
            yield from _node(step, result, checks, expect(result.node), evidence)


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
    return _kept_text(evidence, digest or "") or ""


def _kept_text(evidence: FileEvidence, digest: str) -> str | None:
    try:
        return evidence.get(digest).decode("utf-8", "backslashreplace") if digest else None
    except StoreError:
        return None
