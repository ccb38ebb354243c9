"""A remote command is dead when we say so: command shapes against ways to end them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recovery.model.node import CONTROLLER
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Transport
from tests.transports.conftest import LEASH
from tests.transports.servers import Place, processes_with, until

SHAPES = {
    "plain": "exec sleep 999.{n}",
    "child": "sleep 999.{n}; true",
    "nohup": "nohup sleep 999.{n} >/dev/null 2>&1",
    "background": "sleep 999.{n} & wait",
    "own setsid": "setsid sh -c 'sleep 999.{n}; true' & sleep 999.{n}",
    "left by its parent": "(setsid nohup sleep 999.{n} >/dev/null 2>&1 &) ; sleep 999.{n}",
    "clean environment": "env -i setsid sleep 999.{n} & sleep 999.{n}",
    "ignores TERM": "trap '' TERM; sleep 999.{n}; sleep 999.{n}",
}
_numbers = itertools.count(os.getpid() * 1000)


class Started:
    """All shapes at once on one place, each in a thread; ``word`` is in all their arguments."""

    def __init__(self, place: Place, transport: Transport, *, timeout_s: float) -> None:
        self.word = str(next(_numbers))
        self.outputs: dict[str, Output] = {}
        self.threads = []
        for shape, line in SHAPES.items():
            command = Command(line.format(n=self.word), timeout_s=timeout_s, grace_s=10)
            work = threading.Thread(target=self._run, args=(place, transport, shape, command))
            work.start()
            self.threads.append(work)

    def _run(self, place: Place, transport: Transport, shape: str, command: Command) -> None:
        self.outputs[shape] = transport.run(place.node, command)

    def all_run(self) -> bool:
        sleeping = [p for p in processes_with(self.word) if ": sleep" in p or ": nohup" in p]
        return len(sleeping) >= len(SHAPES) + 3

    def ended(self) -> dict[str, Output]:
        for thread in self.threads:
            thread.join(120)
        return self.outputs


def test_nothing_is_left_after_the_limit(place: Place, transport: Transport) -> None:
    started = Started(place, transport, timeout_s=5)

    outputs = started.ended()

    assert processes_with(started.word) == []
    assert {shape: o.ending for shape, o in outputs.items()} == dict.fromkeys(
        SHAPES, Ending.TIMEOUT
    )
    assert {o.trouble for o in outputs.values()} == {""}


def test_nothing_is_left_after_stop(place: Place, transport: Transport) -> None:
    started = Started(place, transport, timeout_s=100)
    assert until(started.all_run), processes_with(started.word)

    transport.stop(30)

    outputs = started.ended()
    assert processes_with(started.word) == []
    assert {o.ending for o in outputs.values()} == {Ending.LOST}
    assert {o.reason for o in outputs.values()} == {"stopped on request; its processes were ended"}
    after = transport.run(place.node, Command("true"))
    assert (after.ending, after.reason) == (Ending.NEVER_STARTED, "stopped on request")


def test_nothing_is_left_after_the_connection_is_cut(place: Place, transport: Transport) -> None:
    if place.node is CONTROLLER:
        pytest.skip("there is no connection to the controller")
    started = Started(place, transport, timeout_s=100)
    assert until(started.all_run), processes_with(started.word)

    place.cut()

    outputs = started.ended()
    assert until(lambda: not processes_with(started.word)), processes_with(started.word)
    assert {o.ending for o in outputs.values()} == {Ending.LOST}
    assert all("lost" in o.reason for o in outputs.values())
    assert transport.run(place.node, Command("echo again")).stdout == b"again\n"


CONTROLLER_PROGRAM = """
import sys, threading
from pathlib import Path
from recovery.model.node import Node
from recovery.model.output import Command
from recovery.registry import pick
from recovery.model.ports import TransportKind
name, address, port, user, variables, *lines = eval(sys.stdin.read())
kind = pick("recovery.transports", TransportKind, name)
transport = kind.open({"leash": Path(sys.argv[1]).read_text()})
node = Node("n1", address, port, user, variables=variables)
for line in lines:
    command = Command(line, timeout_s=100)
    threading.Thread(target=transport.run, args=(node, command)).start()
"""


def test_nothing_is_left_after_kill_9_of_the_controller(place: Place, tmp_path: Path) -> None:
    word = str(next(_numbers))
    leash = tmp_path / "leash.sh"
    leash.write_text(LEASH)
    node = place.node
    name = "local" if node is CONTROLLER else "ssh"
    lines = [line.format(n=word) for line in SHAPES.values()]
    wanted = repr((name, node.address, node.port, node.user, dict(node.variables), *lines))
    program = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER_PROGRAM, str(leash)], stdin=subprocess.PIPE, text=True
    )
    assert program.stdin is not None
    with program.stdin as stdin:
        stdin.write(wanted)
    assert until(lambda: len(processes_with(word)) >= len(SHAPES) + 3), processes_with(word)

    program.kill()
    program.wait()

    assert until(lambda: not processes_with(word)), processes_with(word)
