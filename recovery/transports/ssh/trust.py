"""Which host keys a node may show: policy, files, and the refusal in words."""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import filelock
import paramiko

from recovery.transports.ssh.known_hosts import (
    Answer,
    Judged,
    KnownHosts,
    fingerprint,
    parse,
    read_entry,
    short_type,
)
from recovery.transports.ssh.wire import NodeTransport

SYSTEM_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


class Policy(StrEnum):
    """What happens with a host that is not known; a changed key is always refused.

    ``strict`` refuses. ``accept-new`` writes its key down. ``file`` refuses, and reads only the
    file that the inventory names, not the system-wide ones.
    """

    STRICT = "strict"
    ACCEPT_NEW = "accept-new"
    FILE = "file"


class HostKeyError(paramiko.SSHException):
    """A host showed a key that it may not show."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The policy of a node, and the file that it reads and writes."""

    policy: Policy
    file: str

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are read."""
        return (self.file,) if self.policy is Policy.FILE else (self.file, *SYSTEM_FILES)


class HostKeys:
    """Tables of host keys, each file parsed once. Thread-safe."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, ...], KnownHosts] = {}
        self._lock = threading.Lock()

    def table(self, trust: Trust) -> KnownHosts:
        """The table of the files that this policy reads."""
        with self._lock:
            if trust.files not in self._tables:
                self._tables[trust.files] = parse(_lines(trust.files))
            return self._tables[trust.files]

    def check(self, name: str, transport: NodeTransport, trust: Trust) -> None:
        """Accepts the key that the host showed, or refuses it with both fingerprints.

        Raises:
            HostKeyError: unknown (unless new keys are accepted), changed or revoked.
        """
        blob = transport.host_key_blob
        # Whether a certificate is valid is a question to the wall clock.
        judged = self.table(trust).judge(name, blob, now=time.time())
        if judged.answer is Answer.KNOWN:
            return
        if judged.answer is Answer.UNKNOWN and trust.policy is Policy.ACCEPT_NEW:
            self.remember(name, transport.get_remote_server_key(), trust)
            return
        raise HostKeyError(_refusal(name, transport.get_remote_server_key(), judged, trust))

    def remember(self, name: str, key: paramiko.PKey, trust: Trust) -> None:
        """Writes a new host down, in the file and in the table."""
        line = f"{name} {key.get_name()} {key.get_base64()}"
        with self._lock, _locked(trust.file):
            path = Path(trust.file).expanduser()
            old = path.read_text("utf-8", "surrogateescape") if path.exists() else ""
            gap = "" if old.endswith("\n") or not old else "\n"
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{gap}{line}\n")
            entry = read_entry(line.split())
            if entry is not None and trust.files in self._tables:
                self._tables[trust.files].add(entry)


def replace_keys(file: str, name: str, keys: Iterable[tuple[str, bytes]]) -> None:
    """Makes ``keys`` the only plain keys of a host in a known_hosts file, atomically.

    Lines that also name other hosts keep those; patterns and markers are left alone.
    """
    with _locked(file):
        path = Path(file).expanduser()
        old = path.read_text("utf-8", "surrogateescape") if path.exists() else ""
        kept = [line for line in (_without(line, name) for line in old.splitlines()) if line]
        kept += [f"{name} {kind} {base64.b64encode(blob).decode()}" for kind, blob in keys]
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".known_hosts.")
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as out:
            out.write("\n".join(kept) + "\n")
            out.flush()
            os.fsync(out.fileno())
        Path(draft).replace(path)


def _without(line: str, name: str) -> str:
    words = line.split()
    entry = read_entry(words) if words and words[0][0] != "#" else None
    if entry is None or entry.marker or not entry.names_it(name):
        return line or "#"
    left = [n for n in entry.names if n != name and not (n[0] == "|" and entry.names_it(name))]
    if len(left) == len(entry.names):  # only a pattern names it
        return line
    return " ".join([",".join(left), *words[1:]]) if left else ""


@contextlib.contextmanager
def _locked(file: str) -> Iterator[None]:
    path = Path(file).expanduser()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with filelock.FileLock(f"{path}.lock", timeout=30):
        yield


def _lines(files: tuple[str, ...]) -> Iterable[str]:
    for file in files:
        path = Path(file).expanduser()
        if path.is_file():
            yield from path.read_text("utf-8", "surrogateescape").splitlines()


def _refusal(name: str, key: paramiko.PKey, judged: Judged, trust: Trust) -> str:
    shown = f"{fingerprint(key.asbytes())} ({short_type(key.get_name())})"
    if judged.answer is Answer.REVOKED:
        return f"{name} shows a key that is marked @revoked in {trust.file}: {shown}"
    if judged.answer is Answer.CHANGED:
        known = ", ".join(judged.known)
        return f"the host key of {name} has changed: it shows {shown}, {trust.file} has {known}"
    remark = f"; {judged.remark}" if judged.remark else ""
    return f"{name} is not in {trust.file}; it shows {shown}{remark}"
