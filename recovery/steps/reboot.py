"""`reboot`: reboot every node and prove it by a new boot id."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from recovery.engine.blast import DISRUPT
from recovery.engine.lost import ASK, Boot, read_boot
from recovery.engine.outcome import ending_finding, node_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun
from recovery.model.verdict import Finding, failed, passed, unknown
from recovery.plan import seconds

# Detached, so that the answer to this command arrives before the node goes down.
REBOOT = "(sleep 1; systemctl reboot || reboot) >/dev/null 2>&1 </dev/null & exit 0"
PAUSE_S = 5.0


class RebootParams(BaseModel):
    """How long the new boot must last before it counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str | None = None  # how long the node may take; default: the step's timeout
    settle: str = "10s"


def _run(params: RebootParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    return StepResult(nodes=world.fan_out(nodes, lambda node: _reboot(params, node, world)))


def _ask(node: Node, world: World) -> Output:
    return world.run(node, Command(ASK, timeout_s=15.0))


def _reboot(params: RebootParams, node: Node, world: World) -> NodeResult:
    asked = _ask(node, world)
    before = read_boot(asked)
    if before is None:
        trouble = ending_finding(asked) or unknown(
            "the boot id cannot be read, so a reboot could not be proved; not rebooted",
            remedy="read /proc/sys/kernel/random/boot_id by hand",
            code="reboot.no-boot-id",
        )
        return node_result(node.name, asked, [trouble])
    started = world.clock.monotonic()
    world.intend(DISRUPT, {"node": node.name, "what": "reboot"})
    world.run(node, Command(REBOOT, timeout_s=15.0, sudo=world.step.sudo))
    limit = seconds(params.argument) if params.argument else world.step.timeout_s
    finding = _wait(before, node, world, started + limit, seconds(params.settle))
    elapsed = world.clock.monotonic() - started
    done = Output(Ending.FINISHED, exit_status=0, duration_s=elapsed)
    return node_result(node.name, done, [finding])


def _wait(before: Boot, node: Node, world: World, ends_at: float, settle_s: float) -> Finding:
    seen: Boot | None = None
    started = world.clock.monotonic()
    while world.clock.monotonic() < ends_at:
        world.clock.sleep(settle_s if seen else PAUSE_S)
        now = read_boot(_ask(node, world))
        if now is None or now.id == before.id:
            seen = None
            continue
        if seen and now.id == seen.id and now.uptime_s <= world.clock.monotonic() - started + 60:
            return passed(f"rebooted, up {now.uptime_s:.0f} s")
        seen = now
    return failed(
        "no new boot was seen in time",
        remedy="look at the console by its BMC; `recover power` can cycle it",
        code="reboot.not-back",
    )


REBOOT_VERB = Verb(
    name="reboot",
    about="reboot every node and prove it by a new boot id",
    effect=Effect.DISRUPTIVE,
    rerun=Rerun.ASK,
    params=RebootParams,
    describe=lambda p: f"reboot, and prove it by a boot id that lasts {p.settle}",
    commands=lambda p: (ASK, REBOOT),
    run=_run,
    timeout_s=1200.0,
)
