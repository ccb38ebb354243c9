"""From power loss to a verified resume, by the command alone, on real SSH servers."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import recovery.lab
from tests.lab_runs import LIMIT_S, LabRun, end

pytestmark = pytest.mark.lab
STEP = re.compile(r"\bstep=(\d+) .*?\bloss=([0-9.e+-]+)")


@pytest.fixture
def cluster(tmp_path):
    run = LabRun(tmp_path)
    yield run
    run.down()


def losses(lines):
    """iteration -> all losses that were logged for it."""
    found = {}
    for line in lines:
        match = STEP.search(line)
        if match:
            found.setdefault(int(match[1]), []).append(float(match[2]))
    return found


def saved_step(report):
    return int(report["saved"]["step"])


def test_a_broken_cluster_is_brought_back_and_proved(cluster):
    cluster.up("power-loss")

    done = cluster.recover("run", cluster.inventory, "--yes")

    report = cluster.report()
    assert done.returncode == 0, done.stdout
    assert set(report["set_aside"]) == {"node03", "node06"}
    assert {s["outcome"] for s in report["steps"]} <= {"done", "skipped"}, done.stdout
    verbs = [s["verb"] for s in report["steps"] if s["outcome"] == "done"]
    assert list(dict.fromkeys(verbs)) == [
        "freeze", "wait", "check", "mesh", "checkpoint", "approve", "launch", "verify", "report",
    ]  # fmt: skip
    # The save of 60 was torn on some nodes: 40 is the newest that is complete on every node.
    assert saved_step(report) == 40
    assert cluster.leashed() == []
    whole = uninterrupted(cluster.folder)
    healthy = [lines for path, lines in cluster.training_logs().items() if "node01" in path]
    resumed = losses(healthy[0])
    assert max(resumed) > 60
    for iteration, seen in resumed.items():
        assert all(abs(loss - whole[iteration][0]) <= 1e-6 for loss in seen), iteration
    assert [k["name"] for k in report["steps"][0]["nodes"]["node01"]["evidence"]][-1] == (
        "manifest.json"
    )
    again = cluster.recover("rejudge", "--all")
    assert " judged again, 0 changed" in again.stdout, again.stdout
    assert ": mesh on node01: pass -> pass: " in again.stdout, again.stdout


def uninterrupted(folder):
    """The losses of the same training that was never interrupted, on one rank."""
    home = folder / "whole"
    home.mkdir()
    job = Path(recovery.lab.__file__).parent / "jobs" / "train.py"
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    subprocess.run(
        [sys.executable, str(job), "--pause", "0", "--piece-pause", "0"],
        env=environment,
        check=True,
        cwd=home,
        timeout=LIMIT_S,
    )
    return losses((home / "log" / "train.log").read_text().splitlines())


def test_without_a_bad_node_nobody_is_set_aside(cluster):
    cluster.up("power-loss-clean")

    done = cluster.recover("run", cluster.inventory, "--yes")

    assert done.returncode == 0, done.stdout
    assert cluster.report()["set_aside"] == {}


def test_too_few_healthy_nodes_shut_the_gate_and_the_training_is_not_started(cluster):
    cluster.up("power-loss")

    done = cluster.recover("run", cluster.inventory, "--yes", "-e", "min_nodes=7")

    assert done.returncode == 1, done.stdout
    assert "launch-1" not in cluster.started_steps()
    assert "next: recover resume" in done.stdout


def test_a_cluster_that_nobody_can_reach_is_undecided(cluster):
    cluster.up("none")
    cluster.lab("power-loss")

    done = cluster.recover("run", cluster.inventory, "--yes", "-e", "reach_timeout=2s")

    assert done.returncode == 3, done.stdout
    assert "launch-1" not in cluster.started_steps()


def test_killed_in_the_middle_of_every_step_it_is_resumed_without_a_second_launch(cluster):
    cluster.up("power-loss")
    plan = cluster.recover("plan", cluster.inventory, "--format", "json", check=True).stdout
    steps = [s["id"] for s in json.loads(plan)["steps"] if not s["when"]]

    for number, step in enumerate(steps):
        words = ("resume", "last") if number else ("run", cluster.inventory)
        process = cluster.start(*words, "--yes")
        cluster.wait_for_step(step, process)
        end(process, signal.SIGKILL)
    done = cluster.recover("resume", "last", "--yes")

    assert done.returncode == 0, done.stdout
    launches = [e for e in cluster.events() if e["event"] == "Intended" and e["what"] == "launch"]
    assert len(launches) == 1
    assert saved_step(cluster.report()) == 40


def test_ctrl_c_stops_says_what_is_unfinished_and_the_run_can_be_resumed(cluster):
    cluster.up("power-loss")
    process = cluster.start("run", cluster.inventory, "--yes")
    cluster.wait_for_step("mesh-1", process)

    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)

    assert process.returncode == 130, said
    assert "next: recover resume" in said
    assert cluster.leashed() == []
    assert cluster.recover("resume", "last", "--yes").returncode == 0


def test_a_second_run_is_refused_in_words(cluster):
    cluster.up("power-loss")
    first = cluster.start("run", cluster.inventory, "--yes")
    cluster.wait_for_step("freeze-1", first)

    second = cluster.recover("run", cluster.inventory, "--yes")

    assert second.returncode == 4
    assert "is held by" in second.stderr
    assert "--take-over" in second.stderr
    assert end(first, signal.SIGTERM) == 143


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runbook: x\nabout: x\nnodes: all\nsteps:\n  - rum: x\n", 'did you mean "run"'),
        ("runbook: x\nabout: x\nnodes: '@gpus'\nsteps:\n  - run: x\n", 'did you mean "@?gpu"'),
        ("runbook: x\nabout: x\nnodes: all\nsteps:\n  - run: 'rm {{ y }}'\n", "'y' is not a"),
        ("runbook: x\nabout: x\nnodes: all\nsteps:\n  - check: [gpu.cuont]\n", "gpu.count"),
        ("runbook: x\nabout: x\nnodes: all\nsteps:\n  - run: x\n    gate: 9\n", "9"),
    ],
)
def test_a_mistake_in_a_runbook_is_said_before_a_node_is_touched(cluster, text, words):
    cluster.up("none", nodes=2)
    (cluster.folder / "bad.yaml").write_text(text)

    done = cluster.recover("run", cluster.inventory, "--runbook", "./bad.yaml")

    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(words, done.stderr), done.stderr
    assert re.search(r"bad\.yaml:\d+:\d+", done.stderr), done.stderr
    assert "remedy:" in done.stderr
    assert cluster.events() == []
