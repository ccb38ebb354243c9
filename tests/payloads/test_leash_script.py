"""The leash under the shells that nodes have, and where a node lacks a part of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recovery.model.node import CONTROLLER
from recovery.model.output import Command, Ending, Output
from recovery.reading.leash import Ended, leashed, one_line, output
from recovery.transports.local import LOCAL
from tests.transports.conftest import LEASH
from tests.transports.servers import processes_with, until

SHELLS = [["dash"], ["bash", "--posix"], ["bash"], ["busybox", "sh"]]
MARK = "0123456789abcdef"


@pytest.fixture(params=SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    words: list[str] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]} here")
    return words


def run_in(shell: list[str], command: Command, *, env: dict[str, str] | None = None) -> Output:
    """Runs a leashed command under a shell; its input ends only when it has ended."""
    sent = leashed(command, one_line(LEASH), MARK, limit_s=command.timeout_s)
    words = [*shell, "-c", 'IFS= read -r l && eval "$l"', "recover-leash"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(sent.opening)
        process.stdin.flush()
        out, err = process.stdout.read(), process.stderr.read()
        status = process.wait()
    return output(command, MARK, Ended(status=status, stdout=(out, 0), stderr=(err, 0)))


def test_everything_arrives_under_each_shell(shell: list[str]) -> None:
    command = Command(
        "cat; printf '%s' \"$A\"; echo err >&2; exit 7",
        env={"A": "é'\n$(x) \\ \x01\x7f"},
        stdin=b"\0in\xff",
    )

    found = run_in(shell, command)

    assert found.stdout == b"\0in\xff" + command.env["A"].encode()
    assert (found.stderr, found.exit_status, found.reason) == (b"err\n", 7, "")


def test_the_command_sees_nothing_of_the_leash_but_the_mark(shell: list[str]) -> None:
    names = run_in(shell, Command("env | sed 's/=.*//' | grep -v '^[A-Z]*$'")).text.split()

    assert [n for n in names if "rl_" in n or "RECOVER" in n] == [f"RECOVER_LEASH_{MARK}"]


def test_the_limit_ends_all_shapes_under_each_shell(shell: list[str]) -> None:
    word = f"997.{os.getpid()}{SHELLS.index(shell)}"
    line = (
        f"trap '' TERM; (setsid nohup sleep {word} >/dev/null 2>&1 &); sleep {word} & sleep {word}"
        f"; sleep {word}"
    )

    found = run_in(shell, Command(line, timeout_s=1, grace_s=2))

    assert found.ending is Ending.TIMEOUT
    assert processes_with(word) == []


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with only the tools that the leash cannot do without."""
    for tool in ("sh", "cat", "sleep", "grep", "sed", "tr", "head", "wc", "rm"):
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    return tmp_path


def test_a_missing_timeout_is_said_and_the_command_runs(bare_path: Path) -> None:
    found = run_in([str(bare_path / "sh")], Command("echo ran"), env={"PATH": str(bare_path)})

    assert (found.ok, found.stdout) == (True, b"ran\n")
    assert found.reason == "the node lacks timeout"


def test_a_cut_input_runs_nothing(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = Command("sh -s", stdin=f"touch {ran}\n".encode() * 3)
    sent = leashed(command, one_line(LEASH), MARK, limit_s=5)

    done = subprocess.run(
        ["/bin/sh", "-c", sent.line], input=sent.opening[:-5], capture_output=True, check=False
    )

    assert not ran.exists()
    assert b"never" in done.stderr
    assert not list(Path("/dev/shm").glob(f"*{MARK}*"))


def test_a_sudo_that_wants_a_password_is_a_trouble_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = with_sudo(tmp_path, monkeypatch, "echo 'sudo: a password is required' >&2; exit 1")

    assert (found.ending, found.trouble) == (Ending.NEVER_STARTED, "sudo")


def test_a_sudo_that_works_runs_the_whole_leash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = with_sudo(tmp_path, monkeypatch, '[ "$1" = -n ] && shift && exec "$@"')

    assert (found.ok, found.stdout, found.stderr) == (True, b"x", b"")


def with_sudo(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Output:
    (folder / "sudo").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return LOCAL.open({"leash": LEASH}).run(CONTROLLER, Command("cat", stdin=b"x", sudo=True))


def test_the_watcher_is_gone_when_the_command_is(tmp_path: Path) -> None:
    limit = 86_000 + os.getpid() % 1000  # shows in the arguments of the watcher's timeout
    found = LOCAL.open({"leash": LEASH}).run(CONTROLLER, Command("true", timeout_s=limit))

    assert found.ok
    assert until(lambda: not processes_with(f"timeout {limit + 1}"))
