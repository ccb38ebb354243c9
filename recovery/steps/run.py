"""`run`: one shell line on every node."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recovery.engine.outcome import command_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun


class RunParams(BaseModel):
    """The line for ``/bin/sh -c``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)


def _run(params: RunParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    def on(node: Node) -> NodeResult:
        step = world.step
        command = Command(params.argument, timeout_s=step.timeout_s, env=step.env, sudo=step.sudo)
        return command_result(world, node, world.run(node, command), what="command")

    return StepResult(nodes=world.fan_out(nodes, on))


RUN = Verb(
    name="run",
    about="run a shell line on every node",
    effect=Effect.WRITE,
    rerun=Rerun.ASK,
    params=RunParams,
    describe=lambda p: f"run `{p.argument}`",
    commands=lambda p: (p.argument,),
    run=_run,
)
