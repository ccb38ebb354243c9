"""The verb itself: settle, climb, conclude."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from recovery.inventory.hostlist import expand
from recovery.mesh.launch import Launch, alone_line, mpirun_line, on_pairs
from recovery.mesh.price import estimate
from recovery.mesh.verdicts import Kind, MeshVerdict, NodeVerdict, verdicts
from recovery.mesh.words import Level
from recovery.model.kind import Kept, NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, Verdict, failed, passed, unknown, verdict, warned
from recovery.steps.mesh.climbing import Climb, climb
from recovery.steps.mesh.params import CHANGED, MeshParams
from recovery.steps.mesh.setting import Setting, nccl_env, settle


def _run(params: MeshParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    setting = settle(params, nodes, world)
    _announce(setting)
    climbed = climb(setting)
    found = verdicts(climbed.state)
    by_node = {one.node: one for one in found.nodes}
    results = {n.name: _node_result(n.name, by_node.get(n.name), climbed) for n in nodes}
    return StepResult(nodes=results, values=_values(climbed, found), verdict=_step_verdict(found))


def _announce(setting: Setting) -> None:
    """Tells the price, the runner and the environment before the first test."""
    n, leaves = len(setting.members), len({member.leaf for member in setting.members})
    levels, rails = setting.options.levels, setting.options.n_rails
    clean = estimate(n, leaves, levels=levels, n_rails=rails)
    bad = estimate(n, leaves, max(1, n // 128), levels=levels, n_rails=rails)
    env = {name: nccl_env(node, setting.params) for name, node in setting.nodes.items()}
    same = next(iter(env.values()), {})
    facts = {
        "runner": setting.runner,
        "seed": setting.options.seed,
        "members": [[m.name, m.leaf, m.known_good] for m in setting.members],
        "levels": sorted(level.word for level in levels),
        "n_rails": rails,
        "slow_below": setting.params.slow_below,
        "env": same if all(one == same for one in env.values()) else env,
    }
    setting.world.note(
        f"{n} nodes by {setting.runner}: {clean} when clean; with suspects {bad}",
        kind="mesh.plan",
        facts=facts,
    )


def _node_result(name: str, one: NodeVerdict | None, climbed: Climb) -> NodeResult:
    setting = climbed.setting
    if one is None:
        return NodeResult(node=name, verdict=Verdict((setting.untested[name],)))
    findings = [finding_of(one), *_risen(name, climbed), *setting.odd.get(name, ())]
    if setting.no_pairs is not None:
        findings.append(setting.no_pairs)
    return NodeResult(
        node=name,
        verdict=verdict(findings, otherwise=one.finding),
        kept=tuple(_kept(one)),
        values={"kind": one.kind.value, "rails": list(one.rails), "votes": len(one.votes)},
    )


def _kept(one: NodeVerdict) -> Iterable[Kept]:
    for vote in one.votes:
        if vote.evidence:
            group = vote.group
            rail = "" if group.rail is None else f" rail {group.rail}"
            yield Kept(f"mesh {'+'.join(group.nodes)}{rail}", vote.evidence, vote.size_bytes)


def _risen(name: str, climbed: Climb) -> Iterable[Finding]:
    for number, rise in climbed.risen.get(name, ()):
        words = f"{rise.words} in round {number}"
        device = "its interface" if rise.component == "tcp" else rise.component
        remedy = f"look at the cable and switch port of {device} on {name}"
        told = failed if rise.broken else warned
        yield told(words, remedy=remedy, component=rise.component, code="mesh.counters")


def finding_of(one: NodeVerdict) -> Finding:
    """What the mesh concludes about a node, as a finding of the step."""
    match one.kind:
        case Kind.HEALTHY:
            return passed(one.finding, code="mesh.healthy")
        case Kind.BEHIND_BAD_LEAF:
            return warned(one.finding, remedy=one.remedy, code=one.code)
        case Kind.UNKNOWN:
            return unknown(one.finding, remedy=one.remedy, code=one.code)
        case Kind.BAD_NODE | Kind.BAD_RAIL:
            return failed(one.finding, remedy=one.remedy, code=one.code)


def _values(climbed: Climb, found: MeshVerdict) -> dict[str, object]:
    state = climbed.state
    tests = [r for played in state.history for r in played.results]
    speeds = [r.busbw_gb_per_s for r in tests if r.busbw_gb_per_s is not None]
    return {
        "tests": len(tests),
        "rounds": len(state.history),
        "median_busbw": median(speeds) if speeds else None,
        "runner": climbed.setting.runner,
        "leaves": [leaf for one in found.leaves for leaf in one.leaves],
        "pairs": [list(one.nodes) for one in found.pairs],
        "size_faults": [[one.collective, len(one.nodes), one.passes_at] for one in found.sizes],
    }


def _step_verdict(found: MeshVerdict) -> Verdict | None:
    findings = [*_about_sizes(found), *_about_leaves(found), *_about_pairs(found)]
    return verdict(findings, otherwise="") if findings else None


def _about_sizes(found: MeshVerdict) -> Iterable[Finding]:
    for one in found.sizes:
        yield failed(
            f"{one.collective} over {len(one.nodes)} nodes fails though {one.passes_at} of them"
            f" pass: {one.results[0].finding}",
            remedy="no node is to blame: look at routing, SHARP and subnet manager limits, and at"
            " NCCL_BUFFSIZE and memory; run smaller jobs meanwhile",
            code="mesh.size",
        )


def _about_leaves(found: MeshVerdict) -> Iterable[Finding]:
    for leaf in found.leaves:
        score, names = leaf.score, " or ".join(leaf.leaves)
        yield warned(
            f"links of leaf {names} to other leaves: {score.failed} of {score.tests} tests failed",
            remedy=f"read the counters of switch {names} and its uplinks (`ibqueryerrors`); do not"
            " drain the nodes behind it",
            code="mesh.leaf",
        )


def _about_pairs(found: MeshVerdict) -> Iterable[Finding]:
    for one in found.pairs:
        yield warned(
            f"{' and '.join(one.nodes)} failed together once, both are good with others:"
            f" {one.result.finding}",
            remedy="chance, or the path between them: look at it when it comes again",
            component="+".join(one.nodes),
            code="mesh.pair",
        )


def _describe(params: MeshParams) -> str:
    whom = "what no earlier mesh found good" if params.only == CHANGED else params.only
    only = f"; only {whom}, the others are partners" if params.only else ""
    return f"{params.argument} of {params.size}: {', '.join(params.levels)}{only}"


def _price(params: MeshParams, n_nodes: int) -> str:
    """For a clean mesh, and with one bad node in 128; leaves of 32 nodes where they count."""
    named = params.only and params.only != CHANGED
    asked = len(expand(params.only)) if named else n_nodes
    tested = 2 * asked if named else n_nodes  # each with a partner
    spared = asked if named and Level.ALONE in params.asked else 0
    leaves = max(2, n_nodes // 32) if Level.LEAVES in params.asked else 1
    whole = [
        replace(price, launches=price.launches - spared, node_hours=price.minutes / 60 * n_nodes)
        for suspects in (0, max(1, asked // 128))
        for price in (estimate(tested, leaves, suspects, levels=params.asked),)
    ]
    return f"{whole[0]}; with suspects {whole[1]}"


def _commands(params: MeshParams) -> tuple[str, ...]:
    launch = Launch(
        collective=params.argument, size=params.size, gpus=8, hosts=("NODE", "NODE"), env=params.env
    )
    alone = alone_line(launch) if Level.ALONE in params.asked else ""
    pairs = mpirun_line(on_pairs(launch)) if params.asked - {Level.ALONE} else ""
    return tuple(line for line in (alone, pairs) if line)


MESH = Verb(
    name="mesh",
    about="prove the network with nccl-tests and name the node that is bad",
    effect=Effect.READ,
    params=MeshParams,
    describe=_describe,
    commands=_commands,
    price=_price,
    run=_run,
    together=True,
    timeout_s=1800.0,
)
