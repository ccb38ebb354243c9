"""What a mesh finds before its first test: tools, versions, names, leaves, who is in question."""

import re
from dataclasses import dataclass, replace

import pytest

from recovery.errors import InputError
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from recovery.steps.mesh import MESH, MeshParams, rejudged
from tests.fakes import FakeTransport, FakeWorld, a_step, finished
from tests.steps.test_mesh import NODES, PROBED, PROFILE, asked_first, nodes_of, speed, table

NO_MPI = "tool all_reduce_perf /usr/bin/all_reduce_perf\n"


def meshed(probed, nodes=NODES, answer=None, files=None, **params):
    """A mesh over nodes that have what ``probed`` says of each (all the same, if a text)."""
    tests = answer or speed()

    def run(node, command):
        if "command -v" in command.line:
            return finished(probed if isinstance(probed, str) else probed.get(node.name, PROBED))
        if "/proc/net/snmp" in command.line:
            return finished("")
        return tests(nodes_of(node, command))

    world = FakeWorld(
        transport=FakeTransport(run),
        profiles=PROFILE,
        step=a_step("mesh", timeout_s=1800),
        files=files or {},
    )
    return MESH.run(MeshParams(**params), nodes, world), world


def worst(result, node):
    return result.nodes[node].verdict.worst


def noted(world, kind):
    return [facts for one, _, facts in world.notes if one == kind]


def test_without_mpi_and_torch_nodes_are_tested_alone_and_pairs_are_unknown():
    result, world = meshed(NO_MPI)

    assert {worst(result, n.name).level for n in NODES} == {Level.UNKNOWN}
    assert "no mpirun and no torch" in worst(result, "node1").finding
    assert "install Open MPI or torch" in worst(result, "node1").remedy
    assert {facts["level"] for facts in noted(world, "mesh.test")} == {"alone"}


def test_where_mpi_is_missing_on_some_only_these_are_unknown():
    result, _ = meshed({"node4": NO_MPI})

    assert worst(result, "node4").finding.startswith("not on this node: mpirun")
    assert {worst(result, n.name).level for n in NODES if n.name != "node4"} == {Level.PASS}


def test_another_build_or_mpi_is_a_warning_for_that_node():
    result, _ = meshed(
        {n.name: f"{PROBED}sum all_reduce_perf aaaa  -\n" for n in NODES}
        | {"node2": PROBED.replace("4.1.4", "5.0.1") + "sum all_reduce_perf bbbb  -\n"}
    )

    odd = [f for f in result.nodes["node2"].verdict.findings if f.code == "mesh.version"]
    assert [f.level for f in odd] == [Level.WARN, Level.WARN]
    assert "build of all_reduce_perf" in odd[0].finding + odd[1].finding
    assert worst(result, "node1").level is Level.PASS


def test_a_name_of_no_device_in_nccl_ib_hca_is_a_warning_with_what_there_is():
    result, _ = meshed(f"{PROBED}hca mlx5_0\nhca mlx5_1\n", env={"NCCL_IB_HCA": "mlx5_0,mlx4_0"})

    assert worst(result, "node1").finding == (
        "NCCL_IB_HCA names mlx4_0; the node has mlx5_0, mlx5_1"
    )


def test_a_launcher_that_fails_is_no_vote_against_anybody():
    def answer(nodes):
        if "node3" in nodes and len(nodes) > 1:
            return finished(
                status=1, stderr="ssh: connect to host node3 port 22: Connection refused\n"
                "ORTE was unable to reliably start one or more daemons.\n",
            )  # fmt: skip
        return speed()(nodes)

    result, _ = meshed(PROBED, answer=answer)

    assert worst(result, "node3").level is Level.UNKNOWN
    assert worst(result, "node3").remedy
    assert Level.FAIL not in {worst(result, n.name).level for n in NODES}


def test_only_the_nodes_in_question_are_tested_with_good_partners():
    result, world = meshed(PROBED, only="node1")

    tests = noted(world, "mesh.test")
    assert all("node1" in facts["group"] for facts in tests)
    assert len(tests) == 2
    assert {worst(result, n.name).level for n in NODES} == {Level.PASS}


