"""Two operators, a crashed one, and taking over."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.testbed.controller import Controller, end
from tests.transports.servers import until

pytestmark = pytest.mark.root
LONG = {"run": "sleep 400", "timeout": "500s", "effect": "read"}
SHORT = {"run": "true", "effect": "read"}


def holding(operator: Controller) -> subprocess.Popen[str]:
    """A run that holds the cluster, its command started on all nodes."""
    process = operator.start_run(LONG)
    assert until(
        lambda: all("sleep 400" in " ".join(h.left().values()) for h in operator.bed.hosts.values())
    )
    return process


def test_a_second_operator_is_refused_with_the_words_of_the_first(operator: Controller) -> None:
    first = holding(operator)

    second = operator.run(SHORT)
    ended = end(first, signal.SIGTERM)

    assert second.code == 4
    assert f"(pid {first.pid})" in second.said
    assert "is held by" in second.said
    assert "--take-over" in second.said
    assert ended.code == 143


def test_taking_over_ends_the_first_run_and_leaves_none_of_its_processes(
    operator: Controller,
) -> None:
    first = holding(operator)

    second = operator.run(SHORT, words=("--take-over", "--yes"))
    ended = operator.ended(first)

    assert second.code == 0, second.said
    assert ended.code == 143, ended.said
    assert {name: host.left() for name, host in operator.bed.hosts.items() if host.left()} == {}


def test_the_lock_of_a_crashed_run_is_free_and_the_run_is_called_crashed(
    operator: Controller,
) -> None:
    end(holding(operator), signal.SIGKILL)

    runs = operator.recover("runs")
    second = operator.run(SHORT)

    assert "crashed" in runs.said
    assert "running" not in runs.said
    assert second.code == 0, second.said


def test_a_frozen_holder_is_not_taken_for_gone(operator: Controller) -> None:
    first = holding(operator)
    first.send_signal(signal.SIGSTOP)

    second = operator.run(SHORT)
    first.send_signal(signal.SIGCONT)
    ended = end(first, signal.SIGTERM)

    assert second.code == 4, second.said
    assert ended.code == 143


CHANGE = {"run": "sleep 400", "timeout": "500s", "effect": "write"}
TOUCH = {"run": "touch /root/second", "timeout": "60s", "effect": "write"}


@pytest.fixture
def elsewhere(operator: Controller, tmp_path: Path) -> Controller:
    """Another machine's controller: a state folder of its own, the same nodes."""
    return Controller(operator.bed, tmp_path)


def changing(operator: Controller) -> subprocess.Popen[str]:
    """A run in the middle of a step that changes its nodes."""
    process = operator.start_run(CHANGE)
    assert until(
        lambda: all("sleep 400" in " ".join(h.left().values()) for h in operator.bed.hosts.values())
    )
    return process


def touched(operator: Controller) -> list[str]:
    hosts = operator.bed.hosts.items()
    found = [
        n for n, h in hosts if "there" in h.do("test -e /root/second && echo there", check=False)
    ]
    for _, host in hosts:
        host.do("rm -f /root/second")
    return found


def test_another_controller_changes_nothing_while_the_first_does(
    operator: Controller, elsewhere: Controller
) -> None:
    first = changing(operator)

    reading = elsewhere.run(SHORT)
    second = elsewhere.run(TOUCH)
    ended = end(first, signal.SIGTERM)
    third = elsewhere.run(TOUCH)

    assert reading.code == 0, reading.said
    assert second.code == 1, second.said
    assert "another controller is at work there: run" in second.said
    assert f"(pid {first.pid})" in second.said
    assert "--take-over` takes the nodes" in second.said
    assert ended.code == 143
    assert third.code == 0, third.said
    assert touched(operator) == list(operator.bed.hosts)


def test_what_a_killed_controller_leased_can_be_taken_over_and_its_own_next_run_needs_not(
    operator: Controller, elsewhere: Controller
) -> None:
    end(changing(operator), signal.SIGKILL)

    second = elsewhere.run(TOUCH)
    own = operator.run(TOUCH)
    end(changing(operator), signal.SIGKILL)
    third = elsewhere.run(TOUCH, words=("--take-over", "--yes"))

    assert second.code == 1, second.said
    assert own.code == 0, own.said
    assert third.code == 0, third.said
    assert touched(operator) == list(operator.bed.hosts)


def test_a_reboot_ends_the_lease_of_a_controller_that_is_gone(
    operator: Controller, elsewhere: Controller
) -> None:
    end(changing(operator), signal.SIGKILL)
    for host in operator.bed.hosts.values():
        host.off()
        host.on()
    operator.bed.await_ssh()

    second = elsewhere.run(TOUCH)

    assert second.code == 0, second.said
    assert touched(operator) == list(operator.bed.hosts)


def test_two_controllers_that_begin_at_once_never_change_a_node_together(
    operator: Controller, elsewhere: Controller
) -> None:
    alone = "mkdir /root/busy || exit 7; sleep 2; rmdir /root/busy"
    step = {"run": alone, "timeout": "60s", "effect": "write"}
    both = [one.start_run(step) for one in (operator, elsewhere)]

    ends = [one.ended(process) for one, process in zip((operator, elsewhere), both, strict=True)]

    assert all("exit status 7" not in one.said for one in ends), [one.said for one in ends]
    assert {one.code for one in ends} <= {0, 1}, [one.said for one in ends]
