"""Checks of the machine that `recover` runs on, within a few seconds: for Slurm's own hooks."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recovery import inventory as inventories
from recovery.app import files, preparing
from recovery.app.scheduler import asked, release, use_of
from recovery.engine.bundle import bundle, unbundle
from recovery.engine.fanout import fan_out
from recovery.engine.judging import AnyCheck, judge_one
from recovery.engine.outcome import ending_finding
from recovery.errors import InputError
from recovery.model.node import Node
from recovery.model.output import Command, Output, Printed
from recovery.model.ports import TransportKind
from recovery.model.verdict import Finding, Level, unknown
from recovery.reading.occupancy import OURS
from recovery.registry import pick

PASSIVE = ("gpu.count", "gpu.state", "gpu.ecc", "gpu.remap", "gpu.xid")
MARK = f"{OURS} check:"
"""What the reason of a node begins with that its own health check drained: only these does a later
health check give back; a node that failed in a run stays out until `recover return`."""
_SLURM = {"scheduler": "slurm"}
_NOT_FOUND = (126, 127)


@dataclass(frozen=True, slots=True)
class Said:
    """One finding of one check."""

    check: str
    finding: Finding


def node_here(cluster: str | None, profile: str | None) -> tuple[Node, Mapping[str, Any]]:
    """This machine as the inventory has it, or as a profile describes it; what it must show.

    Raises:
        InputError: the inventory does not know this machine.
    """
    name = socket.gethostname()
    if cluster is None:
        here = Node(name=name, transport="local", profile=profile)
        return here, inventories.merge_expectations(preparing.profile(profile), here)
    nodes = preparing.read_inventory(cluster).nodes
    found = nodes.get(name) or nodes.get(name.partition(".")[0])
    if found is None:
        raise InputError(
            f"{cluster} has no node {name!r}", remedy="name the profile instead: --profile NAME"
        )
    known = preparing.profile(profile or found.profile)
    return found, inventories.merge_expectations(known, found)


def ask(names: Iterable[str], raw: Mapping[str, Any], *, budget_s: float) -> list[Said]:
    """Asks this machine; all findings, worst first. What the budget did not reach is UNKNOWN."""
    checks = tuple(preparing.check(name) for name in names)
    limits = {check.command: min(check.timeout_s, budget_s) for check in checks}
    here = Node(name=socket.gethostname(), transport="local")
    transport = pick("recovery.transports", TransportKind, "local").open(
        {"leash": files.payload("leash.sh"), "state_dir": "", "width": 1}
    )
    try:
        command = Command(bundle(limits, seed=here.name), timeout_s=budget_s, grace_s=1.0)
        outputs = unbundle(transport.run(here, command), limits, seed=here.name)
    finally:
        transport.close()
    judged = fan_out(
        checks,
        lambda check: _judged(check, outputs[check.command], raw),
        width=1,
        broken=_broken,
        done=lambda check, findings: None,
    )
    said = [Said(c.name, f) for c, found in zip(checks, judged, strict=True) for f in found]
    return sorted(said, key=lambda one: -one.finding.level)


def _judged(check: AnyCheck, output: Output, raw: Mapping[str, Any]) -> tuple[Finding, ...]:
    ended = ending_finding(output)
    if ended is not None:
        return (ended,)
    if output.exit_status in _NOT_FOUND:
        needs = check.needs or "the tool named"
        said = output.error_text.strip()[:120]
        return (unknown(f"not on this machine: {said}", remedy=f"install {needs}"),)
    printed = Printed(output.text, output.error_text, output.exit_status, check.command)
    return judge_one(check, printed, raw).verdict.findings


def _broken(check: AnyCheck, trace: str) -> tuple[Finding, ...]:
    last = trace.strip().splitlines()[-1][:160]
    return (unknown(f"{check.name} broke: {last}", remedy="report this as a defect of recover"),)


def exit_code(said: Iterable[Said], *, unknown_passes: bool) -> int:
    """0 well, 1 something failed, 3 something could not be told; warnings are well."""
    worst = max((one.finding.level for one in said), default=Level.UNKNOWN)
    return {Level.FAIL: 1, Level.UNKNOWN: 0 if unknown_passes else 3}.get(worst, 0)


def told(said: Iterable[Said]) -> list[str]:
    """What is not well, a line each, worst first; one line when all is."""
    lines = [
        f"{one.finding.level.name} {one.check}: {one.finding.finding}; {one.finding.remedy}"
        for one in said
        if one.finding.level is not Level.PASS
    ]
    return lines or ["PASS"]


def settle(said: Iterable[Said], context: str) -> str:
    """Drains this node when something failed, gives it back when all is well; says what it did.

    What could not be told changes nothing: a slow node is no reason to drain a whole cluster.

    Raises:
        InputError: in a prolog or epilog, where Slurm drains by itself and scontrol may deadlock.
        SchedulerError: Slurm does not answer.
    """
    if context.startswith(("prolog", "epilog")):
        raise InputError(
            "--drain in a prolog or epilog: slurmctld may wait for the node that asks it",
            remedy="leave it out: Slurm drains the node of a prolog that fails",
        )
    found = tuple(said)
    # Slurm's own word for this node comes first: its name there need not be that of the machine.
    here = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    worst = max((one.finding.level for one in found), default=Level.UNKNOWN)
    if worst is Level.UNKNOWN:
        return ""
    if worst is not Level.FAIL:
        given, words = release(_SLURM, (here,), mark=MARK)
        return words if given else ""
    use = use_of(_SLURM, (here,)).by_node.get(here)
    if use is not None and use.out:
        return ""
    reason = f"{MARK} {found[0].check}: {found[0].finding.finding}"[:200]
    asked(("scontrol", "update", f"NodeName={here}", "State=DRAIN", f"Reason={reason}"))
    return "drained in Slurm"
