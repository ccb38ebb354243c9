"""What runs there are, and how each ended; a run whose owner is gone is `crashed`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recovery.engine.history import RunStory, story_of
from recovery.errors import StoreError
from recovery.store.journal import read_journal
from recovery.store.lock import ClusterLock
from recovery.store.runs import RunFolder, all_runs


def list_runs(state: Path) -> list[dict[str, Any]]:
    """One row a run, newest first: run, cluster, runbook, state, reason, started_at."""
    return [row_of(state, folder) for folder in reversed(all_runs(state))]


def row_of(state: Path, folder: RunFolder) -> dict[str, Any]:
    """The row of one run."""
    try:
        story = story_of(read_journal(folder.journal))
    except StoreError as error:
        return unreadable_row(folder.run, error)
    return row_from(state, folder, story)


def row_from(state: Path, folder: RunFolder, story: RunStory) -> dict[str, Any]:
    """The row of a run whose story is known."""
    row: dict[str, Any] = {"run": folder.run, "cluster": "", "runbook": "", "reason": ""}
    if story.started is None:
        return {**row, "state": "never started", "started_at": None}
    row |= {"cluster": story.started.cluster, "runbook": story.started.runbook}
    row["started_at"] = story.started.at
    row["state"], row["reason"] = state_of(state, folder, story)
    return row


def unreadable_row(run: str, error: StoreError) -> dict[str, Any]:
    """The row of a run whose journal cannot be read."""
    row = {"run": run, "cluster": "", "runbook": "", "reason": error.message}
    return {**row, "state": "unreadable", "started_at": None}


def state_of(state: Path, folder: RunFolder, story: RunStory) -> tuple[str, str]:
    """How the run stands, and why: its outcome, ``running`` or ``crashed``."""
    if story.finished is not None:
        return story.finished.outcome, story.finished.reason
    cluster = story.started.cluster if story.started else ""
    holder = ClusterLock(state / "locks", cluster).holder()
    at = story.current.id if story.current else "the start"
    if holder is not None and holder.run == folder.run and not holder.is_gone:
        return "running", f"at {at}, by {holder.words}"
    return "crashed", f"at {at}; go on with `recover resume {folder.run}`"
