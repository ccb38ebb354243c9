"""A detached job outlives its connection, starts once, and is found again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recovery.model.node import CONTROLLER
from recovery.model.output import Command, Output
from recovery.model.ports import Transport
from recovery.transports.local import LOCAL
from tests.transports.conftest import LEASH
from tests.transports.servers import processes_with, until

DETACH = (Path(__file__).parents[2] / "recovery" / "payloads" / "detach.sh").read_bytes()
_numbers = itertools.count(os.getpid() * 1000)


class Node:
    """A node with a job folder of its own."""

    def __init__(self, jobs: Path, transport: Transport) -> None:
        self.jobs, self.transport, self.word = jobs, transport, f"996.{next(_numbers)}"

    def __call__(self, *words: str) -> Output:
        import shlex

        line = shlex.join(["sh", "-s", "--", *words])
        env = {"RECOVER_JOBS": str(self.jobs)}
        return self.transport.run(CONTROLLER, Command(line, env=env, stdin=DETACH, grace_s=8))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    transport = LOCAL.open({"leash": LEASH})
    made = Node(tmp_path / "jobs", transport)
    yield made
    for folder in made.jobs.glob("*"):
        made("stop", folder.name, "0")


def said(output: Output) -> dict[str, str]:
    return dict(line.split("=", 1) for line in output.text.splitlines() if "=" in line)


def test_a_job_outlives_its_leash_and_the_stop_of_the_transport(node: Node) -> None:
    started = node("start", "train", "", f"sleep {node.word}; true")

    assert (started.exit_status, said(started)["state"]) == (0, "started")
    node.transport.stop(1)
    assert until(lambda: processes_with(node.word))
    node.transport = LOCAL.open({"leash": LEASH})
    found = node("status", "train")
    assert (found.exit_status, said(found)["state"]) == (0, "running")
    assert said(found)["pid"] == said(started)["pid"]


def test_a_second_start_of_the_same_name_starts_nothing(node: Node) -> None:
    first = node("start", "train", "", f"sleep {node.word}")

    second = node("start", "train", "", f"echo no; sleep {node.word}")

    assert (second.exit_status, said(second)["state"]) == (5, "running")
    assert said(second)["pid"] == said(first)["pid"]
    assert not [p for p in processes_with(node.word) if "echo no" in p]


def test_starts_at_the_same_time_start_one(node: Node) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(5) as pool:
        outputs = list(
            pool.map(lambda _: node("start", "train", "", f"sleep {node.word}"), range(5))
        )

    assert sorted(o.exit_status or 0 for o in outputs) == [0, 5, 5, 5, 5]
    assert len({said(o)["pid"] for o in outputs}) == 1


def test_the_status_of_a_job_that_ended_is_kept_with_its_log(node: Node, tmp_path: Path) -> None:
    log = tmp_path / "a log"
    log.write_text("before\n")
    node("start", "train", str(log), "echo out; echo err >&2; exit 4")

    ended = until(lambda: (o := node("status", "train", "2")).text.startswith("state=ended") and o)

    assert said(ended)["rc"] == "4"
    assert ended.text.endswith("tail=\nout\nerr\n")
    assert log.read_text() == "before\nout\nerr\n"


def test_a_job_that_was_killed_is_lost_not_ended(node: Node) -> None:
    pid = int(said(node("start", "train", "", f"sleep {node.word}; true"))["pid"])
    os.killpg(pid, 9)

    lost = until(lambda: (o := node("status", "train")).exit_status == 3 and o)

    assert (said(lost)["state"], said(lost)["reason"]) == ("lost", "killed")


def test_a_job_of_before_a_boot_is_lost_though_its_pid_is_taken(node: Node) -> None:
    node("start", "train", "", f"sleep {node.word}")
    (node.jobs / "train" / "boot").write_text("00000000-0000-0000-0000-000000000000\n")

    found = node("status", "train")

    assert (found.exit_status, said(found)["reason"]) == (3, "rebooted")
    assert said(node("stop", "train"))["state"] == "lost"
    assert processes_with(node.word)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    (node.jobs / "train" / "boot").write_text(boot)


def test_stop_ends_all_of_it(node: Node) -> None:
    line = f"trap '' TERM; sleep {node.word} & sleep {node.word}; sleep {node.word}"
    node("start", "train", "", line)
    assert until(lambda: len(processes_with(f"sleep {node.word}")) >= 3)

    stopped = node("stop", "train", "1")

    assert (stopped.exit_status, said(stopped)["state"]) == (0, "stopped")
    assert processes_with(node.word) == []
    assert said(node("status", "train"))["state"] == "stopped"


def test_an_earlier_job_is_kept_aside(node: Node) -> None:
    node("start", "train", "", "echo one")
    until(lambda: "ended" in node("status", "train").text)

    node("start", "train", "", "echo two")

    assert (node.jobs / "train.1" / "out").read_text() == "one\n"


@pytest.mark.parametrize("name", ["", "../x", "a b", ".x", "x/y", "x;y"])
def test_a_name_that_could_leave_the_folder_is_refused(node: Node, name: str) -> None:
    found = node("start", name, "", "true")

    assert (found.exit_status, said(found)["state"]) == (6, "failed")


def test_a_job_that_never_was_is_unknown(node: Node) -> None:
    for what in ("status", "stop"):
        found = node(what, "train")
        assert (found.exit_status, said(found)["state"]) == (4, "unknown")


def test_a_log_that_cannot_be_written_is_said_at_once(node: Node, tmp_path: Path) -> None:
    found = node("start", "train", str(tmp_path / "none" / "log"), "true")

    assert (found.exit_status, said(found)["state"]) == (6, "failed")
    assert "cannot write the log" in said(found)["reason"]
