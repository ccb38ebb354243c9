"""`mesh`: real lines, judged at one row, each node with its verdict."""

import re
from dataclasses import replace

import pytest

from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from recovery.steps.mesh import MESH, MeshParams
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

NODES = tuple(Node(f"node{i}", leaf=f"leaf{i // 5}") for i in range(1, 9))
PROFILE = {
    "expected_gpus": 8,
    "busbw": [
        {"collective": "all_reduce", "nodes": 1, "gpus": 8, "payload": "8G", "value": 440,
         "kind": "floor", "source": "test", "algorithm": ""},
        {"collective": "all_reduce", "nodes": 2, "gpus": 8, "payload": "8G", "value": 335,
         "kind": "floor", "source": "test", "algorithm": ""},
    ],
}  # fmt: skip


def table(nodes, busbw, wrong=0):
    """What all_reduce_perf of nccl-tests 2.16 prints for one payload."""
    ranks = 8 * len(nodes)
    devices = "".join(
        f"#  Rank {r:2d} Group  0 Pid   4242 on {nodes[r // 8]:>10} device  {r % 8} [0x1a] "
        "NVIDIA H100 80GB HBM3\n"
        for r in range(ranks)
    )
    return (
        "# nThread 1 nGpus 1 minBytes 8589934592 maxBytes 8589934592 step: 2(factor) "
        "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
        f"{devices}#\n"
        "#                                                              out-of-place"
        "                       in-place          \n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
        "     (us)  (GB/s)  (GB/s)       \n"
        f"  8589934592    2147483648     float     sum      -1    42000  204.50  {busbw:6.2f}      "
        f"{wrong}    42000  204.50  {busbw:6.2f}      {wrong}\n"
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"
        f"# Avg bus bandwidth    : {busbw:.3f}\n#\n"
    )


PROBED = """tool all_reduce_perf /usr/bin/all_reduce_perf
tool alltoall_perf /usr/bin/alltoall_perf
tool mpirun /usr/bin/mpirun
mpi mpirun (Open MPI) 4.1.4
"""


def asked_first(answer, probed=PROBED):
    """The answer of a node that has every tool, and no counters."""

    def run(node, command):
        if "command -v" in command.line:
            return finished(probed)
        if "/proc/net/snmp" in command.line:
            return finished("")
        return answer(node, command)

    return FakeTransport(run)


def nodes_of(node, command):
    hosts = re.search(r"-H (\S+)", command.line)
    return [h.split(":")[0] for h in hosts[1].split(",")] if hosts else [node.name]


def meshed(answer, nodes=NODES, **params):
    world = FakeWorld(
        transport=asked_first(lambda n, c: answer(nodes_of(n, c))),
        profiles=PROFILE,
        step=a_step("mesh", timeout_s=1800),
    )
    return MESH.run(MeshParams(**params), nodes, world), world


def speed(*slow, alone=480.0, pair=380.0):
    def answer(nodes):
        good = alone if len(nodes) == 1 else pair
        return finished(table(nodes, 95.0 if len(nodes) > 1 and set(nodes) & set(slow) else good))

    return answer


def test_on_a_good_fabric_everybody_passes_in_two_rounds():
    result, world = meshed(speed())

    assert {r.verdict.level for r in result.nodes.values()} == {Level.PASS}
    assert (result.values["rounds"], result.values["tests"]) == (2, 12)
    assert len([n for n in world.notes if n[0] == "mesh.test"]) == 12


def test_the_slow_node_is_named_with_the_partners_it_failed_with():
    result, _ = meshed(speed("node3"))

    bad = {n for n, r in result.nodes.items() if r.verdict.level is Level.FAIL}
    assert bad == {"node3"}
    assert result.nodes["node3"].verdict.worst.finding.count("95.0 GB/s") == 3


def test_a_node_far_behind_its_round_is_slow_even_above_the_floor():
    def answer(nodes):
        return finished(table(nodes, 341.0 if "node3" in nodes and len(nodes) > 1 else 480.0))

    result, _ = meshed(answer)

    assert {n for n, r in result.nodes.items() if r.verdict.level.blocks} == {"node3"}


def test_wrong_values_fail_whatever_the_bandwidth():
    def answer(nodes):
        return finished(table(nodes, 480.0, wrong=3 if "node5" in nodes else 0), status=0)

    result, _ = meshed(answer)

    worst = result.nodes["node5"].verdict.worst
    assert (worst.level, worst.code) == (Level.FAIL, "nccl.wrong-values")


def test_a_node_without_the_binary_is_unknown_with_the_package():
    def answer(nodes):
        missing = finished(status=127, stderr="all_reduce_perf: not found")
        return missing if nodes == ["node2"] else speed()(nodes)

    result, _ = meshed(answer)

    worst = result.nodes["node2"].verdict.worst
    assert worst.level is Level.UNKNOWN
    assert "nccl-tests" in worst.remedy
    assert {r.verdict.level for n, r in result.nodes.items() if n != "node2"} == {Level.PASS}


def test_a_node_that_hangs_costs_a_short_wait_in_later_rounds():
    limits = []

    def run(node, command):
        names = nodes_of(node, command)
        limits.append(command.timeout_s)
        if "node4" in names:
            return Output(Ending.TIMEOUT, duration_s=command.timeout_s)
        return speed()(names)

    world = FakeWorld(transport=asked_first(run), profiles=PROFILE, step=a_step("mesh"))
    result = MESH.run(MeshParams(), NODES, world)

    assert result.nodes["node4"].verdict.level is Level.FAIL
    assert set(limits[8:]) == {30.0}