def test_leaves_come_from_the_file_the_step_names():
    _, world = meshed(
        PROBED, leaves="leaves.txt", files={"leaves.txt": b"node[1-4] east\nnode[5-8] west\n"}
    )

    (plan,) = noted(world, "mesh.plan")
    assert {leaf for _, leaf, _ in plan["members"]} == {"east", "west"}


def test_a_leaf_file_that_says_nothing_is_our_mistake():
    with pytest.raises(InputError, match=r"leaves\.txt: no leaf of any node"):
        meshed(PROBED, leaves="leaves.txt", files={"leaves.txt": b"\n"})


def test_a_kept_mesh_gives_the_same_verdicts_again_and_others_by_other_rules():
    result, world = meshed(PROBED, answer=speed("node3"))
    (plan,), tests = noted(world, "mesh.plan"), noted(world, "mesh.test")

    def kept(digest):
        return world.evidence[digest].decode() if digest in world.evidence else None

    lenient = [{**row, "value": 90} for row in PROFILE["busbw"]]
    same = rejudged(plan, tests, lambda _: PROFILE, kept)
    other = rejudged(plan, tests[:12], lambda _: {**PROFILE, "busbw": lenient[:1]}, kept)

    assert {n: f.level for n, f in same.items()} == {
        n: r.verdict.level for n, r in result.nodes.items()
    }
    assert same["node3"].finding == worst(result, "node3").finding
    assert other["node3"].level is not Level.FAIL


def test_what_is_gone_from_the_evidence_stays_as_it_was_concluded():
    result, world = meshed(PROBED, answer=speed("node3"))
    (plan,), tests = noted(world, "mesh.plan"), noted(world, "mesh.test")

    again = rejudged(plan, tests, lambda _: {}, lambda _: None)

    assert again["node3"].level is Level.FAIL
    assert again["node3"].finding == worst(result, "node3").finding


def test_torch_is_asked_of_the_python_that_the_inventory_names():
    nodes = tuple(
        replace(n, variables={"torch_python": "/opt/t/bin/python", "expected_gpus": 1})
        for n in NODES[:2]
    )

    result, world = meshed(PROBED, nodes=nodes, runner="torch")

    assert any("/opt/t/bin/python -c" in line for _, line in world.transport.asked)
    assert "name the Python that has it with torch_python" in worst(result, "node1").remedy


def test_a_node_that_cannot_be_asked_is_unknown_and_takes_no_part():
    def run(node, command):
        if node.name == "node2":
            return finished(status=1, stderr="sh: no")
        return finished(PROBED) if "command -v" in command.line else finished("")

    world = FakeWorld(transport=FakeTransport(run), profiles=PROFILE, step=a_step("mesh"))

    result = MESH.run(MeshParams(levels=("alone",)), (Node("node1"), Node("node2")), world)

    assert "could not be asked" in worst(result, "node2").finding
    assert all(facts["group"] == ["node1"] for facts in noted(world, "mesh.test"))


def test_json_is_asked_for_where_every_node_of_a_test_knows_it():
    knows = f"{PROBED}json all_reduce_perf\n"

    _, world = meshed({**{n.name: knows for n in NODES}, "node4": PROBED})

    for asked, line in world.transport.asked:
        if "_perf -b" in line:
            assert ("-J " in line) is ("node4" not in (asked, *nodes_of(Node(asked), Line(line))))


@dataclass
class Line:
    line: str


def pooled(slow=(), status=0, profile=PROFILE, hang=False):
    """A mesh whose first pairs run in one launch; lines of launches by number of nodes."""

    def answer(nodes):
        if len(nodes) > 2 and hang:
            return Output(Ending.TIMEOUT, duration_s=30.0)
        if len(nodes) > 2:
            rate = 95.0 if set(nodes) & set(slow) else 371.0
            text = table(nodes, rate)
            return finished(re.sub(r"(Rank +)(\d+)( Group +)0", in_group, text), status=status)
        return speed(*slow)(nodes)

    def in_group(match):
        return f"{match[1]}{match[2]}{match[3]}{int(match[2]) // 16}"

    def run(node, command):
        if "command -v" in command.line:
            return finished(PROBED)
        if "/proc/net/snmp" in command.line:
            return finished("")
        return answer(nodes_of(node, command))

    world = FakeWorld(transport=FakeTransport(run), profiles=profile, step=a_step("mesh"))
    result = MESH.run(MeshParams(pooled=True, levels=("pairs", "suspects")), NODES, world)
    sizes = [len(nodes_of(Node(n), Line(line))) for n, line in world.transport.asked
             if "_perf -b" in line]  # fmt: skip
    return result, world, sizes


