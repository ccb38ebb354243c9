"""A detached job belongs to the node: it outlives its controller, and is found again."""

from __future__ import annotations

import signal

import pytest

from tests.testbed.controller import Controller, end
from tests.transports.servers import until

pytestmark = pytest.mark.root
LAUNCH = {"launch": "echo begun >>/root/began; exec sleep 765", "detach": True, "nodes": "n[1-2]"}
WAIT = {"run": "sleep 60", "effect": "read", "nodes": "n1", "timeout": "100s"}


def jobs(operator: Controller) -> dict[str, int]:
    return {
        name: sum(line == "sleep 765" for line in operator.bed[name].left().values())
        for name in ("n1", "n2")
    }


def begun(operator: Controller) -> list[str]:
    return [operator.bed[n].do("cat /root/began; rm /root/began") for n in ("n1", "n2")]


def test_a_job_outlives_kill_9_of_its_controller_and_is_not_started_twice(
    operator: Controller,
) -> None:
    process = operator.start_run(LAUNCH, WAIT)
    operator.wait_for_step("run-1", process)
    end(process, signal.SIGKILL)
    with operator.journal().open("rb+") as journal:  # as if it had died before it knew
        lines = journal.read().splitlines(keepends=True)
        kept = [line for line in lines if b"StepStarted" in line or b"Intended" in line][:2]
        journal.truncate(0)
        journal.seek(0)
        journal.writelines([lines[0], *kept])

    resumed = operator.start("resume", "last", "--yes")
    operator.wait_for_step("run-1", resumed)
    resumed.send_signal(signal.SIGINT)
    operator.ended(resumed)

    assert jobs(operator) == {"n1": 1, "n2": 1}
    assert begun(operator) == ["begun\n", "begun\n"]
    assert "this run started it" in operator.findings("launch-1")["n1"]


def test_a_job_survives_a_cut_link_and_a_stop_of_the_run(operator: Controller) -> None:
    process = operator.start_run(LAUNCH, WAIT)
    operator.wait_for_step("run-1", process)

    operator.bed["n2"].cable("down")
    end(process, signal.SIGTERM)
    operator.bed["n2"].cable("up")

    assert until(lambda: jobs(operator) == {"n1": 1, "n2": 1})
    assert begun(operator) == ["begun\n", "begun\n"]


def test_a_job_of_the_same_name_by_somebody_else_is_left_alone(operator: Controller) -> None:
    first = operator.run(LAUNCH)

    second = operator.run(LAUNCH)

    assert first.code == 0, first.said
    assert second.code == 1, second.said
    assert "runs already" in operator.findings()["n1"]
    assert jobs(operator) == {"n1": 1, "n2": 1}
    assert begun(operator) == ["begun\n", "begun\n"]
