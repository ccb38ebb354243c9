"""One node to a power state: nothing is ordered before the BMC said how the node stands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from recovery.engine.blast import DISRUPT
from recovery.engine.outcome import ending_finding, excused, node_result
from recovery.errors import InterruptedRunError, ParseError
from recovery.model.bmc import BmcAsk
from recovery.model.kind import NodeResult
from recovery.model.node import Node
from recovery.model.output import Ending, Output, Printed
from recovery.model.ports import World
from recovery.model.verdict import Finding, failed, passed, single, unknown, warned
from recovery.plan import seconds
from recovery.reading.bmc import parse_power
from recovery.steps.power.evidence import Saved, save
from recovery.steps.power.params import PowerParams

NO_BMC = "name it in the inventory: bmc: {address: ..., user: ..., password_env: ...}"
_SHARE = 4  # of a step's time that one change may take: shut down, off, the pause, on


def read_power(output: Output) -> str:
    """``on``, ``off``, or nothing: whatever else a BMC says is not known."""
    if output.ending is not Ending.FINISHED:
        return ""
    try:
        said = parse_power(Printed(output.text, output.error_text, output.exit_status))
    except ParseError:
        return ""
    return said.power if said.power in ("on", "off") else ""


@dataclass(slots=True)
class Switching:
    """One node's way to the state that is asked for."""

    node: Node
    params: PowerParams
    world: World
    findings: list[Finding] = field(default_factory=list)
    saved: Saved = field(default_factory=Saved)

    def carry_out(self) -> NodeResult:
        """The state asked for, proved by the BMC's own word; or why not, with nothing ordered."""
        status = self._status()
        if status is None:
            finding = unknown("no BMC is known for this node", remedy=NO_BMC, code="power.no-bmc")
            return NodeResult(node=self.node.name, verdict=single(self._may(finding)))
        if not read_power(status):
            return self._end(status, [_no_answer(status)])
        if self.params.argument == "status":
            self.saved = save(self.node, (BmcAsk.SEL,), self.world)
            return self._end(status, [self._standing(status), *self.saved.findings])
        if read_power(status) == self.params.argument:
            return self._end(status, [passed(f"power is {read_power(status)} already")])
        spent = self.world.spent(self.node) if self.params.argument != "on" else None
        if spent is not None:
            return self._end(status, [spent])
        self.saved = save(self.node, (BmcAsk.SEL, BmcAsk.SENSORS), self.world)
        status, wanted = self._switched(status)
        return self._end(status, [_wanted(status, wanted), *self.saved.findings])

    def _switched(self, status: Output) -> tuple[Output, str]:
        """The last answer, and the state that it had to name."""
        if self.params.argument != "on" and read_power(status) == "on":
            status = self._off()
            if self.params.argument == "off" or read_power(status) != "off":
                return status, "off"
            self._stay_off()
        status = self._to(BmcAsk.ON)
        if read_power(status) == "on":
            self.world.clock.sleep(seconds(self.params.settle))
            status = self._status() or status
        return status, "on"

    def _off(self) -> Output:
        """Off: first by a word to its system, so that what is not on disk yet gets there."""
        limit_s = seconds(self.params.orderly)
        if limit_s:
            status = self._to(BmcAsk.SOFT, within_s=limit_s)
            if read_power(status) != "on":
                return status  # off; or it says nothing any more, and then nothing is ordered
        return self._to(BmcAsk.OFF)

    def _may(self, finding: Finding) -> Finding:
        return excused(finding, may_fail=self.params.may_fail)

    def _stay_off(self) -> None:
        try:
            self.world.clock.sleep(seconds(self.params.off_for))
        except InterruptedRunError:
            self.world.note(f"{self.node.name} is left off: {self._again}", kind="power")
            raise

    @property
    def _again(self) -> str:
        return f"`recover power {self.world.cluster} {self.node.name} on` switches it on"

    def _status(self) -> Output | None:
        return self.world.bmc(self.node, BmcAsk.STATUS)

    def _to(self, order: BmcAsk, *, within_s: float = math.inf) -> Output:
        """Orders a state once and waits until the BMC says so; states lag behind the order."""
        what = "power" if order is BmcAsk.ON else DISRUPT
        self.world.intend(what, {"node": self.node.name, "what": f"power {order}"})
        ordered = self.world.bmc(self.node, order)
        refused = ordered if ordered is not None and not ordered.ok else None
        if refused is not None and order is BmcAsk.SOFT:  # nothing to wait for then
            self.world.note(f"{self.node.name}: {_refused(order, refused).finding}", kind="power")
            within_s = 0.0
        wanted = "on" if order is BmcAsk.ON else "off"
        status = self._until(wanted, min(within_s, self.world.step.timeout_s / _SHARE))
        if read_power(status) != wanted and refused is not None and order is not BmcAsk.SOFT:
            self.findings.append(_refused(order, refused))
        return status

    def _until(self, wanted: str, limit_s: float) -> Output:
        every = seconds(self.params.every)
        ends_at = self.world.clock.monotonic() + limit_s
        while True:
            status = self._status() or Output(Ending.NEVER_STARTED)
            over = self.world.clock.monotonic() + every > ends_at
            if read_power(status) == wanted or over:
                return status
            self.world.clock.sleep(every)

    def _standing(self, status: Output) -> Finding:
        power, lost = read_power(status), self.saved.lost_at
        if power == "on":
            return passed(f"power is on{f', AC was lost at {lost}' if lost else ''}")
        since = f"; AC was lost at {lost} and it did not come back by itself" if lost else ""
        feed = " (its BMC has not seen the feed return)" if lost and not self.saved.is_back else ""
        return warned(f"power is off{since}{feed}", remedy=self._again, code="power.off")

    def _end(self, status: Output, findings: list[Finding]) -> NodeResult:
        return node_result(
            self.node.name,
            status,
            [self._may(finding) for finding in (*findings, *self.findings)],
            kept=self.saved.kept,
            values={"power": read_power(status), "ac_lost_at": self.saved.lost_at},
        )


def _said(output: Output) -> str:
    lines = (output.reason or output.error_text.strip() or output.text.strip()).splitlines()
    return lines[-1][:160] if lines else "the BMC said nothing"


def _no_answer(status: Output) -> Finding:
    by_ending = None if status.ending is Ending.NEVER_STARTED else ending_finding(status)
    return by_ending or unknown(
        f"the BMC gave no power state: {_said(status)}",
        remedy="check its address, user, password and cipher; a dead BMC needs its own reset",
        code="power.no-answer",
    )


def _refused(wanted: str, ordered: Output) -> Finding:
    return failed(
        f"the BMC refused power {wanted}: {_said(ordered)}",
        remedy="check the rights of its user; look at the BMC itself",
        code="power.refused",
    )


def _wanted(status: Output, wanted: str) -> Finding:
    power = read_power(status)
    if power == wanted:
        return passed(f"power is {wanted}")
    if not power:
        return unknown(
            f"power {wanted} was ordered, and the BMC no longer says how the node stands: "
            f"{_said(status)}",
            remedy="ask again: `recover power CLUSTER NODE status`; the node may be off",
            code="power.no-answer",
        )
    return failed(
        f"power is {power}, not {wanted}",
        remedy="look at the BMC's event log (bmc-sel of this step) and at the power feed",
        code="power.not-as-asked",
    )
