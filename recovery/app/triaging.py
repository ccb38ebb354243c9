"""A recorded run's training logs and kernel logs, for `recover triage --run`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recovery.engine.history import RunStory, story_of
from recovery.errors import InputError, ParseError
from recovery.model.result import NodeResult
from recovery.reading.klog import KernelLog, read_kernel_log
from recovery.reading.trainlog import TrainingLog, read_training_logs
from recovery.steps.freeze import CLOCK_AHEAD
from recovery.store.evidence import FileEvidence
from recovery.store.journal import read_journal
from recovery.store.runs import find_run

TRAINING = "train.log"
KERNEL = ("kernel-log-before", "dmesg", "log-files")


@dataclass(frozen=True, slots=True)
class Crash:
    """What a run kept of a crashed training.

    ``offsets`` are seconds that a node's clock was ahead, measured in the run; ``kernel`` are the
    kernel logs, each with its node.
    """

    log: TrainingLog
    offsets: dict[str, float]
    kernel: tuple[tuple[str, KernelLog], ...] = ()


def crash_of(state: Path, run: str) -> Crash:
    """Reads the logs that a run's `freeze` steps kept: training logs of all nodes as one.

    Raises:
        InputError: no such run, or it kept no training log.
        StoreError: the journal or a kept log cannot be read.
    """
    folder = find_run(state, run)
    frozen = _frozen(story_of(read_journal(folder.journal)))
    logs = {node: kept[TRAINING] for node, kept in _kept(frozen).items() if TRAINING in kept}
    if not logs:
        raise InputError(
            f"run {folder.run} kept no training log",
            remedy="name it in the inventory (train_log) and freeze: [training-state]; "
            "or `recover triage LOG...`",
        )
    offsets = {
        node: float(result.values[CLOCK_AHEAD])
        for node, result in frozen.items()
        if CLOCK_AHEAD in result.values
    }
    evidence = folder.evidence
    by_digest: dict[str, list[str]] = {}
    for node, digest in logs.items():
        by_digest.setdefault(digest, []).append(node)
    sources = (
        # A log on a shared file system is one log: only its own lines tell whose they are.
        (nodes[0] if len(nodes) == 1 else "", _lines(evidence, digest))
        for digest, nodes in by_digest.items()
    )
    log = read_training_logs(sources, offsets=offsets)
    return Crash(log, offsets, tuple(_kernel_logs(frozen, evidence)))


def _frozen(story: RunStory) -> dict[str, NodeResult]:
    """Each node's newest result of a step that kept evidence."""
    return {
        node: result
        for step in story.steps.values()
        if step.verb == "freeze"
        for node, result in step.results.items()
    }


def _kept(frozen: dict[str, NodeResult]) -> dict[str, dict[str, str]]:
    return {node: {k.name: k.digest for k in r.kept} for node, r in frozen.items()}


def _lines(evidence: FileEvidence, digest: str) -> Iterator[str]:
    yield from evidence.get(digest).decode("utf-8", "backslashreplace").split("\n")


def _kernel_logs(
    frozen: dict[str, NodeResult], evidence: FileEvidence
) -> Iterator[tuple[str, KernelLog]]:
    """The boot before the outage, the one since, and files: what one lacks another may have."""
    for node, kept in _kept(frozen).items():
        for name in KERNEL:
            if name not in kept:
                continue
            with contextlib.suppress(ParseError):
                yield node, read_kernel_log(_lines(evidence, kept[name]))