def test_pooled_pairs_are_one_launch_whose_output_is_the_evidence_of_each():
    result, world, sizes = pooled()

    tests = noted(world, "mesh.test")
    assert sizes == [8]
    assert len(tests) == 4
    assert len({facts["evidence"] for facts in tests}) == 1
    assert {facts["busbw_gb_per_s"] for facts in tests} == {371.0}
    assert {worst(result, n.name).level for n in NODES} == {Level.PASS}


@pytest.mark.parametrize("what", [{"slow": ("node3",)}, {"hang": True, "slow": ("node3",)}])
def test_a_pooled_launch_that_fails_convicts_nobody_and_each_pair_is_asked_by_itself(what):
    result, world, sizes = pooled(**what)

    assert sizes[:5] == [8, 2, 2, 2, 2]
    (note,) = noted(world, "mesh.pooled")
    assert note["ok"] is False
    assert {n.name for n in NODES if worst(result, n.name).level is Level.FAIL} == {"node3"}


def test_without_a_floor_nothing_is_pooled():
    _, _, sizes = pooled(profile={**PROFILE, "busbw": PROFILE["busbw"][:1]})

    assert sizes == [2] * 4


def test_a_build_that_ignores_the_split_has_too_many_ranks_and_is_asked_pair_by_pair():
    def answer(nodes):
        return finished(table(nodes, 371.0)) if len(nodes) > 2 else speed()(nodes)

    _, world = meshed(PROBED, answer=answer, pooled=True, levels=("pairs",))

    assert noted(world, "mesh.pooled")[0]["ok"] is False
    assert len(noted(world, "mesh.test")) == 4


def test_a_pooled_mesh_is_judged_again_from_its_one_output():
    _, world, _ = pooled()
    (plan,), tests = noted(world, "mesh.plan"), noted(world, "mesh.test")

    found = rejudged(plan, tests, lambda _: PROFILE, lambda d: world.evidence[d].decode())

    assert {finding.level for finding in found.values()} == {Level.PASS}


def test_seed_environment_and_members_are_written_down_before_the_first_test():
    _, world = meshed(PROBED, env={"NCCL_IB_HCA": "mlx5"})

    assert world.notes[0][0] == "mesh.plan"
    (plan,) = noted(world, "mesh.plan")
    assert (plan["seed"], plan["runner"], plan["env"]) == (1, "mpirun", {"NCCL_IB_HCA": "mlx5"})
    assert [name for name, *_ in plan["members"]] == [node.name for node in NODES]


def test_a_leaf_comes_from_lldp_and_else_from_the_rack():
    nodes = tuple(replace(node, leaf="", rack="rack7") for node in NODES)
    _, world = meshed({n.name: f"{PROBED}leaf leaf9\n" for n in nodes[:4]}, nodes=nodes)

    (plan,) = noted(world, "mesh.plan")
    assert [leaf for _, leaf, _ in plan["members"]] == ["leaf9"] * 4 + ["rack7"] * 4


def test_a_second_mesh_of_a_run_asks_only_what_changed():
    first, _ = meshed(PROBED, nodes=NODES[:7])
    world = FakeWorld(
        transport=asked_first(lambda node, command: speed()(nodes_of(node, command))),
        profiles=PROFILE, step=a_step("mesh"), earlier={"mesh": first.nodes},
    )  # fmt: skip

    MESH.run(MeshParams(only="changed"), NODES, world)

    groups = [facts["group"] for facts in noted(world, "mesh.test")]
    assert len(groups) == 2
    assert all("node8" in group for group in groups)
    assert "node-hours" in MESH.price(MeshParams(only="changed"), 8)


def test_a_second_mesh_without_any_earlier_one_asks_every_node():
    _, world = meshed(PROBED, only="changed")

    assert len(noted(world, "mesh.test")) == 12
