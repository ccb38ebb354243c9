"""`drain`: set nodes aside where the scheduler and later runs see it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun
from recovery.model.verdict import Finding, failed, passed, single, warned


class DrainParams(BaseModel):
    """Why: the scheduler shows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=3)


def _run(params: DrainParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    back = f"mended? `recover return {world.cluster} NODE` tests it and gives it back"
    said = world.set_aside(nodes, params.argument, back)
    finding = _judged(said)
    results = {n.name: NodeResult(node=n.name, verdict=single(finding)) for n in nodes}
    return StepResult(nodes=results, values={"told": said})


def _judged(said: str) -> Finding:
    if not said:
        return warned(
            "set aside for `recover` alone: the inventory names no scheduler",
            remedy="write scheduler: slurm, or kubernetes; tell others by hand meanwhile",
            code="drain.nobody-told",
        )
    if said.startswith("not drained"):
        return failed(
            f"set aside for `recover` alone: {said}",
            remedy="drain it by hand: scontrol update NodeName=NODE State=DRAIN Reason=...; "
            "kubectl cordon NODE",
            code="drain.refused",
        )
    return passed(said)


DRAIN = Verb(
    name="drain",
    about="set nodes aside where the scheduler sees it",
    effect=Effect.WRITE,
    rerun=Rerun.SAFE,
    params=DrainParams,
    describe=lambda p: f"set aside, drained or cordoned: {p.argument}",
    together=True,
    run=_run,
)
