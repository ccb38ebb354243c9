"""`launch`: start the training on all nodes, once."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recovery.model.kind import StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun


class LaunchParams(BaseModel):
    """The line that starts the training, the job's name, its log on the node, the launcher."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)
    name: str = "training"
    log: str = ""
    launcher: str = "command"


def _run(params: LaunchParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    job = {
        "line": params.argument,
        "name": params.name,
        "log": params.log or str(world.variables.get("train_log", "")),
        "env": dict(world.step.env),
    }
    started = world.launcher(params.launcher).launch(nodes, job, world)
    return StepResult(
        nodes=started,
        values={"job": params.name, "log": job["log"], "at": world.clock.now()},
    )


LAUNCH = Verb(
    name="launch",
    about="start the training on all nodes, once",
    effect=Effect.DISRUPTIVE,
    rerun=Rerun.SAFE,  # the launcher finds a job of the same name that runs, and starts none
    params=LaunchParams,
    describe=lambda p: f"start job {p.name} by {p.launcher}",
    commands=lambda p: (p.argument,),
    run=_run,
    together=True,
    timeout_s=300.0,
)
