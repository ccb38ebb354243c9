"""The web page joined with the runs on disk, and served."""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recovery import inventory as inventories
from recovery.app.listing import row_from, state_of, unreadable_row
from recovery.app.reporting import render
from recovery.engine.history import RunStory
from recovery.errors import InputError, StoreError
from recovery.reports.html.page import policy
from recovery.store.journal import read_after
from recovery.store.runs import RunFolder, all_runs
from recovery.web.guard import Guard
from recovery.web.source import Source

REPORTS_KEPT, OPEN_KEPT = 4, 4


@dataclass(slots=True)
class Follower:
    """A run whose journal is read on from where it was left."""

    state: Path
    folder: RunFolder
    story: RunStory = field(default_factory=RunStory)
    _offset: int = 0

    def look(self) -> tuple[RunStory, str, str]:
        """Takes in what is new and tells how the run stands."""
        events, self._offset = read_after(self.folder.journal, self._offset)
        for event in events:
            self.story.tell(event)
        if self.story.started is None:
            return self.story, "never started", ""
        return (self.story, *state_of(self.state, self.folder, self.story))


@dataclass(slots=True)
class Runs:
    """The runs of one state folder; what does not change is read once."""

    state: Path
    _rows: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    _open: OrderedDict[str, Follower] = field(default_factory=OrderedDict)
    _reports: OrderedDict[tuple[str, int], str] = field(default_factory=OrderedDict)
    _listing: threading.Lock = field(default_factory=threading.Lock)
    _rendering: threading.Lock = field(default_factory=threading.Lock)

    def rows(self) -> list[dict[str, Any]]:
        """All runs, newest first: of one that ended nothing is read again, of another its news."""
        with self._listing:
            return [self._row(folder) for folder in reversed(all_runs(self.state))]

    def _row(self, folder: RunFolder) -> dict[str, Any]:
        size = _size(folder)
        known_size, row = self._rows.get(folder.run, (-1, {}))
        if size == known_size:
            return row
        follower = self._open.pop(folder.run, None) or Follower(self.state, folder)
        try:
            story, _, _ = follower.look()
        except StoreError as error:
            return unreadable_row(folder.run, error)
        row = row_from(self.state, folder, story)
        if story.finished is not None:
            self._rows[folder.run] = (size, row)
            return row
        self._open[folder.run] = follower
        while len(self._open) > OPEN_KEPT:
            self._open.popitem(last=False)
        return row

    def find(self, run: str) -> RunFolder | None:
        """The run of exactly this name among those that are there."""
        return next((f for f in all_runs(self.state) if f.run == run), None)

    def follow(self, run: str) -> Follower | None:
        """A new follower of a run."""
        folder = self.find(run)
        return Follower(self.state, folder) if folder else None

    def report(self, run: str) -> str | None:
        """The run's HTML report as of now."""
        folder = self.find(run)
        if folder is None:
            return None
        key = (run, _size(folder))
        with self._rendering:  # one at a time: a report of thousands of nodes takes seconds
            if key not in self._reports:
                self._reports[key] = render(folder, "html")
                while len(self._reports) > REPORTS_KEPT:
                    self._reports.popitem(last=False)
            return self._reports[key]

    def evidence(self, run: str, digest: str) -> bytes | None:
        """The bytes of a digest; None where the run or the evidence is not there."""
        folder = self.find(run)
        if folder is None or not folder.evidence.path(digest).is_file():
            return None
        return folder.evidence.get(digest)


def _size(folder: RunFolder) -> int:
    try:
        return folder.journal.stat().st_size
    except OSError as error:
        raise StoreError(f"{folder.run}: {error.strerror}", remedy="look at its folder") from error


def source_of(state: Path) -> Source:
    """What the web page may read of a state folder."""
    runs = Runs(state)
    return Source(
        rows=runs.rows,
        follow=runs.follow,
        report=runs.report,
        evidence=runs.evidence,
        report_policy=policy(),
        fold=inventories.fold,
        now=time.time,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        InputError: the port is taken, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        remedy = "name another with --port, or an address of this machine with --host"
        raise InputError(f"{host} port {port}: {why}", remedy=remedy) from error


def run_server(app: Guard, listener: socket.socket, tls: tuple[str, str] | None) -> None:
    """Serves until SIGINT or SIGTERM.

    Raises:
        InputError: certificate or key cannot be used.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        limit_concurrency=200,
        timeout_graceful_shutdown=1,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )
    try:
        config.load()
    except OSError as error:
        raise InputError(
            f"certificate or key cannot be used: {error}", remedy="PEM files: --cert and --key"
        ) from error
    with suppress(KeyboardInterrupt):  # the server ends first, then tells it
        uvicorn.Server(config).run(sockets=[listener])
