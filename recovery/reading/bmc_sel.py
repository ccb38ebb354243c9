"""The event log of a BMC: what happened, and which of it still stands.

Record ids are hexadecimal without a mark, columns and date forms differ by version and option, and
Redfish lists the newest first: the shape of a line decides, never its position.

Source: ipmitool 1.8.18 and 1.8.19 lib/ipmi_sel.c, IPMI 2.0 table 42-3, DMTF LogEntry 1.x.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.model.output import Printed
from recovery.reading.bmc import NoAnswer, json_body, no_answer, plain, unanswered, words_of
from recovery.reading.bmc_event import READING, SelEvent
from recovery.reading.bmc_freeipmi import FREEIPMI, freeipmi_events
from recovery.reading.plain import ends_with_newline

_ID = re.compile(r"[0-9a-fA-F]{1,4}$")
# ipmitool 1.8.19 prints dates and times as the language of the one who asks has them.
_DATE = re.compile(r"(\d{1,4})([/.-])(\d\d)[/.-](\d{4}|\d\d)\.?$")
_TIME = re.compile(r"(\d\d:\d\d:\d\d)(?: ?([AP]M))?(?: ?(\w+))?$")
_IN_BRACKETS = re.compile(r"\([^()]{0,200}\)")
_OEM = re.compile(r"OEM record [0-9a-f]{2}$")
_PANIC = re.compile(r"Linux kernel panic: ")
SEL_LINE = re.compile(
    r"^ *[0-9a-f]{1,4} \| +(?:\d\d[/.-]\d\d[/.-]\d|\d{4}-|Pre-Init|OEM record|Linux kernel panic)"
    r"|^[0-9a-f]{1,4},(?:\d\d[/.-]\d\d[/.-]\d|Pre-Init)"
    r"|^ID +\| Date +\| Time +\| Name +\| Type "
    r"|SEL has no entries|LogEntryCollection|#LogEntry\.|Could not open device at /dev/ipmi",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Sel:
    """The log, oldest first. ``complete`` false: there are more pages."""

    events: tuple[SelEvent, ...] = ()
    redfish: bool = False
    complete: bool = True
    restored: tuple[str, ...] = ()
    still: tuple[SelEvent, ...] = ()
    cut: bool = False
    refused: NoAnswer | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def parse_sel(printed: Printed) -> Sel:
    """The event log that ``ipmitool sel list``, ``elist``, ``-c`` or Redfish printed.

    Raises:
        ParseError: no record is in it, and it does not say that there are none.
    """
    cut = not ends_with_newline(printed.text)
    printed = plain(printed)
    refused = no_answer(printed)
    if refused is not None:
        return Sel(refused=refused)
    body = json_body(printed.text)
    if body is not None:
        return _redfish(body, printed)
    if "SEL has no entries" in f"{printed.text}{printed.error_text}":
        return Sel()
    lines = printed.text.split("\n")
    events = tuple(e for line in lines if (e := _of_line(line)) is not None)
    if header := next((line for line in lines if FREEIPMI.match(line)), ""):
        events = tuple(freeipmi_events(header, lines))
    if not events:
        raise unanswered(printed, "the event log")
    return Sel(events, still=_still(events), cut=cut)


def _of_line(line: str) -> SelEvent | None:
    # Some makers' own part of an event has the mark of a column in its brackets.
    line = _IN_BRACKETS.sub(lambda m: m[0].replace("|", "/"), line)
    cells = [cell.strip() for cell in re.split(r"\||,", line)]
    if len(cells) < 2 or not _ID.match(cells[0]):
        return None
    if _PANIC.match(cells[1]):
        return SelEvent(int(cells[0], 16), "", cells[1], asserted=True)
    if _OEM.match(cells[1]):  # without a date: of a range that has none
        return SelEvent(int(cells[0], 16), cells[1], "")
    if len(cells) < 4:
        return None
    if cells[1] == "Pre-Init":
        at, rest = "", cells[3:]
    elif (date := _DATE.match(cells[1])) and (time := _TIME.match(cells[2])):
        at, rest = _iso(date, time), cells[3:]
    else:
        return None
    return _event(int(cells[0], 16), at, rest)


def _event(number: int, at: str, rest: list[str]) -> SelEvent | None:
    words = {"Asserted": True, "Deasserted": False}
    direction = next((words[cell] for cell in rest if cell in words), None)
    values = next((m for cell in rest if (m := READING.search(cell))), None)
    return SelEvent(
        number,
        rest[0] if rest else "",
        rest[1] if len(rest) > 1 else "",
        direction,
        at,
        float(values[1]) if values else None,
        float(values[2]) if values else None,
    )


def _iso(date: re.Match[str], time: re.Match[str]) -> str:
    """ISO time; ``Z`` only where the BMC says UTC, since its clock may be local."""
    zone = "Z" if time[3] in ("UTC", "GMT") else ""
    clock = time[1]
    if time[2]:
        hour = int(clock[:2]) % 12 + (12 if time[2] == "PM" else 0)
        clock = f"{hour:02}{clock[2:]}"
    return f"{_day(date)}T{clock}{zone}"


def _day(date: re.Match[str]) -> str:
    """``11/24/26`` is month first, ``24.11.2026`` day first, ``2026-11-24`` year first."""
    first, mark, second, last = date.groups()
    if len(first) == 4:
        return f"{first}-{second}-{last}"
    year = last if len(last) == 4 else f"20{last}"
    day_first = mark == "." or int(first) > 12
    month, day = (second, first) if day_first else (first, second)
    return f"{year}-{month:0>2}-{day:0>2}"


def _still(events: tuple[SelEvent, ...]) -> tuple[SelEvent, ...]:
    """Events that were asserted and not taken back, oldest first."""
    standing: dict[tuple[str, str], SelEvent] = {}
    for event in events:
        if event.asserted:
            standing[event.key] = event
        elif event.asserted is False:
            standing.pop(event.key, None)
    return tuple(standing.values())


def _redfish(body: Mapping[str, Any], printed: Printed) -> Sel:
    members = body.get("Members")
    if not isinstance(members, list):
        members = [body] if "EntryType" in body else None
    if members is None:
        raise unanswered(printed, "the event log")
    events = tuple(_redfish_events(members))
    count = body.get("Members@odata.count")
    more = "Members@odata.nextLink" in body or "@odata.nextLink" in body
    whole = not more and (not isinstance(count, int) or count <= len(events))
    restored: dict[str, None] = {}
    standing: dict[str, SelEvent] = {}
    for event in events:
        subject = _subject(event.what)
        if event.asserted is False or event.severity == "OK":
            if standing.pop(subject, None) is not None:
                restored[_short(subject)] = None
        elif event.severity in ("Warning", "Critical"):
            standing[subject] = event
    return Sel(
        events,
        redfish=True,
        complete=whole,
        restored=tuple(restored),
        still=tuple(standing.values()),
    )


def _redfish_events(members: list[Any]) -> Iterator[SelEvent]:
    """Oldest first, whatever order the BMC has chosen."""
    found = [m for m in members if isinstance(m, Mapping)]
    made = [_redfish_event(m) for m in found]
    stamps = [e.at for e in made if e.at]
    yield from made if stamps == sorted(stamps) else made[::-1]


def _redfish_event(member: Mapping[str, Any]) -> SelEvent:
    number = str(member.get("Id") or "")
    code = words_of(member.get("EntryCode"))
    back = "Deassert" in code or member.get("Resolved") is True or _repaired(member)
    return SelEvent(
        int(number) if number.isdecimal() and len(number) < 16 else number,
        "",
        str(member.get("Message") or member.get("Name") or ""),
        not back,
        str(member.get("Created") or ""),
        severity="OK" if back else str(member.get("Severity") or ""),
    )


def _repaired(member: Mapping[str, Any]) -> bool:
    """Claims that the maker's own part of the record says so (HPE's IML)."""
    oem = member.get("Oem")
    parts = oem.values() if isinstance(oem, Mapping) else ()
    return any(isinstance(part, Mapping) and part.get("Repaired") is True for part in parts)


_STATE_WORDS = re.compile(
    r"\b(?:the|is|are|was|has|have|been|now|lost|restored|not|no|longer|redundant|normal|ok|"
    r"failed|detected|cleared|within range|outside of range|asserted|deasserted|returned to|"
    r"corrected)\b|[.]$"
)


def _subject(message: str) -> str:
    """What a message is about, its state taken off: the same for an event and its end."""
    return " ".join(_STATE_WORDS.sub(" ", message.strip().lower().rstrip(".")).split())


def _short(subject: str) -> str:
    match = re.fullmatch(r"power input for (.+)", subject)
    return f"{match[1]} input" if match else subject
