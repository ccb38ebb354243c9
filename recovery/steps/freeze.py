"""`freeze`: keep the evidence of every node before anything is touched; nothing is cleared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from recovery.engine.outcome import ending_finding, node_result
from recovery.model.kind import Kept, NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, failed, passed, warned
from recovery.plan import seconds
from recovery.reading.outage import Outage, read_outage


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to keep: the name of the evidence, the exact line, and what brings the tool."""

    name: str
    line: str
    remedy: str
    timeout_s: float = 120.0


# The window ends with the last line of the boot before this one: what led to the outage.
_BEFORE = (
    "last=$(journalctl -b -1 -n 1 -o short-unix --no-pager -q 2>/dev/null | cut -d. -f1); "
    'case $last in ""|*[!0-9]*) echo "no journal of the boot before this one" >&2; exit 3;; esac; '
    'journalctl {only}-b -1 --since "@$((last - {window}))" -o short-iso --no-pager -q'
)
_FILES = (
    'found=1; for f in {paths}; do [ -r "$f" ] && {{ echo "==> $f <=="; '
    'tail -c 2097152 "$f"; found=0; }}; done; exit $found'
)
_LOGS = ("/var/log/kern.log", "/var/log/syslog", "/var/log/messages")
_BUG_REPORT = (
    'd=$(mktemp -d) && cd "$d" && nvidia-bug-report.sh --output-file report >&2; s=$?; '
    "cat report* && exit $s"
)
_CLOCK = "date +%s.%N"
CLOCK_AHEAD = "clock_ahead_s"
"""The value of a node's result: seconds that its clock is ahead of the controller's."""
_KEEP_JOURNAL = "keep the journal over reboots: Storage=persistent in journald.conf"


def _kernel_log(variables: Mapping[str, Any], window_s: float) -> list[Item]:
    window = int(window_s)
    folder = str(variables.get("log_dir", ""))
    own = (f"{folder}/kern.log", f"{folder}/syslog") if folder else ()
    paths = " ".join(quote(p) for p in (*own, *_LOGS))
    before = _BEFORE.format(only="-k ", window=window)
    everything = _BEFORE.format(only="", window=window)
    return [
        Item("dmesg", "dmesg --time-format=iso 2>/dev/null || dmesg", "allow dmesg for this user"),
        Item("kernel-log-before", before, _KEEP_JOURNAL),
        Item("syslog-before", everything, _KEEP_JOURNAL),
        Item("log-files", _FILES.format(paths=paths), "name the folder of the logs: log_dir"),
    ]


# Which machine this is, for its vendor: what the board says of itself (root alone sees serials) and
# the BMC's firmware. A part that nobody tells is left out; the line itself always succeeds.
_IDENTITY = (
    "for f in sys_vendor product_name product_serial chassis_serial board_serial bios_version "
    'bios_date; do v=$(cat /sys/class/dmi/id/$f 2>/dev/null) && echo "$f: $v"; done; '
    "ipmitool fru print 0 2>/dev/null; ipmitool mc info 2>/dev/null; exit 0"
)


def _bmc(variables: Mapping[str, Any], window_s: float) -> list[Item]:
    remedy = "load ipmi_devintf and ipmi_si, install ipmitool; or name no bmc in the inventory"
    return [
        Item("bmc-sel", "ipmitool sel elist", remedy),
        Item("bmc-sensors", "ipmitool sdr list", remedy),
        Item("bmc-chassis", "ipmitool chassis status", remedy),
        Item("identity", _IDENTITY, "log in as root"),
    ]


def _bug_report(variables: Mapping[str, Any], window_s: float) -> list[Item]:
    remedy = "it needs root: log in as root or say `sudo: true`"
    return [
        Item("nvidia-smi-q", "nvidia-smi -q", "install the NVIDIA driver"),
        Item("nvidia-bug-report", _BUG_REPORT, remedy, timeout_s=600.0),
    ]


def _training_state(variables: Mapping[str, Any], window_s: float) -> list[Item]:
    items = []
    if variables.get("train_log"):
        log = quote(str(variables["train_log"]))
        items.append(Item("train.log", f"tail -c 8388608 {log}", "name it right: train_log"))
    if variables.get("checkpoints"):
        folder = quote(str(variables["checkpoints"]))
        listing = f"ls -lanR --time-style=full-iso {folder}"
        items.append(Item("checkpoints.txt", listing, "name it right: checkpoints"))
    return items


