"""`wait`: ask a shell line again and again until it succeeds and is as expected."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recovery.engine.conclude import conclude
from recovery.engine.outcome import command_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.plan import seconds

ONE_ASK_S = 30.0  # a node that hangs is asked again; the step's own limit ends the waiting


class WaitParams(BaseModel):
    """The line, and how long to wait between two asks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)
    every: str = "5s"


def _run(params: WaitParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    pause = seconds(params.every)

    def on(node: Node) -> NodeResult:
        ends_at = world.clock.monotonic() + world.step.timeout_s
        while True:
            result = conclude(world.step, world.variables, _ask(params, node, world))
            left = ends_at - world.clock.monotonic()
            if not result.verdict.level.blocks or left <= pause:
                return result
            world.clock.sleep(pause)

    return StepResult(nodes=world.fan_out(nodes, on))


def _ask(params: WaitParams, node: Node, world: World) -> NodeResult:
    step = world.step
    limit = min(ONE_ASK_S, step.timeout_s)
    line = Command(params.argument, timeout_s=limit, env=step.env, sudo=step.sudo)
    return command_result(world, node, world.run(node, line), what="waited for")


WAIT = Verb(
    name="wait",
    about="ask a line until it succeeds and is as expected",
    effect=Effect.READ,
    params=WaitParams,
    describe=lambda p: f"wait until `{p.argument}` succeeds, asked every {p.every}",
    commands=lambda p: (p.argument,),
    run=_run,
    timeout_s=600.0,
)
