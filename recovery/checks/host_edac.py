"""Did the node's own memory have errors since it was started?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.sections import asking, read_sections

_COUNT = re.compile(r"\S*?/(mc\d+)/(?:[\w.-]+/)?(ue|ce)(?:_noinfo)?_count:(\d+)")
_BAD = "drain the node; name the module (ras-mc-ctl --layout, BMC event log) and replace it"
_MANY = 100.0
"""Corrected errors since boot above which a module is suspect; ours: see edac_corrected_max."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors by memory controller; ``torn`` lines could not be read."""

    uncorrected: Mapping[str, int]
    corrected: Mapping[str, int]
    torn: tuple[str, ...]


def _parse(printed: Printed) -> Errors:
    lines = read_sections(printed, bare="edac").get("edac") or ()
    counts: dict[str, dict[str, int]] = {"ue": {}, "ce": {}}
    torn = []
    for line in lines:
        if match := _COUNT.fullmatch(line.strip()):
            named = counts[match[2]]
            named[match[1]] = named.get(match[1], 0) + int(match[3][:18])
        else:
            torn.append(line.strip()[:80])
    return Errors(counts["ue"], counts["ce"], tuple(torn))


def _judge(seen: Errors, corrected_max: float | None) -> Verdict:
    if not seen.uncorrected and not seen.corrected:
        because = f": {seen.torn[0]!r}" if seen.torn else ""
        remedy = (
            "load the EDAC driver of the chipset (modprobe i10nm_edac, amd64_edac), or use the"
            " BMC's log and list host.edac under not_applicable"
        )
        return single(unknown(f"no memory controller counts errors{because}", remedy=remedy))
    found = [_uncorrected(name, n) for name, n in seen.uncorrected.items() if n]
    most = _MANY if corrected_max is None else corrected_max
    found += [_corrected(name, n, most) for name, n in seen.corrected.items() if n]
    if seen.torn:
        remedy = "run the check again"
        found.append(unknown(f"a counter could not be read: {seen.torn[0]!r}", remedy=remedy))
    names = {*seen.uncorrected, *seen.corrected}
    return verdict(found, otherwise=f"no error on {len(names)} memory controllers")


def _uncorrected(name: str, n: int) -> Finding:
    words = f"{name}: {n} memory errors that could not be corrected"
    return failed(words, remedy=_BAD, component=name, code="host.edac.uncorrected")


def _corrected(name: str, n: int, most: float) -> Finding:
    words = f"{name}: {n} corrected memory errors since boot"
    if n > most:
        return failed(words, remedy=_BAD, component=name, code="host.edac.corrected")
    remedy = "note it; act if it grows: `recover baseline diff` compares with an earlier run"
    return warned(words, remedy=remedy, component=name, code="host.edac.corrected")


def _facts(seen: Errors) -> Mapping[str, Any]:
    return {
        "edac_uncorrected": sum(seen.uncorrected.values()),
        "edac_corrected": sum(seen.corrected.values()),
        "edac_controllers": len({*seen.uncorrected, *seen.corrected}),
    }


HOST_EDAC = Check(
    name="host.edac",
    question="Did the node's own memory have errors since boot?",
    command=asking({"edac": "grep -H . /sys/devices/system/edac/mc/mc*/?e_count 2>/dev/null"}),
    parse=_parse,
    expect=lambda raw: number(raw, "edac_corrected_max"),
    judge=_judge,
    facts=_facts,
    recognises=told_by(r"/edac/", begins=r"## edac|/sys/devices/system/edac/mc/mc\d+/[uc]e_count:"),
    needs="the kernel's EDAC driver of the chipset",
    expects=("edac_corrected_max",),
)
