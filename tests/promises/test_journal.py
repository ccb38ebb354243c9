"""Killed anywhere, or out of disk: a resume ends in the same state, and nothing is done twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.controller import Controller
from tests.testbed.needs import sh
from tests.transports.servers import until

pytestmark = pytest.mark.root
ROOT = Path(__file__).parents[2]
STEPS = [
    {"run": f"echo step-{number} >>/root/effects", "nodes": f"n{1 + number % 2}", "timeout": "30s"}
    for number in range(10)
]

LONG = {"run": "sleep 2; seq 9000", "nodes": "n1", "effect": "read", "timeout": "30s"}


@pytest.fixture(autouse=True)
def no_effects(operator: Controller) -> None:
    """Nothing of an earlier test on n1 and n2."""
    effects(operator)


def effects(operator: Controller) -> list[str]:
    """All side effects on n1 and n2, by time of each."""
    lines = [
        operator.bed[n].do("cat /root/effects; rm -f /root/effects", check=False)
        for n in ("n1", "n2")
    ]
    return sorted("".join(lines).split())


def test_killed_after_every_line_of_the_journal_each_step_is_done_once(
    operator: Controller,
) -> None:
    words = ["run", str(operator.inventory), "--runbook", operator.runbook(*STEPS), "--quiet"]
    argv = [
        "nsenter", f"--net=/run/netns/{operator.bed.hub}",
        sys.executable, "-m", "tests.promises.dying", str(operator.state / "runs"), *words,
    ]  # fmt: skip
    environment = {**operator.environment(), "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=500, env=environment, cwd=operator.folder,
        check=False,
    )  # fmt: skip

    said = done.stdout + done.stderr
    deaths = [line for line in done.stdout.splitlines() if line.endswith(" 9")]
    assert done.returncode == 2, said  # after the last line there is nothing left to resume
    assert "is done already" in said
    assert len(deaths) >= 4 * len(STEPS) + 2, said  # intent, result, gate, end; and of the run
    assert effects(operator) == [f"step-{number}" for number in range(10)]
    assert operator.events()[-1]["outcome"] == "done"
    assert len(list(operator.state.glob("runs/*"))) == 1


def test_a_full_disk_stops_the_run_in_words_and_a_resume_goes_on(operator: Controller) -> None:
    operator.state.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=1m", "state", operator.state)
    steps = [*STEPS[:2], LONG, *STEPS[2:4]]
    process = operator.start_run(*steps)
    operator.wait_for_step("run-3", process)
    filler = operator.state / "filler"
    sh("sh", "-c", f"cat /dev/zero >{filler}", check=False)

    full = operator.ended(process)
    filler.unlink()
    resumed = operator.recover("resume", "last", "--yes")
    events = operator.events()
    sh("umount", operator.state)

    assert full.code == 3, full.said
    assert "No space left on device" in full.said
    assert "recover resume" in full.said
    assert "Traceback" not in full.said
    assert resumed.code == 0, resumed.said
    assert events[-1]["outcome"] == "done"
    assert effects(operator) == [f"step-{number}" for number in range(4)]


def test_a_torn_last_line_is_as_if_it_had_never_been_written(operator: Controller) -> None:
    process = operator.start_run(*STEPS[:2], {"run": "sleep 60", "nodes": "n1", "effect": "read"})
    operator.wait_for_step("run-3", process)
    process.kill()
    process.communicate()
    with operator.journal().open("ab") as journal:
        journal.write(b'{"event":"StepFini')
    operator.runbook(*STEPS[:2], {"run": "sleep 60", "nodes": "n1", "effect": "read"})

    resumed = operator.start("resume", "last", "--yes")
    assert until(lambda: len(operator.events("StepStarted")) == 4)
    resumed.terminate()

    assert operator.ended(resumed).code == 143
    assert effects(operator) == ["step-0", "step-1"]
