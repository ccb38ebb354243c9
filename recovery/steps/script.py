"""`script`: a local file, sent to every node and run there by its own first line."""

from __future__ import annotations

import shlex

from pydantic import BaseModel, ConfigDict, Field

from recovery.engine.outcome import command_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun

TEXT_LIMIT = 64 * 1024

# The file comes by standard input and is removed by the shell that runs it, however it ends.
_RECEIVE = (
    'f=$(mktemp "${TMPDIR:-/tmp}/recover.XXXXXX") || exit 125; trap \'rm -f "$f"\' EXIT; '
    'cat >"$f" && chmod 700 "$f" || exit 125; "$f"'
)


class ScriptParams(BaseModel):
    """The file on the controller and its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)
    args: tuple[str, ...] = ()


def _line(params: ScriptParams) -> str:
    return f"{_RECEIVE} {shlex.join(params.args)} </dev/null".rstrip()


def _run(params: ScriptParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    content = world.local_file(params.argument)
    if not content.startswith(b"#!"):
        content = b"#!/bin/sh\n" + content

    def on(node: Node) -> NodeResult:
        step = world.step
        command = Command(
            _line(params),
            timeout_s=step.timeout_s,
            env=step.env,
            sudo=step.sudo,
            stdin=content,
        )
        return command_result(world, node, world.run(node, command), what=params.argument)

    return StepResult(nodes=world.fan_out(nodes, on))


SCRIPT = Verb(
    name="script",
    about="send a local file to every node and run it there",
    effect=Effect.WRITE,
    rerun=Rerun.ASK,
    params=ScriptParams,
    describe=lambda p: f"send and run {shlex.join([p.argument, *p.args])}",
    commands=lambda p: (f"<{p.argument}> {shlex.join(p.args)}".rstrip(),),
    run=_run,
)
