"""Do the error counters of the HCA ports tell of a bad link?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, unknown, verdict, warned
from recovery.reading.asked import tool_asked
from recovery.reading.ib_counters import LARGEST, Counters, has_ib_counters, parse_ib_counters

_PHYSICAL = (
    "link_downed",
    "link_error_recovery",
    "symbol_error",
    "port_rcv_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
_WATCH = "clear the counters (`perfquery -R`), watch them under load, change the cable if they rise"


def expect(raw: Mapping[str, Any]) -> frozenset[str]:
    """Reads ``ignored_hcas``: devices whose counters do not matter."""
    return frozenset(str(name) for name in raw.get("ignored_hcas") or ())


def judge(found: Counters, ignored: frozenset[str]) -> Verdict:
    """A finding for each port that counted errors; one sample cannot say when they happened."""
    findings = [
        finding
        for port, values in found.by_port.items()
        if port.partition("/")[0] not in ignored
        for finding in _of_port(port, values)
    ]
    if found.cut and not findings:
        findings.append(unknown("the answer is cut", remedy="read the counters again"))
    return verdict(findings, otherwise=f"no physical error on {len(found.by_port)} ports")


def _of_port(port: str, values: Mapping[str, int]) -> Iterator[Finding]:
    device = port.partition("/")[0]
    stuck = [name for name in values if values[name] == LARGEST.get(name)]
    counted = {name: values[name] for name in _PHYSICAL if values.get(name)}
    if stuck:
        yield warned(
            f"{port}: {', '.join(stuck)} reached the largest value and counts no more",
            remedy=_WATCH,
            component=device,
            code="ib.counters.saturated",
        )
    elif counted:
        shown = ", ".join(f"{name} {value}" for name, value in counted.items())
        yield warned(
            f"{port}: {shown} since the counters were cleared",
            remedy=_WATCH,
            component=device,
            code="ib.counters.errors",
        )
    if not set(_PHYSICAL) & set(values):
        yield unknown(
            f"{port}: none of the physical error counters is in the text",
            remedy="`grep . /sys/class/infiniband/*/ports/*/counters/*` on the node",
            component=device,
            code="ib.counters.none",
        )


def facts(found: Counters) -> Mapping[str, Any]:
    """Counters by device, and what is at its largest value."""

    def of(name: str) -> dict[str, int]:
        return {
            port.partition("/")[0]: values[name]
            for port, values in found.by_port.items()
            if name in values
        }

    return {
        "link_downed": of("link_downed"),
        "symbol_error": of("symbol_error"),
        "saturated": list(found.saturated),
        "counters": {port: dict(values) for port, values in found.by_port.items()},
    }


def recognises(printed: Printed) -> bool:
    """Claims sysfs counters and perfquery."""
    return tool_asked(printed.command) in ("", "ib") and has_ib_counters(printed.text)


COUNTERS = Check(
    name="ib.counters",
    question="Do the error counters of the HCA ports tell of a bad link?",
    command="grep -s . /sys/class/infiniband/*/ports/*/counters/*",
    parse=parse_ib_counters,
    expect=expect,
    judge=judge,
    facts=facts,
    recognises=recognises,
    needs="grep",
    expects=("ignored_hcas",),
)
