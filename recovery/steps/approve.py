"""`approve`: ask the operator; silence is not consent."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, failed, passed, single, unknown


class ApproveParams(BaseModel):
    """The question."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)


def _run(params: ApproveParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    finding = _finding(world, *world.ask(params.argument, world.step.timeout_s))
    return StepResult(
        nodes={n.name: NodeResult(node=n.name, verdict=single(finding)) for n in nodes},
        verdict=single(finding),
    )


def _finding(
    world: World,
    answer: bool | None,  # noqa: FBT001 - three-valued: None is silence
    by: str,
) -> Finding:
    again = f"recover resume {world.run_id} --approve {world.step.id}"
    if answer is None:
        return unknown(
            f"nobody answered ({by})", remedy=f"answer with `{again}`", code="approve.silence"
        )
    if not answer:
        return failed(f"refused by {by}", remedy=f"when sure: `{again}`", code="approve.refused")
    return passed(f"approved by {by}")


APPROVE = Verb(
    name="approve",
    about="ask the operator and wait for the answer",
    effect=Effect.READ,
    params=ApproveParams,
    describe=lambda p: f"ask: {p.argument}",
    run=_run,
    on_nodes=False,
    timeout_s=2 * 3600.0,
)
