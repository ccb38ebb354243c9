"""A lab of its own for each test module, and an SSH client to look at it from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import pytest

from recovery.lab import client
from recovery.lab.farm import Plan
from recovery.lab.layout import Layout


@dataclass(frozen=True)
class Answer:
    """What one command said and how it ended."""

    status: int
    out: str
    err: str


class Cluster:
    """A running lab and connections to its nodes."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def ask(self, verb: str, **words: object) -> Any:
        return client.ask(self.layout, verb, **words)

    def node(self, name: str) -> dict[str, Any]:
        return next(n for n in self.ask("status")["nodes"] if n["name"] == name)

    def connect(self, name: str) -> paramiko.SSHClient:
        connection = paramiko.SSHClient()
        connection.load_host_keys(str(self.layout.known_hosts))
        connection.connect(
            "127.0.0.1",
            port=self.node(name)["port"],
            username="root",
            key_filename=str(self.layout.key),
            allow_agent=False,
            look_for_keys=False,
            timeout=10,
            banner_timeout=10,
        )
        return connection

    def run(self, name: str, command: str, stdin: bytes = b"") -> Answer:
        connection = self.connect(name)
        try:
            to, out, err = connection.exec_command(command, timeout=30)
            to.channel.sendall(stdin)
            to.channel.shutdown_write()
            text = out.read().decode(), err.read().decode()
            return Answer(out.channel.recv_exit_status(), *text)
        finally:
            connection.close()


def eventually(holds: Callable[[], object], within_s: float = 20.0) -> None:
    """Waits for a condition, not for a time."""
    until = time.monotonic() + within_s
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < until, "it never became true"
        pause.wait(0.01)


def start(root: Path, n_nodes: int = 3) -> Cluster:
    layout = Layout(root / "lab")
    client.start(layout, Plan(n_nodes=n_nodes, port=0), fresh=False)
    return Cluster(layout)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = start(tmp_path_factory.mktemp("lab"))
    yield running
    client.stop(running.layout)


@pytest.fixture
def well(cluster: Cluster) -> Iterator[Cluster]:
    """The module's lab; what a test broke on it is mended afterwards."""
    yield cluster
    for node in cluster.ask("status")["nodes"]:
        if node["faults"]:
            cluster.ask("mend", nodes=[node["name"]])
    cluster.ask("power-on", nodes=[])
