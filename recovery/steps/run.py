"""`run`: one shell line on every node."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recovery.engine.outcome import exit_finding, node_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun

TEXT_LIMIT = 64 * 1024  # what `expect` sees of an output; the whole of it is evidence


class RunParams(BaseModel):
    """The line for ``/bin/sh -c``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)


def _run(params: RunParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    def on(node: Node) -> NodeResult:
        step = world.step
        command = Command(params.argument, timeout_s=step.timeout_s, env=step.env, sudo=step.sudo)
        output = world.run(node, command)
        kept = [
            world.keep(name, content)
            for name, content in (("stdout", output.stdout), ("stderr", output.stderr))
            if content
        ]
        text = output.text[:TEXT_LIMIT]
        values = {"stdout": text, "lines": text.splitlines(), "rc": output.exit_status}
        finding = exit_finding(output, what="command")
        return node_result(node.name, output, [finding], kept=kept, values=values)

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
