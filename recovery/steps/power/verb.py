"""`power`: on, off, cycle, status by each node's BMC."""

from __future__ import annotations

from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun
from recovery.steps.power.feeds import losses_told, waves
from recovery.steps.power.order import Switching
from recovery.steps.power.params import PowerParams

MOST_LINES = 20


def _run(params: PowerParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    def work(node: Node) -> NodeResult:
        return Switching(node, params, world).carry_out()

    found = world.fan_out(nodes, work)
    lost_at = {name: str(r.values.get("ac_lost_at") or "") for name, r in found.items()}
    told = list(losses_told(nodes, lost_at)) if params.argument == "status" else []
    for line in told[:MOST_LINES]:
        world.note(line, kind="power")
    off = [name for name, result in found.items() if result.values.get("power") == "off"]
    return StepResult(nodes=found, values={"action": params.argument, "off": off, "losses": told})


def _waves(params: PowerParams, nodes: tuple[Node, ...]) -> tuple[tuple[Node, ...], ...]:
    return waves(nodes, params.by, params.inrush) if params.turns_on else (nodes,)


POWER = Verb(
    name="power",
    about="switch nodes by their BMC",
    effect=Effect.DISRUPTIVE,
    # `on` takes no node away: its waves hold it, not the limits of the blast radius.
    effect_of=lambda p: {"status": Effect.READ, "on": Effect.WRITE}.get(
        p.argument, Effect.DISRUPTIVE
    ),
    rerun=Rerun.ASK,
    params=PowerParams,
    describe=lambda p: p.words,
    commands=lambda p: (f"(BMC) chassis power {p.argument}",),
    waves=_waves,
    run=_run,
    timeout_s=600.0,
)
