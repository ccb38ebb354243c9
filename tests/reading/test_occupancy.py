"""What Slurm and Kubernetes say about their nodes."""

import json

import pytest

from recovery.errors import ParseError
from recovery.reading.occupancy import NodeUse, read_kubernetes, read_sinfo


@pytest.mark.parametrize(
    ("state", "busy", "out"),
    [
        ("idle", False, False),
        ("allocated", True, False),
        ("mixed", True, False),
        ("completing", True, False),
        ("draining", True, True),
        ("drained", False, True),
        ("drained*", False, True),
        ("down*", False, True),
        ("idle~", False, False),
        ("mixed-", True, False),
        ("ALLOCATED", True, False),
    ],
)
def test_a_state_says_whether_jobs_run_and_whether_new_ones_come(state, busy, out):
    use = read_sinfo(f"n1|{state}|gpu|none\n")["n1"]

    assert (use.busy, use.out) == (busy, out)


def test_a_node_of_two_partitions_is_one_node():
    found = read_sinfo("n1|idle|gpu*|none\nn1|idle|long|none\nn2|idle|gpu*|none\n")

    assert found["n1"].partitions == ("gpu", "long")
    assert list(found) == ["n1", "n2"]


def test_only_our_own_drain_is_ours():
    text = "n1|drained|gpu|recover: mesh: slow\nn2|drained|gpu|kernel a|b\nn3|idle|gpu|recover: x\n"

    found = read_sinfo(text)

    assert found["n1"].out_by_us
    assert (found["n2"].out_by_us, found["n2"].reason) == (False, "kernel a|b")
    assert not found["n3"].out_by_us


@pytest.mark.parametrize("text", ["", "\n", "n1 idle", "n1||gpu|none", "slurm_load_node: error"])
def test_silence_and_noise_are_no_answer(text):
    with pytest.raises(ParseError):
        read_sinfo(text)


def pod(node, phase="Running", limits=None):
    spec = {"nodeName": node, "containers": [{"resources": {"limits": limits or {}}}]}
    return {"status": {"phase": phase}, "spec": spec}


def node(name, *, cordoned=False, mark=None):
    notes = {"recover.cordoned": mark} if mark else {}
    spec = {"unschedulable": True} if cordoned else {}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec}


def kubernetes(nodes, pods):
    return read_kubernetes(json.dumps({"items": nodes}), json.dumps({"items": pods}))


def test_a_pod_with_gpus_makes_its_node_busy_and_others_do_not():
    gpus = {"nvidia.com/gpu": "8"}
    pods = [pod("n1", limits=gpus), pod("n2", limits={"cpu": "1"}), pod("n3", "Succeeded", gpus)]

    found = kubernetes([node("n1"), node("n2"), node("n3")], pods)

    assert [name for name, use in found.items() if use.busy] == ["n1"]


def test_a_cordon_of_ours_carries_our_mark():
    nodes = [node("n1", cordoned=True, mark="recover: hot"), node("n2", cordoned=True), node("n3")]

    found = kubernetes(nodes, [])

    assert found["n1"].out_by_us
    assert found["n2"] == NodeUse(out=True, reason="cordoned", state="cordoned")
    assert not found["n3"].out


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "error: no server"])
def test_kubectl_that_prints_no_list_is_no_answer(text):
    with pytest.raises(ParseError):
        read_kubernetes(text, '{"items": []}')


def test_a_cluster_without_nodes_is_no_answer():
    with pytest.raises(ParseError, match="no node"):
        kubernetes([], [])
