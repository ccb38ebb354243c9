"""Two operators, a crashed one, and taking over."""

from __future__ import annotations

import signal
import subprocess

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
