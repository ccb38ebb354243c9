"""One run per cluster: a lock with its owner's words."""

from __future__ import annotations

import json
import os
import signal
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from recovery.errors import LockedError, StoreError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a cluster."""

    user: str
    host: str
    pid: int
    boot_id: str
    run: str
    since: float
    step: str = ""

    @property
    def words(self) -> str:
        """``ada@head1 (pid 4711)``."""
        return f"{self.user}@{self.host} (pid {self.pid})"

    @property
    def is_gone(self) -> bool:
        """Claims that the process is surely gone: same host, other boot or no such pid."""
        if self.host != socket.gethostname():
            return False
        if self.boot_id != boot_id():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


def boot_id() -> str:
    """This machine's boot id; empty where the kernel does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class ClusterLock:
    """Held for the length of a run. The kernel lets go of it when the process dies."""

    def __init__(self, folder: Path, cluster: str) -> None:
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in cluster)
        self._owner_file = folder / f"{safe}.owner.json"
        self._lock = FileLock(folder / f"{safe}.lock")
        self._cluster = cluster
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{folder}: cannot be made: {error.strerror}",
                remedy="name another folder with --state",
            ) from error

    def acquire(self, owner: Owner, *, now: float, take_over_s: float | None = None) -> None:
        """Takes the lock and writes who holds it.

        ``take_over_s``: ask the holder to stop (TERM) and wait this long for its end.

        Raises:
            LockedError: somebody else holds it.
        """
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            if take_over_s is None:
                raise self._refusal(now) from None
            self._push_out(take_over_s, now)
        self.tell(owner)

    def tell(self, owner: Owner) -> None:
        """Writes the owner's words again (the step changed)."""
        part = self._owner_file.with_suffix(".part")
        part.write_text(json.dumps(asdict(owner)))
        part.replace(self._owner_file)

    def holder(self) -> Owner | None:
        """Who wrote the owner file last, if anybody."""
        try:
            values: dict[str, Any] = json.loads(self._owner_file.read_text())
            return Owner(**values)
        except (OSError, ValueError, TypeError):
            return None

    def release(self) -> None:
        """Lets go."""
        self._owner_file.unlink(missing_ok=True)
        self._lock.release()

    def _push_out(self, wait_s: float, now: float) -> None:
        holder = self.holder()
        if holder is None or holder.host != socket.gethostname():
            raise self._refusal(now)
        try:
            os.kill(holder.pid, signal.SIGTERM)
        except (ProcessLookupError, PermissionError) as error:
            raise self._refusal(now) from error
        try:
            self._lock.acquire(timeout=wait_s)
        except Timeout:
            raise self._refusal(now) from None

    def _refusal(self, now: float) -> LockedError:
        holder = self.holder()
        if holder is None:
            words = "somebody"
        else:
            age = f"{int(now - holder.since)} s"
            at = f", at step {holder.step}" if holder.step else ""
            words = f"{holder.words} since {age} in run {holder.run}{at}"
        return LockedError(
            f"{self._cluster} is held by {words}",
            remedy="wait for its end, or stop it and go on with --take-over",
        )
