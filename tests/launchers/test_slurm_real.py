"""Against a real Slurm: submitted, a node lost, requeued by us without it, drained, given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from recovery.app.control import Control, RealClock
from recovery.app.outside import drain
from recovery.app.scheduler import release
from recovery.launchers.slurm import SLURM
from recovery.model.node import Node
from recovery.model.ports import TransportKind
from recovery.model.verdict import Level
from recovery.registry import pick
from tests.fakes import FakeWorld, a_step
from tests.launchers.realslurm import real_slurm, why_no_slurm
from tests.transports.servers import until

WHY_NOT = why_no_slurm()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "can")]

ROOT = Path(__file__).parents[2]
N1, N2, N3 = (Node(f"n{i}") for i in (1, 2, 3))
SCRIPT = """#!/bin/sh
echo "restart=${SLURM_RESTART_COUNT:-0} nodes=$SLURM_JOB_NODELIST step=$RESUME_STEP argument=$1"
echo "comment=$(squeue -h -j $SLURM_JOB_ID -o %k)"
exec sleep 600
"""
VARIABLES = {"scheduler": "slurm"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with real_slurm(tmp_path_factory.mktemp("slurm"), 3) as running:
        yield running


@pytest.fixture
def world(slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", slurm.conf)
    kind = pick("recovery.transports", TransportKind, "local")
    leash = (ROOT / "recovery/payloads/leash.sh").read_text()
    transport = kind.open({"leash": leash, "state_dir": str(tmp_path), "width": 4})
    made = FakeWorld(
        transport=transport, clock=RealClock(Control()), step=a_step("launch", timeout_s=45.0)
    )
    yield made
    transport.close()


@pytest.fixture
def job(slurm, tmp_path):
    script = tmp_path / "train.sbatch"
    script.write_text(SCRIPT)
    yield {
        "line": f"{script} --resume=$RESUME_STEP",
        "name": tmp_path.name,
        "log": str(tmp_path / "train.log"),
        "env": {"RESUME_STEP": "120"},
    }
    slurm.ask("scancel", f"--name={tmp_path.name}")


def logged(job):
    path = Path(job["log"])
    return path.read_text() if path.exists() else ""


def test_a_job_outlives_a_node_and_is_requeued_without_it(slurm, world, job):
    submitted = SLURM.launch((N1, N2), job, world)

    assert {r.verdict.worst.level for r in submitted.values()} == {Level.PASS}
    assert until(lambda: "nodes=n[1-2] step=120 argument=--resume=120" in logged(job))

    again = SLURM.launch((N1, N2), job, world)
    other = SLURM.launch((N1, N2), job, FakeWorld(transport=world.transport, clock=world.clock))

    assert "this run started it" in again["n1"].verdict.worst.finding
    assert other["n1"].verdict.worst.code == "launch.already-runs"

    slurm.power_off("n2")
    assert drain(VARIABLES, ("n2",), "check-1: no answer") == "drained in Slurm"
    later = {**job, "env": {"RESUME_STEP": "100"}}
    requeued = SLURM.launch((N1, N3), later, world)

    assert "was requeued: it had lost n2" in requeued["n1"].verdict.worst.finding
    assert requeued["n3"].values["state"] == "running"
    assert until(lambda: "restart=1 nodes=n[1,3]" in logged(job))
    assert until(lambda: "comment=RESUME_STEP=100" in logged(job))

    slurm.power_on("n2")
    slurm.ask("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=a DIMM is bad")
    assert drain(VARIABLES, ("n3",), "check-1: slow") == "out in slurm already"
    given_back, _ = release(VARIABLES, ("n1", "n2", "n3"))

    assert given_back == ("n2",)
    assert until(lambda: "n2" in slurm.idle())
    assert "a DIMM is bad" in slurm.ask("scontrol", "show", "node", "n3")
    slurm.ask("scontrol", "update", "NodeName=n3", "State=RESUME")


def test_a_held_job_is_released_and_a_refusal_is_told_in_slurms_words(slurm, world, job):
    strange = SLURM.launch((N1,), {**job, "line": "no-such-script"}, world)
    slurm.ask("sbatch", "--hold", f"--job-name={job['name']}", "--nodes=2", job["line"].split()[0])
    afresh = FakeWorld(transport=world.transport, clock=world.clock)
    freed = SLURM.launch((N1,), {**job, "env": {}}, afresh)

    assert "Unable to open file no-such-script" in strange["n1"].verdict.worst.finding
    assert freed["n1"].verdict.level is Level.PASS
    assert "found waiting, now for 1 instead of 2 nodes" in freed["n1"].verdict.worst.finding


def test_a_job_that_ends_at_once_is_a_failure(slurm, world, job, tmp_path):
    (tmp_path / "train.sbatch").write_text("#!/bin/sh\nexit 3\n")

    results = SLURM.launch((N1,), job, world)

    assert results["n1"].verdict.level is Level.FAIL
    assert "exit status 3:0" in results["n1"].verdict.worst.finding
