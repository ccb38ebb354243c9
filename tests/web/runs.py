"""A run that goes on while it is watched: its lock is held, its journal grows as a test says."""

import os
import socket
from contextlib import contextmanager

from recovery.store.journal import FileJournal
from recovery.store.lock import ClusterLock, Owner, boot_id
from recovery.store.runs import new_run


@contextmanager
def running(state, run):
    """The journal of a run that holds the cluster `c`."""
    lock = ClusterLock(state / "locks", "c")
    owner = Owner("ada", socket.gethostname(), os.getpid(), boot_id(), run, 0.0)
    lock.acquire(owner, now=0.0)
    journal = FileJournal(new_run(state, run).journal)
    try:
        yield journal
    finally:
        journal.close()
        lock.release()
