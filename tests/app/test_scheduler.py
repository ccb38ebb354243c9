"""Asking the scheduler, draining and giving back: only what is ours."""

import json

import pytest

from recovery.app.outside import drain
from recovery.app.scheduler import Use, kind_of, partition_nodes, release, use_of, wait_until_idle
from recovery.errors import InputError, SchedulerError
from recovery.reading.occupancy import NodeUse
from tests.app.schedulers import asked, on_path, put_tool
from tests.fakes import FakeClock

SLURM = {"scheduler": "slurm"}
KUBERNETES = {"scheduler": "kubernetes"}


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", on_path(folder))
    return folder


def slurm(tools, *lines, status=0):
    put_tool(tools, "sinfo", says="\n".join(lines) + "\n", status=status)
    put_tool(tools, "scontrol")


@pytest.mark.parametrize(
    ("named", "kind"),
    [(None, ""), ("none", ""), ("slurm", "slurm"), ({"kind": "kubernetes"}, "kubernetes")],
)
def test_the_inventory_names_the_scheduler(named, kind):
    assert kind_of({"scheduler": named} if named else {}) == kind


def test_a_scheduler_that_nobody_knows_is_our_mistake():
    with pytest.raises(InputError, match="no scheduler 'slrum'"):
        kind_of({"scheduler": "slrum"})


def test_without_a_scheduler_nobody_is_asked(tools):
    assert use_of({}, ["n1"]) == Use()
    assert asked(tools) == []


def test_nodes_that_run_jobs_and_nodes_that_nobody_knows_are_named(tools):
    slurm(tools, "n1|allocated|gpu|none", "n2|idle|gpu|none")

    use = use_of(SLURM, ["n1", "n2", "n3"])

    assert use.busy == ("n1",)
    assert use.strangers == ("n3",)


def test_names_that_differ_from_the_schedulers_are_said_and_never_read_as_idle(tools):
    slurm(tools, "n1|allocated|gpu|none")

    with pytest.raises(SchedulerError, match=r"knows none of the nodes, such as 'n1\.example'"):
        use_of(SLURM, ["n1.example"])


def test_a_scheduler_that_fails_is_said(tools):
    slurm(tools, "", status=1)

    with pytest.raises(SchedulerError, match="sinfo --Node failed: refused") as caught:
        use_of(SLURM, ["n1"])

    assert caught.value.exit_code == 3


def test_a_scheduler_that_is_not_here_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SchedulerError, match="sinfo is not on this machine"):
        use_of(SLURM, ["n1"])


def test_partitions_are_slurms_own(tools):
    slurm(tools, "n1|idle|gpu*|none", "n2|idle|cpu|none")

    assert partition_nodes(SLURM, ["gpu"]) == {"n1"}
    with pytest.raises(InputError, match="no partition 'gqu'"):
        partition_nodes(SLURM, ["gqu"])


def test_waiting_ends_when_the_last_job_does():
    answers = [Use({"n1": NodeUse(busy=True)}), Use({"n1": NodeUse(busy=True)}), Use()]
    clock = FakeClock()

    assert wait_until_idle(lambda: answers.pop(0), clock, limit_s=3600) == Use()
    assert clock.slept == [60.0, 60.0]


def test_waiting_ends_when_the_time_is_up():
    busy = Use({"n1": NodeUse(busy=True)})
    clock = FakeClock()

    assert wait_until_idle(lambda: busy, clock, limit_s=90) == busy
    assert sum(clock.slept) == 90


def test_a_drain_carries_our_mark(tools):
    slurm(tools, "n1|idle|gpu|none", "n2|allocated|gpu|none")

    said = drain(SLURM, ("n1", "n2"), "mesh: slow")

    assert said == "drained in Slurm"
    assert asked(tools)[-1] == (
        "scontrol update NodeName=n1,n2 State=DRAIN Reason=recover: mesh: slow"
    )


def test_a_drain_of_somebody_else_keeps_its_reason(tools):
    slurm(tools, "n1|drained|gpu|kernel update", "n2|idle|gpu|none")

    drain(SLURM, ("n1", "n2"), "x")

    assert "NodeName=n2 " in asked(tools)[-1]


def test_nodes_that_are_out_already_are_left_alone(tools):
    slurm(tools, "n1|drained|gpu|kernel update")

    assert drain(SLURM, ("n1",), "x") == "out in slurm already"
    assert not [line for line in asked(tools) if "scontrol" in line]


def test_a_drain_that_fails_is_said_and_never_raised(tools):
    slurm(tools, "n1|idle|gpu|none")
    put_tool(tools, "scontrol", status=1)

    assert drain(SLURM, ("n1",), "x") == "not drained: scontrol update failed: refused"


def test_only_what_we_drained_is_given_back(tools):
    slurm(tools, "n1|drained|gpu|recover: hot", "n2|drained|gpu|kernel", "n3|idle|gpu|none")

    given, said = release(SLURM, ["n1", "n2", "n3"])

    assert (given, said) == (("n1",), "resumed in Slurm")
    assert asked(tools)[-1] == "scontrol update NodeName=n1 State=RESUME"


def test_when_nothing_is_ours_nothing_is_given_back(tools):
    slurm(tools, "n2|drained|gpu|kernel")

    assert release(SLURM, ["n2"]) == ((), "slurm held none of them for us")
    assert not [line for line in asked(tools) if "scontrol" in line]


def test_a_cordon_is_marked_before_it_is_made(tools):
    put_tool(tools, "kubectl", says=json.dumps({"items": [{"metadata": {"name": "n1"}}]}))

    assert drain(KUBERNETES, ("n1",), "hot") == "cordoned in Kubernetes"
    assert asked(tools)[-2:] == [
        "kubectl annotate --overwrite node n1 recover.cordoned=recover: hot",
        "kubectl cordon n1",
    ]


def test_a_cordon_of_ours_is_taken_away(tools):
    node = {
        "metadata": {"name": "n1", "annotations": {"recover.cordoned": "recover: hot"}},
        "spec": {"unschedulable": True},
    }
    put_tool(tools, "kubectl", says=json.dumps({"items": [node]}))

    assert release(KUBERNETES, ["n1"])[0] == ("n1",)
    assert asked(tools)[-2:] == [
        "kubectl uncordon n1",
        "kubectl annotate node n1 recover.cordoned-",
    ]
