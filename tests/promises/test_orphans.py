"""Dead means dead: command shapes x users x ways to end a run; nothing may be left on a node.

`pytest -n 0 -s tests/promises/test_orphans.py` prints the table.
"""

from __future__ import annotations

import collections
import itertools
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.bed import Bed, bed
from tests.testbed.controller import Controller, end
from tests.transports.servers import until

pytestmark = pytest.mark.root

# Each host has one; every user's sleep has a number of its own. `wait` keeps the shell there.
SHAPES = {
    "plain": "exec sleep $n",
    "child": "sleep $n; true",
    "nohup": "nohup sleep $n >/dev/null 2>&1; true",
    "background": "sleep $n & wait",
    "own setsid": 'setsid sh -c "sleep $n; true" & sleep $n',
    "left by its parent": "(setsid nohup sleep $n >/dev/null 2>&1 &); sleep $n",
    "clean environment": "env -i setsid sleep $n & sleep $n",
    "ignores TERM": "trap '' TERM; sleep $n; sleep $n",
    "sudo": "sudo -n sleep $n; true",
}
USERS = {"root": {"ansible_user": "root"}, "ops": {"ansible_user": "ops"}}
HOSTS = {f"n{number}": shape for number, shape in enumerate(SHAPES, 1)}
DELAY_S = 40.0  # far below the limit of 100 s that would end it as well
table: dict[str, dict[tuple[str, str], int]] = collections.defaultdict(dict)


@pytest.fixture(scope="module")
def nine(testbed_here: None) -> Iterator[Bed]:
    with bed(len(SHAPES)) as made:
        for name, shape in HOSTS.items():
            made[name].do(
                f"echo 'n=999$(id -u)' >/etc/shape; cat >>/etc/shape <<'END'\n{SHAPES[shape]}\nEND"
            )
        yield made
    sys.stdout.write(f"\n{_table()}\n")


@pytest.fixture
def operator(nine: Bed) -> Controller:
    nine.heal()
    made = Controller(nine, Path(tempfile.mkdtemp(prefix="operator-", dir=nine.folder)))
    nodes = {
        f"{host}-{user}": {"host": host, **how} for host in HOSTS for user, how in USERS.items()
    }
    made.write_inventory(nodes, shared_addresses=True)
    return made


def sleeping(at: Bed) -> dict[tuple[str, str], int]:
    """(shape, user) -> how many processes of it are there."""
    count: dict[tuple[str, str], int] = {}
    for host, shape in HOSTS.items():
        lines = at[host].left().values()
        count[shape, "root"] = sum("sleep 9990" in line for line in lines)
        count[shape, "ops"] = sum("sleep 9996001" in line for line in lines)
    return count


def left(at: Bed) -> list[str]:
    """All processes of ours, whatever they are."""
    return [f"{name}: {line}" for name in HOSTS for line in at[name].left().values()]


def all_sleep(at: Bed) -> bool:
    expected = {"own setsid": 3, "left by its parent": 2, "clean environment": 2, "sudo": 2}
    found = sleeping(at)
    return all(found[shape, user] >= expected.get(shape, 1) for shape in SHAPES for user in USERS)


def _record(case: str, at: Bed) -> None:
    table[case] = sleeping(at)


def _table() -> str:
    lines = [f"{'processes left over':26}" + "".join(f"{case:>14}" for case in table)]
    for shape, user in itertools.product(SHAPES, USERS):
        cells = "".join(f"{table[case][shape, user]:>14}" for case in table)
        lines.append(f"{shape + ', ' + user:26}{cells}")
    return "\n".join(lines)


def started(operator: Controller, *, timeout: str, **more: object) -> subprocess.Popen[str]:
    process = operator.start_run({"run": ". /etc/shape", "timeout": timeout, **more})
    assert until(lambda: all_sleep(operator.bed) or process.poll() is not None), left(operator.bed)
    assert process.poll() is None, process.communicate()
    return process


def test_after_the_limit_nothing_is_left(operator: Controller) -> None:
    process = started(operator, timeout="12s")

    done = operator.ended(process)

    _record("limit", operator.bed)
    assert left(operator.bed) == []
    assert done.code == 3, done.said
    assert set(operator.findings().values()) == {"no end within 12 s; its processes were ended"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_after_a_signal_nothing_is_left(
    operator: Controller, number: signal.Signals, code: int
) -> None:
    process = started(operator, timeout="100s")

    done = end(process, number)

    _record(number.name, operator.bed)
    assert left(operator.bed) == []
    assert done.code == code, done.said
    assert "recover resume" in done.said


def test_a_second_ctrl_c_skips_the_grace_and_nothing_is_left(operator: Controller) -> None:
    process = started(operator, timeout="100s")
    process.send_signal(signal.SIGINT)

    done = end(process, signal.SIGINT)

    assert until(lambda: not left(operator.bed), within_s=DELAY_S), left(operator.bed)
    _record("SIGINT twice", operator.bed)
    assert done.code == 130, done.said


def test_after_kill_9_of_the_controller_nothing_is_left(operator: Controller) -> None:
    process = started(operator, timeout="100s")

    end(process, signal.SIGKILL)

    assert until(lambda: not left(operator.bed), within_s=DELAY_S), left(operator.bed)
    _record("SIGKILL", operator.bed)


def test_after_the_links_are_cut_nothing_is_left_beyond_the_limit(operator: Controller) -> None:
    process = started(operator, timeout="12s")
    for name in HOSTS:
        operator.bed[name].cable("down")

    done = operator.ended(process)

    assert until(lambda: not left(operator.bed), within_s=DELAY_S), left(operator.bed)
    _record("link cut", operator.bed)
    assert done.code == 3, done.said


@pytest.mark.parametrize("how", ["limit", "SIGKILL"])
def test_a_whole_step_below_sudo_leaves_nothing(operator: Controller, how: str) -> None:
    nodes = {host: {"ansible_user": "ops"} for host in HOSTS}
    operator.write_inventory(nodes)
    step = {"run": ". /etc/shape", "timeout": "10s", "sudo": True}
    process = operator.start_run(step)
    assert until(lambda: all(sleeping(operator.bed)[s, "root"] for s in SHAPES)), left(operator.bed)

    done = end(process, signal.SIGKILL) if how == "SIGKILL" else operator.ended(process)

    assert until(lambda: not left(operator.bed), within_s=DELAY_S), left(operator.bed)
    assert done.code in (3, -9), done.said
