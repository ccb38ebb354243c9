"""Runs as they lie on disk: journal and evidence, without an engine."""

from recovery.store.journal import FileJournal
from recovery.store.runs import new_run


def store(state, run, events_with):
    """Writes a run; ``events_with`` is given its evidence and yields its events."""
    folder = new_run(state, run)
    journal = FileJournal(folder.journal)
    for event in events_with(folder.evidence):
        journal.append(event)
    journal.close()
    return folder
