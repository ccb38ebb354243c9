"""The journal: append-only JSON lines; a torn last line is tolerated, a broken middle is not."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from recovery.errors import StoreError
from recovery.model.events import Event, NodeFinished, Noted
from recovery.store.codec import decode, encode

# A lost line of these costs a repeated read-only question, so they need not wait for the disk:
# the step's own end, which follows them, is synced.
_UNSYNCED = (NodeFinished, Noted)


class FileJournal:
    """Appends events to one file; thread-safe; state changes are on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            _cut_torn_tail(self._file)
        except OSError as error:
            raise _unwritable(path, error) from error

    def append(self, event: Event) -> None:
        """Stores one event.

        Raises:
            StoreError: the line could not be written whole; what was written of it is cut again.
        """
        line = json.dumps(encode(event), separators=(",", ":"), default=str).encode() + b"\n"
        with self._lock:
            end = os.fstat(self._file).st_size
            try:
                _write_all(self._file, line)
                if not isinstance(event, _UNSYNCED):
                    os.fsync(self._file)
            except OSError as error:
                with suppress(OSError):  # the torn tail is cut when the journal is opened again
                    os.ftruncate(self._file, end)
                raise _unwritable(self._path, error) from error

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            os.close(self._file)


def read_journal(path: Path) -> tuple[Event, ...]:
    """All events of a journal, a torn last line left out.

    Raises:
        StoreError: no such journal, or a line in its middle that is not an event.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be read: {error.strerror}", remedy="`recover runs` lists the runs"
        ) from error
    lines = raw.split(b"\n")
    return tuple(_event(path, n, line) for n, line in enumerate(lines[:-1], 1) if line)


def read_after(path: Path, offset: int) -> tuple[tuple[Event, ...], int]:
    """The events whose whole lines lie behind ``offset`` bytes, and the offset behind them.

    Raises:
        StoreError: no such journal, it became shorter, or a line that is not an event.
    """
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < offset:
                raise StoreError(f"{path}: became shorter", remedy="read it from its beginning")
            file.seek(offset)
            raw = file.read()
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be read: {error.strerror}", remedy="`recover runs` lists the runs"
        ) from error
    whole = raw[: raw.rfind(b"\n") + 1]
    lines = whole.split(b"\n")
    return tuple(_event(path, n, x) for n, x in enumerate(lines, 1) if x), offset + len(whole)


def _event(path: Path, number: int, line: bytes) -> Event:
    try:
        return decode(json.loads(line))
    except ValueError as error:
        raise StoreError(
            f"{path}:{number}: not JSON: {line[:60]!r}",
            remedy="the lines before it are sound: cut the file there and resume",
        ) from error


def _cut_torn_tail(file: int) -> None:
    size = os.fstat(file).st_size
    keep = size
    while keep > 0:
        start = max(0, keep - 65536)
        block = os.pread(file, keep - start, start)
        newline = block.rfind(b"\n")
        if newline >= 0:
            keep = start + newline + 1
            break
        keep = start
    if keep != size:
        os.ftruncate(file, keep)


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path}: cannot be written: {error.strerror}",
        remedy="free space there or name another folder with --state, then `recover resume`",
    )