_SOURCES = {
    "kernel-log": _kernel_log,
    "bmc": _bmc,
    "nvidia-bug-report": _bug_report,
    "training-state": _training_state,
}


class FreezeParams(BaseModel):
    """What to keep, and how long before the outage the logs reach back."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: tuple[str, ...] = tuple(_SOURCES)
    window: str = "30m"

    @field_validator("argument")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        strange = [v for v in value if v not in _SOURCES]
        if strange:
            raise ValueError(f"{strange[0]!r} is none of {', '.join(_SOURCES)}")
        return value

    def items(self, variables: Mapping[str, Any]) -> list[Item]:
        """All lines, in the order asked."""
        window_s = seconds(self.window)
        return [item for name in self.argument for item in _SOURCES[name](variables, window_s)]


def _run(params: FreezeParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    outages: list[Outage] = []
    results = world.fan_out(nodes, lambda node: _freeze(params, node, world, outages))
    gone = [o.at_s for o in outages if o.at_s is not None]
    wrong = [o.first_error_s for o in outages if o.first_error_s is not None]
    values = {
        "outage_at": max(gone, default=None),  # the last node to write a line saw it latest
        "first_error_at": min(wrong, default=None),
    }
    return StepResult(nodes=results, values=values)


def _freeze(params: FreezeParams, node: Node, world: World, outages: list[Outage]) -> NodeResult:
    kept: list[Kept] = []
    findings: list[Finding] = []
    output = Output(Ending.FINISHED, exit_status=0)
    for item in params.items({**world.variables, **node.variables}):
        limit = min(item.timeout_s, world.step.timeout_s)
        output = world.run(node, Command(item.line, timeout_s=limit, sudo=world.step.sudo))
        if output.stdout:
            kept.append(world.keep(item.name, output.stdout))
        if item.name == "syslog-before":
            outages.append(read_outage(output.text))
        findings += _trouble(item, output)
        if output.ending is Ending.NEVER_STARTED:
            break
    if kept:
        kept.append(world.keep("manifest.json", _manifest(node, kept)))
        findings.append(passed(f"{len(kept)} pieces of evidence kept"))
    elif not findings:
        findings.append(
            failed("nothing to keep", remedy="name train_log, checkpoints in the inventory")
        )
    values = _clock(node, world) if kept else {}
    return node_result(node.name, output, findings, kept=kept, values=values)


def _clock(node: Node, world: World) -> dict[str, float]:
    """How far its clock is ahead of ours; asked last, when there is a session, so at once."""
    sent_at = world.clock.now()
    output = world.run(node, Command(_CLOCK, timeout_s=min(60.0, world.step.timeout_s)))
    ours = (sent_at + world.clock.now()) / 2
    try:
        return {CLOCK_AHEAD: round(float(output.text) - ours, 3)}
    except ValueError:
        return {}  # an old busybox prints no part of a second


def _trouble(item: Item, output: Output) -> list[Finding]:
    by_ending = ending_finding(output)
    if by_ending:
        return [by_ending]
    if output.exit_status == 0:
        return []
    words = (output.error_text.strip().splitlines() or ["it printed nothing"])[-1][:120]
    what = "kept in part" if output.stdout else "not kept"
    return [warned(f"{item.name} {what}: {words}", remedy=item.remedy, code=f"freeze.{item.name}")]


def _manifest(node: Node, kept: list[Kept]) -> bytes:
    rows = [{"name": k.name, "sha256": k.digest, "bytes": k.size_bytes} for k in kept]
    return json.dumps({"node": node.name, "files": rows}, indent=1).encode()


FREEZE = Verb(
    name="freeze",
    about="keep the evidence of every node before anything is touched",
    effect=Effect.READ,
    params=FreezeParams,
    describe=lambda p: f"keep evidence: {', '.join(p.argument)}",
    commands=lambda p: (
        *(i.line for i in p.items({"train_log": "TRAIN_LOG", "checkpoints": "CHECKPOINTS"})),
        _CLOCK,
    ),
    run=_run,
    timeout_s=600.0,
)
