"""`playbook`: an Ansible playbook on the nodes, through ansible-runner."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from recovery.model.kind import StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun


class PlaybookParams(BaseModel):
    """The playbook on the controller, and variables for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)
    extra_vars: dict[str, Any] = Field(default_factory=dict)


def _run(params: PlaybookParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    options = {"timeout_s": world.step.timeout_s, "extra_vars": params.extra_vars}
    return StepResult(nodes=world.playbook(params.argument, nodes, options))


PLAYBOOK = Verb(
    name="playbook",
    about="run an Ansible playbook on the nodes",
    effect=Effect.WRITE,
    rerun=Rerun.ASK,
    params=PlaybookParams,
    describe=lambda p: f"play {p.argument}",
    commands=lambda p: (f"ansible-playbook {p.argument}",),
    run=_run,
    together=True,
    timeout_s=1800.0,
)
