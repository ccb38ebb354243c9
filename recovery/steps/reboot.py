"""`reboot`: reboot every node and prove it by a new boot id."""

from __future__ import annotations

import shlex

from pydantic import BaseModel, ConfigDict

from recovery.engine.blast import DISRUPT
from recovery.engine.lost import ASK, Boot, read_boot
from recovery.engine.outcome import ending_finding, excused, node_result
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


_ASKED = "asked all"
_KNOWN = {
    "driver": "nvidia-smi -L | grep -q '^GPU '",
    "fabric-manager": "systemctl is-active nvidia-fabricmanager",
}


class RebootParams(BaseModel):
    """How long the new boot must last before it counts, and what must work then.

    ``ready`` names ``driver``, ``fabric-manager``, a path that must be mounted, or a service.
    ``may_fail``: what comes after says whether it helped.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str | None = None  # how long the node may take; default: the step's timeout
    settle: str = "10s"
    ready: tuple[str, ...] = ()
    may_fail: bool = False

    @property
    def line(self) -> str:
        """Prints what is not ready yet, then that all was asked: silence is never readiness."""
        asks = (f"({_ready(w)}) >/dev/null 2>&1 || echo {shlex.quote(w)}; " for w in self.ready)
        return f"{''.join(asks)}echo '{_ASKED}'"


def _ready(word: str) -> str:
    if word.startswith("/"):
        return f"mountpoint -q {shlex.quote(word)}"
    return _KNOWN.get(word, f"systemctl is-active {shlex.quote(word)}")


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
        return node_result(node.name, asked, [_may(params, trouble)])
    spent = world.spent(node)
    if spent is not None:
        return node_result(node.name, asked, [_may(params, spent)])
    started = world.clock.monotonic()
    world.intend(DISRUPT, {"node": node.name, "what": "reboot"})
    world.run(node, Command(REBOOT, timeout_s=15.0, sudo=world.step.sudo))
    limit = seconds(params.argument) if params.argument else world.step.timeout_s
    finding = _wait(before, node, world, started + limit, seconds(params.settle))
    if not finding.level.blocks and params.ready:
        finding = _until_ready(params, node, world, started + limit)
    elapsed = world.clock.monotonic() - started
    done = Output(Ending.FINISHED, exit_status=0, duration_s=elapsed)
    return node_result(node.name, done, [_may(params, finding)])


def _may(params: RebootParams, finding: Finding) -> Finding:
    return excused(finding, may_fail=params.may_fail)


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


def _until_ready(params: RebootParams, node: Node, world: World, ends_at: float) -> Finding:
    """Asks again until all that must work does; what still does not is named."""
    while True:
        lines = world.run(node, Command(params.line, timeout_s=60.0)).text.split("\n")
        known = _ASKED in lines
        left = [line for line in lines if line in params.ready]
        if known and not left:
            return passed(f"rebooted; {', '.join(params.ready)} ready")
        if world.clock.monotonic() + PAUSE_S > ends_at:
            break
        world.clock.sleep(PAUSE_S)
    if not known:
        return unknown(
            "rebooted, and it does not say what is ready",
            remedy="log in and look: systemctl --failed",
            code="reboot.not-ready",
        )
    return failed(
        f"rebooted, and not ready in time: {', '.join(left)}",
        remedy="on the node: systemctl --failed; mount | grep PATH; nvidia-smi -L",
        code="reboot.not-ready",
    )


REBOOT_VERB = Verb(
    name="reboot",
    about="reboot every node and prove it by a new boot id",
    effect=Effect.DISRUPTIVE,
    rerun=Rerun.ASK,
    params=RebootParams,
    describe=lambda p: f"reboot, and prove it by a boot id that lasts {p.settle}",
    commands=lambda p: (ASK, REBOOT, *((p.line,) if p.ready else ())),
    run=_run,
    timeout_s=1200.0,
)
