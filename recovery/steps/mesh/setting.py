"""What a mesh step found before its first test: tools, runner, members, and whom it cannot test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recovery.engine.outcome import ending_finding
from recovery.inventory.hostlist import expand
from recovery.mesh.launch import Launch, on_pairs, on_rail
from recovery.mesh.leaf_file import read_leaves
from recovery.mesh.probe import Probe, odd_ones, probe_line, read_probe, strange_hcas
from recovery.mesh.whole import COLLECTIVES
from recovery.mesh.words import Group, Level, Member, Options
from recovery.model.node import Node
from recovery.model.output import Command, Output
from recovery.model.ports import World
from recovery.model.verdict import Finding, unknown, warned
from recovery.reading.nccl_floor import Shape, floors_for
from recovery.steps.mesh.params import CHANGED, MeshParams

_PROBE_S = 30.0
_HOW_TO_GET = {
    "torch": "install torch on it, or name the Python that has it with torch_python in the"
    " inventory",
    "nccl-tests": "install nccl-tests and Open MPI as on the other nodes, or name their folder with"
    " nccl_tests_dir in the inventory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that stays the same while the ladder is climbed.

    ``untested`` are nodes that lack what a test needs, and why; ``odd`` are remarks about others.
    """

    params: MeshParams
    world: World
    nodes: Mapping[str, Node]
    runner: str
    options: Options
    members: tuple[Member, ...] = ()
    probes: Mapping[str, Probe] = field(default_factory=dict)
    untested: Mapping[str, Finding] = field(default_factory=dict)
    odd: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    no_pairs: Finding | None = None

    def launch(self, group: Group) -> Launch:
        """The test of a group, with the environment of its nodes."""
        first = self.nodes[group.nodes[0]]
        whole = Launch(
            collective=group.collective or self.params.argument,
            size=self.params.size,
            gpus=gpus_of(first, self.world),
            hosts=tuple(self.host(name) for name in group.nodes),
            env=nccl_env(first, self.params),
            folder=str(first.variables.get("nccl_tests_dir") or ""),
            python=python_of(first),
        )
        whole = replace(whole, writes_json=self._knows_json(group, whole.program))
        if group.rail is None:
            return on_pairs(whole) if self._forces_ring(first, whole) else whole
        return on_rail(whole, group.rail, self.hca(first, group.rail), self.options.n_rails)

    def has_floor(self, group: Group) -> bool:
        """Claims that the profile says what this test must reach at least."""
        launch = self.launch(group)
        rows = self.world.profile(self.nodes[group.nodes[0]]).get("busbw") or ()
        shape = Shape(
            collective=launch.collective,
            n_nodes=len(group.nodes),
            gpus_per_node=launch.gpus,
            algorithm=launch.algorithm,
        )
        return bool(floors_for(rows, shape))

    def _knows_json(self, group: Group, program: str) -> bool:
        """Claims that every node's build takes ``-J``: one that does not would end at once."""
        knows = (n in self.probes and program in self.probes[n].json for n in group.nodes)
        return self.runner != "torch" and all(knows)

    def _forces_ring(self, node: Node, launch: Launch) -> bool:
        """Claims that no floor of the profile was measured with what NCCL itself chooses."""
        rows = self.world.profile(node).get("busbw") or ()
        shape = Shape(collective=launch.collective, n_nodes=2, gpus_per_node=launch.gpus)
        ringed = floors_for(rows, replace(shape, algorithm="ring"))
        return self.runner != "torch" and bool(ringed or not floors_for(rows, shape))

    def host(self, name: str) -> str:
        """The name by which a launcher reaches a node: the inventory's ``mpi_host``, or its own."""
        return str(self.nodes[name].variables.get("mpi_host") or name)

    def hca(self, node: Node, rail: int) -> str:
        """The NIC of a rail: the inventory's ``rails``, or the usual name."""
        names = rails_of(node, self.world)
        return names[rail] if rail < len(names) else f"mlx5_{rail}"


def gpus_of(node: Node, world: World) -> int:
    """GPUs of a node, by its profile or inventory; 8 where nobody says."""
    return int(world.profile(node).get("expected_gpus") or 8)


def python_of(node: Node) -> str:
    """The Python of a node that has torch: the inventory's ``torch_python``, or ``python3``."""
    return str(node.variables.get("torch_python") or "python3")


def rails_of(node: Node, world: World) -> tuple[str, ...]:
    """Names of the NICs in the order of their rails, as far as anybody says."""
    named = world.profile(node).get("rails") or world.profile(node).get("compute_hcas")
    return tuple(map(str, named)) if isinstance(named, (list, tuple)) else ()


def nccl_env(node: Node, params: MeshParams) -> dict[str, str]:
    """Variables of the inventory (``nccl_env``) and of the step, which wins."""
    of_node = node.variables.get("nccl_env")
    inventory = of_node if isinstance(of_node, Mapping) else {}
    return {**{str(k): str(v) for k, v in inventory.items()}, **params.env}


