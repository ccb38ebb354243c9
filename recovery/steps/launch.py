"""`launch`: start the training on all nodes, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from recovery.checkpoints.layout import Fewer, fit, judge_fewer, read_shape
from recovery.checkpoints.relaunch import pitfalls, resume_argument
from recovery.inventory.picking import pick_by_leaf
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun
from recovery.model.verdict import Finding, Verdict, passed, single, unknown


class LaunchParams(BaseModel):
    """The line that starts the training, the job's name, its log on the node, the launcher.

    ``nodes_used`` is how many nodes the job takes at most; the others are spares. ``fewer`` says
    what to do with fewer GPUs than the checkpoint was saved by: `refuse`, `go` where the parallel
    layout fits, or `anyhow`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)
    name: str = "training"
    log: str = ""
    launcher: str = "command"
    nodes_used: int | None = Field(default=None, ge=1)
    fewer: Fewer = Fewer.GO


def _run(params: LaunchParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    chosen = world.values("checkpoint")
    used, findings = _used(params, nodes, chosen, world)
    findings += pitfalls(
        params.argument, str(chosen.get("framework", "")), chosen.get("components", ())
    ) if chosen else ()  # fmt: skip
    if any(f.level.blocks for f in findings):
        return StepResult(nodes=_untouched(nodes, findings[0]), verdict=Verdict(findings))
    job = {
        "line": params.argument,
        "name": params.name,
        "log": params.log or str(world.variables.get("train_log", "")),
        "env": {**_resume(chosen), **world.step.env},
    }
    started = world.launcher(params.launcher).launch(used, job, world)
    spares = {n.name: _spare(n, len(used)) for n in nodes if n.name not in started}
    logs = [str(r.values["log"]) for r in started.values() if r.values.get("log")]
    return StepResult(
        nodes={**started, **spares},
        values={
            "job": params.name,
            "log": job["log"] or (logs[0] if logs else ""),
            "at": world.clock.now(),
        },
        verdict=Verdict(findings) if findings else None,
    )


def _resume(chosen: Mapping[str, Any]) -> dict[str, str]:
    """What the launch line may read: the step, its path, the framework's own resume argument."""
    step, path = chosen.get("last_complete"), str(chosen.get("path", ""))
    if step is None:
        return {}
    return {
        "RESUME_STEP": str(step),
        "RESUME_PATH": path,
        "RESUME_ARGUMENT": resume_argument(str(chosen.get("framework", "")), path, int(step)),
    }


def _used(
    params: LaunchParams, nodes: tuple[Node, ...], chosen: Mapping[str, Any], world: World
) -> tuple[tuple[Node, ...], tuple[Finding, ...]]:
    """The nodes to start on, in the order given, and what fewer of them mean."""
    most = min(params.nodes_used or len(nodes), len(nodes))
    shape = read_shape(chosen.get("shape") or {})
    gpus = min(_processes(node, world) for node in nodes)
    elsewhere = world.step.head_only  # the line starts the job from one node, on nodes it names
    if shape is None or elsewhere or not gpus or most * gpus >= shape.world:
        return _picked(nodes, most), ()
    found = fit(
        shape, nodes=most, gpus_per_node=gpus, framework=str(chosen.get("framework", ""))
    )  # fmt: skip
    used = found.nodes if not found.problem else most
    return _picked(nodes, used), (judge_fewer(found, given=most, policy=params.fewer),)


def _picked(nodes: tuple[Node, ...], wanted: int) -> tuple[Node, ...]:
    names = frozenset(pick_by_leaf(nodes, wanted))
    return tuple(node for node in nodes if node.name in names)


def _processes(node: Node, world: World) -> int:
    """Ranks that a node takes, one a GPU; 0 where nobody says how many GPUs it has."""
    known = world.profile(node)
    count = known.get("processes_per_node") or known.get("expected_gpus") or 0
    return int(count) if str(count).isdigit() else 0


def _untouched(nodes: tuple[Node, ...], why: Finding) -> dict[str, NodeResult]:
    finding = unknown(f"not started: {why.finding}", remedy=why.remedy, code=why.code)
    return {n.name: NodeResult(node=n.name, verdict=single(finding)) for n in nodes}


def _spare(node: Node, used: int) -> NodeResult:
    words = f"a spare: the job takes {used} nodes"
    return NodeResult(node=node.name, verdict=single(passed(words)), values={"state": "spare"})


LAUNCH = Verb(
    name="launch",
    about="start the training on all nodes, once",
    effect=Effect.DISRUPTIVE,
    disrupts=False,
    rerun=Rerun.SAFE,  # the launcher finds a job of the same name that runs, and starts none
    params=LaunchParams,
    describe=lambda p: f"start job {p.name} by {p.launcher}",
    commands=lambda p: (p.argument,),
    run=_run,
    together=True,
    timeout_s=300.0,
)
