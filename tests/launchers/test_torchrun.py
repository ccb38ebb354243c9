"""The torchrun launcher: ranks by leaf, the same at every launch; one rendezvous for all."""

import shlex

import pytest

from recovery.launchers.torchrun import TORCHRUN, by_leaf, torchrun_line
from recovery.model.node import Node
from recovery.model.verdict import Level
from tests.fakes import FakeTransport, FakeWorld, finished

NODES = (
    Node("n10", leaf="leaf2"),
    Node("n2", address="10.0.0.2", leaf="leaf10"),
    Node("n3", leaf="leaf2"),
    Node("n1"),
)
JOB = {"line": "train.py --resume 120", "name": "job-1", "log": "", "env": {"RESUME_STEP": "120"}}


def launched(nodes=NODES, job=JOB, **world):
    seen = {}

    def answer(node, command):
        seen[node.name] = command
        return finished("state=started\npid=42\n")

    return TORCHRUN.launch(nodes, job, FakeWorld(transport=FakeTransport(answer), **world)), seen


def line_of(command):
    return shlex.split(command.line)[-1]


def test_ranks_go_leaf_after_leaf_and_nodes_without_one_come_last():
    assert [n.name for n in by_leaf(NODES)] == ["n3", "n10", "n2", "n1"]


def test_the_order_in_which_nodes_are_given_changes_no_rank():
    assert by_leaf(NODES) == by_leaf(tuple(reversed(NODES)))


def test_each_node_gets_its_rank_and_all_meet_at_the_first():
    results, seen = launched(profiles={"expected_gpus": 8})

    assert line_of(seen["n2"]) == (
        "torchrun --nnodes=4 --node-rank=2 --nproc-per-node=8 --rdzv-backend=static "
        "--rdzv-endpoint=n3:29500 --rdzv-id=job-1 train.py --resume 120"
    )
    assert seen["n2"].env == {"RESUME_STEP": "120"}
    assert {r.verdict.level for r in results.values()} == {Level.PASS}


def test_an_ipv6_rendezvous_stands_in_brackets_and_the_port_may_be_given():
    _, seen = launched((Node("a", address="fd00::1"),), variables={"master_port": 4000})

    assert "--rdzv-endpoint=[fd00::1]:4000" in shlex.split(line_of(seen["a"]))
    assert "--nproc-per-node=gpu" in line_of(seen["a"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("train.py x", "torchrun -o train.py x"),
        ("torchrun --max-restarts 3 t.py", "torchrun -o --max-restarts 3 t.py"),
        ("cd /w && /opt/bin/torchrun t.py", "cd /w && /opt/bin/torchrun -o t.py"),
        ("python3 -m torch.distributed.run t.py", "python3 -m torch.distributed.run -o t.py"),
        ("my_torchrun.py x", "torchrun -o my_torchrun.py x"),
    ],
)
def test_our_options_come_before_those_of_the_line(line, expected):
    assert torchrun_line(line, ("-o",)) == expected