def settle(params: MeshParams, nodes: tuple[Node, ...], world: World) -> Setting:
    """Asks every node what it has, and decides how and whom to test.

    Raises:
        InputError: the topology file or ``only`` cannot be read.
    """
    answers = dict(
        zip((n.name for n in nodes), world.each(nodes, _probing(params, world)), strict=True)
    )
    untested = {name: found for name, output in answers.items() if (found := _mute(output))}
    probes = {n: read_probe(o.text) for n, o in answers.items() if n not in untested}
    runner = _runner(params, probes)
    for node in nodes:
        if node.name in probes and (missing := _missing(node, params, runner, probes[node.name])):
            untested[node.name] = missing
    setting = Setting(
        params=params,
        world=world,
        nodes={n.name: n for n in nodes},
        runner=runner,
        options=_options(params, nodes, world, runner),
        probes=probes,
        untested=untested,
        odd=_odd(params, nodes, probes),
        no_pairs=_no_pairs(params, runner),
    )
    return replace(setting, members=_members(setting))


def _programs(node: Node, params: MeshParams) -> tuple[str, ...]:
    names = [params.argument, *(COLLECTIVES if Level.ALL in params.asked else ())]
    folder = str(node.variables.get("nccl_tests_dir") or "")
    one = Launch(collective="", size="", gpus=1, hosts=(), folder=folder)
    return tuple(replace(one, collective=name).program for name in dict.fromkeys(names))


def _probing(params: MeshParams, world: World) -> Any:
    def line(node: Node) -> str:
        return probe_line(_programs(node, params), python_of(node))

    def ask(node: Node) -> Output:
        return world.run(node, Command(line(node), timeout_s=_PROBE_S))

    return ask


def _mute(output: Output) -> Finding | None:
    finding = ending_finding(output)
    if finding is not None or output.ok:
        return finding
    return unknown(
        f"could not be asked what it has: {output.error_text.strip()[:120]}",
        remedy="run `recover hosts` and look at the node's shell",
        code="mesh.probe",
    )


def _runner(params: MeshParams, probes: Mapping[str, Probe]) -> str:
    if params.runner != "auto":
        return params.runner
    if any(probe.has("mpirun") for probe in probes.values()):
        return "mpirun"
    every = bool(probes) and all(probe.has("torch") for probe in probes.values())
    return "torch" if every else "ssh"


def _missing(node: Node, params: MeshParams, runner: str, probe: Probe) -> Finding | None:
    wanted = ("torch",) if runner == "torch" else _programs(node, params)
    if runner == "srun" or (runner == "mpirun" and params.asked - {Level.ALONE}):
        wanted = (*wanted, runner)
    lacking = [tool for tool in wanted if not probe.has(tool)]
    if not lacking:
        return None
    what = ", ".join(lacking)
    return unknown(
        f"not on this node: {what}; its GPUs and network were not tested",
        remedy=_HOW_TO_GET["torch" if runner == "torch" else "nccl-tests"],
        code="node.tool-missing",
    )


def _options(params: MeshParams, nodes: tuple[Node, ...], world: World, runner: str) -> Options:
    levels = params.asked & {Level.ALONE} if runner == "ssh" else params.asked
    if all(gpus_of(node, world) == 1 for node in nodes):
        levels = levels - {Level.ALONE}  # one GPU has nobody to talk to
    rails = max((len(rails_of(node, world)) for node in nodes), default=0)
    return Options(levels=levels, seed=world.seed, n_rails=rails or 8)


def _no_pairs(params: MeshParams, runner: str) -> Finding | None:
    if runner != "ssh" or not params.asked - {Level.ALONE}:
        return None
    return unknown(
        "no mpirun and no torch on the nodes: pairs, and so the network, were not tested",
        remedy="install Open MPI or torch on all nodes, or ask for `levels: [alone]`",
        code="mesh.no-launcher",
    )


def _odd(
    params: MeshParams, nodes: tuple[Node, ...], probes: Mapping[str, Probe]
) -> dict[str, tuple[Finding, ...]]:
    found: dict[str, tuple[Finding, ...]] = {}
    for odd in odd_ones(probes):
        remark = warned(odd.finding, remedy=odd.remedy, code="mesh.version")
        found[odd.node] = (*found.get(odd.node, ()), remark)
    for node in nodes:
        probe = probes.get(node.name, Probe())
        asked = nccl_env(node, params).get("NCCL_IB_HCA", "")
        if strange := strange_hcas(asked, probe.hcas):
            remark = warned(
                f"NCCL_IB_HCA names {', '.join(strange)}; the node has {', '.join(probe.hcas)}",
                remedy="correct NCCL_IB_HCA (nccl_env in the inventory, env in the step)",
                code="mesh.hca-name",
            )
            found[node.name] = (*found.get(node.name, ()), remark)
    return found


def _in_question(setting: Setting) -> frozenset[str]:
    """The nodes of ``only``; for ``changed`` those that no earlier mesh of this run found good."""
    if setting.params.only != CHANGED:
        return frozenset(expand(setting.params.only))
    earlier = setting.world.results("mesh")
    good = {name for name, found in earlier.items() if not found.verdict.level.blocks}
    return frozenset(setting.nodes) - good


def _members(setting: Setting) -> tuple[Member, ...]:
    params = setting.params
    file = params.leaves
    text = setting.world.local_file(file).decode("utf-8", "replace") if file else ""
    leaves = read_leaves(text, file, expand) if file else {}
    only = _in_question(setting)
    found = []
    for name, node in setting.nodes.items():
        if name in setting.untested:
            continue
        leaf = leaves.get(name) or node.leaf or setting.probes[name].leaf or node.rack or ""
        found.append(Member(name, leaf, known_good=bool(only) and name not in only))
    return tuple(found)
