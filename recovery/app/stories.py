"""The runs of a cluster, read from their journals."""

from __future__ import annotations

from pathlib import Path

from recovery.engine.history import RunStory, story_of
from recovery.errors import StoreError
from recovery.store.journal import read_journal
from recovery.store.runs import RunFolder, all_runs


def stories_of(state: Path, cluster: str, *, since: float = 0.0) -> list[RunStory]:
    """The stories of a cluster's runs, oldest first; journals that cannot be read are left out.

    ``since`` leaves out runs that ended before it, without reading them.
    """
    found = []
    for folder in all_runs(state):
        story = _story(folder) if _written_at(folder) >= since else None
        if story is not None and story.started and story.started.cluster == cluster:
            found.append(story)
    return found


def _written_at(folder: RunFolder) -> float:
    try:
        return folder.journal.stat().st_mtime
    except OSError:
        return 0.0


def _story(folder: RunFolder) -> RunStory | None:
    try:
        return story_of(read_journal(folder.journal))
    except StoreError:
        return None
