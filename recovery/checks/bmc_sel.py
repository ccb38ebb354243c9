"""Which hardware events does the BMC remember that still stand?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Level, Verdict, unknown, verdict, warned
from recovery.reading.bmc import is_asked
from recovery.reading.bmc_event import SelEvent
from recovery.reading.bmc_sel import SEL_LINE, Sel, parse_sel
from recovery.reading.bmc_words import refused_finding

_RULES: tuple[tuple[re.Pattern[str], Level, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), level, remedy)
    for pattern, level, remedy in (
        # no state of the machine: informational, or over when it is written
        (
            r"log area reset|log cleared|boot completed|initiated by|os boot|timestamp|"
            r"power button|s0/g0|s5/g2|working|presence detected|fully redundant|state deasserted|"
            r"oem record|graceful shutdown|legacy o(?:n|ff) state|session|version change",
            Level.PASS,
            "",
        ),
        (
            r"uncorrectable ecc|uncorrectable machine|uncorrectable memory|multi-?bit",
            Level.FAIL,
            "take the node out, replace the memory module named, test memory before it returns",
        ),
        (
            r"kernel panic|ierr|caterr|mcerr|bus fatal|pci [sp]err|fatal nmi|frb\d|machine check",
            Level.FAIL,
            "save the evidence, power cycle; replace the part named when it comes back",
        ),
        (
            r"thermal trip|non-recoverable|upper critical|lower critical|transition to critical|"
            r"over-?temperature",
            Level.FAIL,
            "check fans, power supplies and room cooling before loading the node",
        ),
        (r"redundancy (?:is )?lost|redundancy degraded|non-redundant", Level.WARN,
         "look at the power supplies and fans: one gives nothing; check its feed and breaker"),
        (r"ac lost|power input .*lost|input lost", Level.WARN,
         "check the feed and breaker of that power supply"),
        (r"power off/down|power cycle", Level.WARN, "see whether the node is on: bmc.power"),
        (r"failure detected|predictive failure|drive fault|fault status|device disabled",
         Level.FAIL, "replace the part named"),
        (r"correctable ecc|correctable memory|non-critical|watchdog|almost full|log full|intrusion|"
         r"bus (?:correctable|degraded)|throttled|degraded", Level.WARN,
         "look at the part named; keep the log as evidence, do not clear it"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SelExpect:
    """Nothing is expected of a log but that nothing in it still stands."""


def expect(raw: Mapping[str, Any]) -> SelExpect:
    """A log needs no expectation."""
    return SelExpect()


def judge(sel: Sel, expected: SelExpect) -> Verdict:
    """A finding for each event that was asserted and not taken back."""
    if sel.refused is not None:
        return verdict([refused_finding(sel.refused, "bmc.sel")], otherwise="")
    found = [f for f in _standing(sel) if f.level is not Level.PASS]
    found += _reach(sel, found=bool(found))
    return verdict(found, otherwise=_well(sel))


def _well(sel: Sel) -> str:
    if not sel.events:
        return "the event log is empty"
    n_oem = sum(_is_oem(event) for event in sel.events)
    own = f" ({n_oem} of the maker's own, which only its tool can read)" if n_oem else ""
    return f"{len(sel.events)} events, all of them over{own}"


def _is_oem(event: SelEvent) -> bool:
    return event.sensor.startswith("OEM record")


def _standing(sel: Sel) -> Iterator[Finding]:
    for event in sel.still:
        level, remedy = _rule(event)
        at = f" since {event.at}" if event.at else ""
        values = (
            f" ({event.reading:g}, threshold {event.threshold:g})"
            if event.reading is not None and event.threshold is not None
            else ""
        )
        yield Finding(
            level, f"{event.words.rstrip('.')}{values}{at}", remedy, event.sensor, "bmc.sel.open"
        )


def _rule(event: SelEvent) -> tuple[Level, str]:
    text = f"{event.sensor} {event.what}"
    for pattern, level, remedy in _RULES:
        if pattern.search(text):
            return level, remedy
    if event.severity == "Critical":
        return Level.FAIL, "replace or repair the part named; keep the log as evidence"
    return Level.WARN, "no rule knows this event: look it up in the maker's manual"


def _reach(sel: Sel, *, found: bool) -> Iterator[Finding]:
    if found:
        return
    if sel.events and all(map(_is_oem, sel.events)):
        yield warned(
            f"{len(sel.events)} records of the maker's own, which only its tool can read",
            remedy="read them with the maker's tool or its web page; keep the log as evidence",
            code="bmc.sel.oem",
        )
    elif not sel.complete:
        yield unknown(
            "the log has more pages and they were not read",
            remedy="follow Members@odata.nextLink to the end",
            code="bmc.sel.incomplete",
        )
    elif sel.cut:
        yield unknown("the log is cut in a line", remedy="read it again", code="bmc.sel.cut")


def facts(sel: Sel) -> Mapping[str, Any]:
    """The facts by the names of `recover judge`."""
    if sel.refused is not None:
        return sel.refused.facts()
    standing = [e for e in sel.still if _rule(e)[0] is not Level.PASS]
    if sel.redfish:
        numbers = [e.id for e in sel.events if isinstance(e.id, int)]
        return {
            "entries": len(sel.events),
            "newest_id": max(numbers) if numbers else None,
            "complete": sel.complete,
            "open_events": [e.words for e in standing],
            "restored": list(sel.restored),
        }
    return {
        "records": len(sel.events),
        "ids": [e.id for e in sel.events],
        "open_events": [e.words for e in standing],
        **_outage(sel),
        **_values(standing),
    }


def _outage(sel: Sel) -> dict[str, Any]:
    """When mains power was lost first and came back first, as the records say."""
    lost = [e for e in sel.events if "AC lost" in e.what and e.asserted]
    back = [e for e in sel.events if "AC lost" in e.what and e.asserted is False]
    return {
        "ac_lost": {"asserted": len(lost), "deasserted": len(back)},
        "first_loss": next((e.at for e in lost if e.at), None),
        "power_back": next((e.at for e in back if e.at), None),
    }


def _values(standing: list[SelEvent]) -> dict[str, Any]:
    found = next((e for e in reversed(standing) if e.reading is not None), None)
    if found is None:
        return {}
    return {"reading": found.reading, "threshold": found.threshold}


def recognises(printed: Printed) -> bool:
    """Claims ``ipmitool sel ...`` and Redfish log entries."""
    return is_asked(printed, r"\bsel\b|/Logs?/|LogServices|/Entries|SessionService", SEL_LINE)


SEL = Check(
    name="bmc.sel",
    question="Which hardware events does the BMC remember that still stand?",
    command="ipmitool sel elist",
    parse=parse_sel,
    expect=expect,
    judge=judge,
    facts=facts,
    recognises=recognises,
    needs_root=True,
    needs="ipmitool",
    timeout_s=60.0,
)
