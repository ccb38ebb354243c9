"""`power`: on, off, cycle, status by each node's BMC, with ipmitool on the controller."""

from __future__ import annotations

import shlex
from typing import Literal

from pydantic import BaseModel, ConfigDict

from recovery.engine.outcome import ending_finding, node_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import CONTROLLER, Node
from recovery.model.output import Command, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun
from recovery.model.verdict import Finding, failed, passed, single, unknown

OFF_S = 30.0  # a power supply needs this long without load before it is switched on again
POLL_S = 5.0
NO_BMC = "name it in the inventory: bmc: {address: ..., user: ..., password_env: ...}"


class PowerParams(BaseModel):
    """What to do."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: Literal["status", "on", "off", "cycle"]


def bmc_command(node: Node, words: tuple[str, ...]) -> Command | None:
    """The ipmitool line for the node's BMC; None when the inventory names none.

    The password comes from an environment variable of the controller that the inventory names
    (``password_env``); it is never in argv. One try and one retry: a dead BMC costs 2 s, not 20.
    """
    bmc = node.variables.get("bmc")
    values = {"address": bmc} if isinstance(bmc, str) else bmc
    if not isinstance(values, dict) or not values.get("address"):
        return None
    user = str(values.get("user", "ADMIN"))
    cipher = ("-C", str(values["cipher"])) if "cipher" in values else ()
    argv = ("ipmitool", "-I", "lanplus", "-H", str(values["address"]), "-U", user)
    line = shlex.join((*argv, *cipher, "-N", "1", "-R", "1", "-E", *words))
    source = str(values.get("password_env", "IPMI_PASSWORD"))
    return Command(f'IPMI_PASSWORD="${{{source}:-}}" {line}', timeout_s=30.0)


def _run(params: PowerParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    return StepResult(nodes=world.fan_out(nodes, lambda node: _power(params, node, world)))


def _power(params: PowerParams, node: Node, world: World) -> NodeResult:
    status = _ask(node, ("chassis", "power", "status"), world)
    if status is None:
        finding = unknown("no BMC is known for this node", remedy=NO_BMC, code="power.no-bmc")
        return NodeResult(node=node.name, verdict=single(finding))
    if params.argument == "status" or read_power(status) == "":
        return node_result(node.name, status, [_status_finding(status)], values=_values(status))
    if params.argument in ("off", "cycle"):
        status = _to("off", node, world)
        if params.argument == "off" or read_power(status) != "off":
            return _end(node, status, "off")
        world.clock.sleep(OFF_S)
    if read_power(status) != "on":
        status = _to("on", node, world)
    return _end(node, status, "on")


def _end(node: Node, status: Output, wanted: str) -> NodeResult:
    return node_result(node.name, status, [_wanted(status, wanted)], values=_values(status))


def _values(status: Output) -> dict[str, str]:
    return {"power": read_power(status)}


def _ask(node: Node, words: tuple[str, ...], world: World) -> Output | None:
    command = bmc_command(node, words)
    return world.run(CONTROLLER, command) if command else None


def read_power(output: Output) -> str:
    """``on``, ``off``, or nothing when it does not say. Source: ipmitool chassis power status."""
    for line in output.text.lower().splitlines():
        if line.strip().startswith("chassis power is "):
            return line.split()[-1] if line.split()[-1] in ("on", "off") else ""
    return ""


def _to(wanted: str, node: Node, world: World) -> Output:
    """Asks for a state and waits until the BMC says so; states lag behind the order."""
    _ask(node, ("chassis", "power", wanted), world)
    ends_at = world.clock.monotonic() + world.step.timeout_s
    while True:
        status = _ask(node, ("chassis", "power", "status"), world)
        if status is None:
            raise LookupError(node.name)
        if read_power(status) == wanted or world.clock.monotonic() + POLL_S > ends_at:
            return status
        world.clock.sleep(POLL_S)


def _status_finding(status: Output) -> Finding:
    power = read_power(status)
    if power:
        return passed(f"power is {power}")
    words = (status.error_text.strip().splitlines() or ["the BMC said nothing"])[-1]
    return ending_finding(status) or unknown(
        f"the BMC gave no power state: {words[:120]}",
        remedy="check its address, user and password; a dead BMC needs its own reset",
        code="power.no-answer",
    )


def _wanted(status: Output, wanted: str) -> Finding:
    if read_power(status) == wanted:
        return passed(f"power is {wanted}")
    if not read_power(status):
        return _status_finding(status)
    return failed(
        f"power is {read_power(status)}, not {wanted}",
        remedy="look at the BMC's event log (`ipmitool sel elist`) and at the power feed",
        code="power.not-as-asked",
    )


POWER = Verb(
    name="power",
    about="switch nodes by their BMC",
    effect=Effect.DISRUPTIVE,
    rerun=Rerun.ASK,
    params=PowerParams,
    describe=lambda p: f"power {p.argument} by BMC",
    commands=lambda p: (f"ipmitool -I lanplus -H BMC -U USER -E chassis power {p.argument}",),
    run=_run,
    timeout_s=300.0,
)
