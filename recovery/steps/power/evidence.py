"""What a BMC remembers, saved before anything is done; when its node lost power."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.model.bmc import BmcAsk
from recovery.model.node import Node
from recovery.model.output import Output, Printed
from recovery.model.ports import World
from recovery.model.result import Kept
from recovery.model.verdict import Finding, warned
from recovery.reading.bmc_event import SelEvent
from recovery.reading.bmc_sel import parse_sel

_NAMES = {BmcAsk.SEL: "bmc-sel", BmcAsk.SENSORS: "bmc-sensors"}
_LOST = re.compile(r"\bAC lost\b|power input .*\blost\b|\binput lost\b", re.IGNORECASE)


def save(node: Node, questions: tuple[BmcAsk, ...], world: World) -> Saved:
    """Keeps the answers as evidence. The event log is only ever read: nothing here clears it."""
    saved = Saved()
    for question in questions:
        output = world.bmc(node, question)
        if output is not None and output.ok and output.stdout:
            saved.kept.append(world.keep(_NAMES[question], output.stdout))
            saved.sel = output if question is BmcAsk.SEL else saved.sel
        else:
            saved.findings.append(_not_saved(_NAMES[question], output))
    return saved


@dataclass(slots=True)
class Saved:
    """What was kept of one node's BMC, and what could not be."""

    kept: list[Kept] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    sel: Output | None = None

    @property
    def lost_at(self) -> str:
        """When the node lost power last, ISO by its BMC's clock; nothing when it does not say."""
        events = self._losses()
        return max((e.at for e in events if e.asserted and e.at), default="")

    @property
    def is_back(self) -> bool:
        """Claims that the BMC saw the power of the last loss return."""
        events = list(self._losses())
        return bool(events) and events[-1].asserted is False

    def _losses(self) -> Iterator[SelEvent]:
        if self.sel is None:
            return
        try:
            sel = parse_sel(Printed(self.sel.text, self.sel.error_text, self.sel.exit_status))
        except ParseError:
            return
        yield from (e for e in sel.events if _LOST.search(f"{e.sensor} {e.what}"))


def _not_saved(name: str, output: Output | None) -> Finding:
    said = "" if output is None else output.reason or output.error_text.strip()
    why = f": {said.splitlines()[-1][:120]}" if said else ""
    return warned(
        f"{name} could not be saved{why}",
        remedy="read it by hand before the next change: `ipmitool sel elist`",
        code="power.not-saved",
    )
