"""Processes of the lab's nodes: found by the marker in their environment, ended by their id."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """One living process of a node."""

    pid: int
    node: str
    command: str


def of_lab(root: Path) -> tuple[NodeProcess, ...]:
    """Every living process that was started on a node of this lab, however it detached itself."""
    found = _from_proc(root) if Path("/proc/self/environ").exists() else _from_ps(root)
    return tuple(sorted(found, key=lambda p: (p.node, p.pid)))


def kill(root: Path, nodes: frozenset[str]) -> int:
    """Ends all processes of these nodes at once, as a power loss does; returns how many.

    Looks again until none is left, for a process may have forked in between.
    """
    ended: set[int] = set()
    for _ in range(50):
        alive = [p for p in of_lab(root) if p.node in nodes]
        if not alive:
            break
        for process in alive:
            _send_kill(process.pid)
            ended.add(process.pid)
    return len(ended)


def _send_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _from_proc(root: Path) -> Iterator[NodeProcess]:
    lab = f"RECOVER_LAB_DIR={root}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            if lab not in environment or _is_zombie(folder):
                continue
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:  # it ended, or is not ours
            continue
        node = next((e[17:] for e in environment if e.startswith(b"RECOVER_LAB_NODE=")), None)
        if node is not None:
            yield NodeProcess(int(folder.name), node.decode(), command.strip())


def _is_zombie(folder: Path) -> bool:
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"


def _from_ps(root: Path) -> Iterator[NodeProcess]:
    listing = subprocess.run(
        ["ps", "-axwwE", "-o", "pid=,command="], capture_output=True, text=True, check=False
    ).stdout
    for line in listing.splitlines():
        if f"RECOVER_LAB_DIR={root} " not in f"{line} ":
            continue
        words = line.split()
        node = next((w[17:] for w in words if w.startswith("RECOVER_LAB_NODE=")), None)
        if node is not None:
            yield NodeProcess(int(words[0]), node, " ".join(words[1:6]))
