"""`report`: write reports of the run so far."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import passed, single


class ReportParams(BaseModel):
    """Formats: html, md, junit, json."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: tuple[str, ...] = ("html",)


def _run(params: ReportParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    paths = world.report(params.argument)
    verdict = single(passed(f"written: {', '.join(paths)}"))
    return StepResult(
        nodes={n.name: NodeResult(node=n.name, verdict=verdict) for n in nodes},
        values={"paths": list(paths)},
    )


REPORT = Verb(
    name="report",
    about="write reports of the run so far",
    effect=Effect.READ,
    params=ReportParams,
    describe=lambda p: f"write reports: {', '.join(p.argument)}",
    run=_run,
    on_nodes=False,
)
