"""Where the lab keeps its files: one folder, a part of it for each node."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BASE_PORT = 22101
_SOCKET_PATH_LIMIT = 100  # a unix socket's path has room for 104 to 108 bytes


def default_dir() -> Path:
    """The folder of the lab that the shipped inventory means."""
    return Path.home() / ".local" / "state" / "recover-lab"


@dataclass(frozen=True, slots=True)
class Layout:
    """The lab's folder and what is where in it."""

    root: Path

    @property
    def control(self) -> Path:
        """The control socket; elsewhere when the folder's name is too long for a socket."""
        inside = self.root / "control.sock"
        if len(str(inside)) <= _SOCKET_PATH_LIMIT:
            return inside
        mark = hashlib.sha256(str(self.root).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"recover-lab-{os.getuid()}-{mark}.sock"

    @property
    def pid_file(self) -> Path:
        """The background process."""
        return self.root / "lab.pid"

    @property
    def log(self) -> Path:
        """What the background process has to say."""
        return self.root / "lab.log"

    @property
    def inventory(self) -> Path:
        """The inventory of this very lab."""
        return self.root / "inventory.yaml"

    @property
    def key(self) -> Path:
        """The private key that opens every node."""
        return self.root / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys as they were when the lab was made."""
        return self.root / "known_hosts"

    @property
    def fabric(self) -> Path:
        """What the network looks like, for the bandwidth tools."""
        return self.root / "fabric.json"

    @property
    def tools(self) -> Path:
        """The stand-in tools."""
        return self.root / "tools"

    def node(self, name: str) -> Path:
        """Everything of one node."""
        return self.root / "nodes" / name

    def home(self, name: str) -> Path:
        """The node's home folder, where its commands start."""
        return self.node(name) / "home"

    def state(self, name: str) -> Path:
        """The node's `NodeState`."""
        return self.node(name) / "etc" / "state.json"


def plain_python() -> str:
    """The interpreter without our packages: a node's python3 must not know them."""
    return str(Path(sys.executable).resolve())