def test_a_round_that_nobody_ends_is_played_again_with_more_time():
    limits = []

    def run(node, command):
        limits.append(command.timeout_s)
        if command.timeout_s < 100:
            return Output(Ending.TIMEOUT, duration_s=command.timeout_s)
        return speed()(nodes_of(node, command))

    world = FakeWorld(transport=asked_first(run), profiles=PROFILE, step=a_step("mesh"))
    MESH.run(MeshParams(levels=("alone",)), NODES, world)

    assert limits == [30.0] * 8 + [90.0] * 8 + [270.0] * 8


def limits_of(takes, bad="", nodes=NODES, **params):
    """The limits of every test, where each takes so many seconds and one node hangs."""
    limits = []

    def run(node, command):
        names = nodes_of(node, command)
        limits.append((names, command.timeout_s))
        if bad in names or takes(names) > command.timeout_s:
            return Output(Ending.TIMEOUT, duration_s=command.timeout_s)
        return replace(speed()(names), duration_s=takes(names))

    world = FakeWorld(transport=asked_first(run), profiles=PROFILE, step=a_step("mesh"))
    return MESH.run(MeshParams(**params), nodes, world), limits


def test_a_hang_in_the_first_round_costs_no_more_than_in_a_later_one():
    result, limits = limits_of(lambda names: 9.0, bad="node4")

    assert {limit for _, limit in limits} == {30.0}
    assert result.nodes["node4"].verdict.level is Level.FAIL


def test_who_hung_alone_gets_as_much_time_as_others_of_the_round_have_shown_to_need():
    def takes(names):
        return 31.0 if names == ["node4"] else 20.0

    result, limits = limits_of(takes)

    assert [limit for names, limit in limits if names == ["node4"]] == [30.0, 60.0]
    assert {r.verdict.level for r in result.nodes.values()} == {Level.PASS}


def test_a_test_of_all_nodes_may_take_longer_than_pairs_did():
    def takes(names):
        return 100.0 if len(names) > 2 else 9.0

    result, limits = limits_of(takes, levels=("pairs", "all"))

    assert [limit for names, limit in limits if len(names) > 2][:3] == [30.0, 90.0, 270.0]
    assert result.verdict is None
    assert {r.verdict.level for r in result.nodes.values()} == {Level.PASS}


def test_what_the_end_of_the_step_cut_off_is_no_vote():
    def run(node, command):
        if "node4" in (names := nodes_of(node, command)):
            return Output(Ending.TIMEOUT, reason="the step's time was over before this command")
        return speed()(names)

    world = FakeWorld(transport=asked_first(run), profiles=PROFILE, step=a_step("mesh"))
    result = MESH.run(MeshParams(), NODES, world)

    worst = result.nodes["node4"].verdict.worst
    assert (worst.level, worst.code) == (Level.UNKNOWN, "mesh.no-time")
    assert "timeout" in worst.remedy


def test_the_price_is_of_so_many_nodes_as_the_step_has():
    small, large = (MESH.price(MeshParams(), n) for n in (8, 1024))
    one = MESH.price(MeshParams(only="node1"), 5)

    assert small == (
        "2 rounds, 12 launches, 2 min, 0.3 node-hours;"
        " with suspects 5 rounds, 18 launches, 5 min, 0.7 node-hours"
    )
    assert large.startswith("2 rounds, 1536 launches, 2 min, 34.1 node-hours; with")
    assert one.startswith("2 rounds, 2 launches")


@pytest.mark.parametrize("word", ["pair", "everything"])
def test_an_unknown_level_is_refused(word):
    with pytest.raises(ValueError, match=f"'{word}' is none of alone, pairs"):
        MeshParams(levels=(word,))


def test_mpirun_notices_a_dead_node_and_never_asks():
    _, world = meshed(speed(), nodes=NODES[:2])

    (line,) = [line for _, line in world.transport.asked if line.startswith("mpirun")]
    assert "ServerAliveInterval=5" in line
    assert "BatchMode=yes" in line
    assert re.search(r"-H node\d:8,node\d:8", line)


def test_a_fault_of_the_full_size_fails_the_step_and_no_node():
    def answer(nodes):
        return finished(table(nodes, 30.0 if len(nodes) > 4 else 380.0))

    sized = [{**PROFILE["busbw"][1], "nodes": n, "gpus": None} for n in (4, 8)]
    profile = {**PROFILE, "busbw": [*PROFILE["busbw"], *sized]}
    world = FakeWorld(transport=asked_first(lambda n, c: answer(nodes_of(n, c))),
                      profiles=profile, step=a_step("mesh"))  # fmt: skip

    result = MESH.run(MeshParams(levels=("pairs", "all")), NODES, world)

    assert (result.verdict.level, result.verdict.worst.code) == (Level.FAIL, "mesh.size")
    assert "over 8 nodes fails though 4 of them pass" in result.verdict.worst.finding
    assert {r.verdict.level for r in result.nodes.values()} == {Level.PASS}


def test_too_few_ranks_are_told_before_any_bandwidth():
    def answer(nodes):
        text = table(nodes, 480.0)
        lacks = "node6" in nodes
        return finished(re.sub(r"#  Rank +7 .*\n", "", text) if lacks else text)

    result, _ = meshed(answer)

    assert "7 ranks, expected 8" in result.nodes["node6"].verdict.worst.finding
    assert result.nodes["node6"].verdict.level is Level.FAIL


def test_a_node_that_lost_nvls_is_named_so():
    def answer(nodes):
        return finished(table(nodes, 367.0 if nodes == ["node6"] else 480.0))

    result, _ = meshed(answer)

    worst = result.nodes["node6"].verdict.worst
    assert (worst.level, worst.code) == (Level.FAIL, "nccl.nvls-lost")
    assert "fabricmanager" in worst.remedy
