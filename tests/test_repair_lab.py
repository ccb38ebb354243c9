"""The repair of broken nodes, by the command alone, on real SSH servers."""

import pytest

from tests.lab_runs import LabRun

pytestmark = pytest.mark.lab
# Its BMC is not named in the inventory: that rung cannot be climbed, and the next one is.
RUNGS = {"reset-1": "reset", "reboot-1": "reboot"}


@pytest.fixture
def cluster(tmp_path):
    run = LabRun(tmp_path)
    run.up("training", nodes=4)
    run.lab("break", "ecc", "node02")
    run.lab("break", "gpu-lost", "node03")
    yield run
    run.down()


def repair(cluster, nodes):
    words = ("--runbook", "repair", "-e", f"broken={nodes}", "-e", "host_checks=false", "--yes")
    return cluster.recover("run", cluster.inventory, *words)


def tried(cluster):
    """(node, rung) of all that was done to a node in the newest run."""
    steps = {e["step"]: e["verb"] for e in cluster.events() if e["event"] == "StepStarted"}
    return {
        (e["facts"]["node"], steps[e["step"]])
        for e in cluster.events()
        if e["event"] == "Intended" and e["what"] == "disrupt"
    }


def test_a_ladder_mends_what_it_can_and_sets_the_rest_aside_and_no_rung_is_climbed_thrice(cluster):
    # The training holds the GPUs: nothing is reset under it.
    cluster.lab("power-loss")
    cluster.lab("power-on")

    first = repair(cluster, "node[02-03]")
    after_first = tried(cluster)
    cluster.recover("runs")
    second = repair(cluster, "node03")
    after_second = tried(cluster)
    third = repair(cluster, "node03")
    after_third = tried(cluster)

    assert first.returncode == 1, first.stdout + first.stderr
    assert after_first == {("node02", "reset"), ("node03", "reset"), ("node03", "reboot")}
    assert "set aside: node03: isolate: ill after GPU reset, reboot" in first.stdout
    assert "set aside: node02" not in first.stdout
    assert after_second == {("node03", "reset"), ("node03", "reboot")}
    assert second.returncode == third.returncode == 1
    assert after_third == set(), third.stdout
    assert "no reset again: 2 within a week, the limit is 2" in third.stdout
    told = cluster.recover("nodes", cluster.inventory).stdout
    assert "set aside     node03" in told
    assert "recover return" in told
