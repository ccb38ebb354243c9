"""Tables of FreeIPMI: ``ipmi-sel`` and ``ipmi-sensors``, read by their header.

Without ``--output-event-state`` an event does not say whether it began or ended: crossings of a
threshold come in pairs, and only what is left over still stands.

Source: FreeIPMI 1.6 ipmi-sel(8), ipmi-sensors(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recovery.reading.bmc_event import SelEvent

FREEIPMI = re.compile(r" *ID +\| (?:Date +\| Time +\| )?Name +\| Type +\|")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(r"(\w{3})-(\d\d)-(\d{4})$")
_VALUES = re.compile(r"Sensor Reading = (-?\d+(?:\.\d+)?).*Threshold = (-?\d+(?:\.\d+)?)")
_STATE = {"nominal": "ok", "warning": "nc", "critical": "cr"}


def _rows(header: str, lines: Sequence[str]) -> Iterator[dict[str, str]]:
    names = [cell.strip() for cell in header.split("|")]
    for line in lines:
        cells = [cell.strip() for cell in line.split("|", len(names) - 1)]
        if len(cells) == len(names) and cells[0].isdecimal():
            yield dict(zip(names, cells, strict=True))


def freeipmi_events(header: str, lines: Sequence[str]) -> Iterator[SelEvent]:
    """The events of ``ipmi-sel``, oldest first."""
    open_now: dict[tuple[str, str], bool] = {}
    for row in _rows(header, lines):
        event = _event(row)
        direction = row.get("Event Direction", "")
        if direction:
            asserted = direction.startswith("Assert")
        elif "going" in event.what:
            asserted = not open_now.get(event.key, False)
            open_now[event.key] = asserted
        else:
            asserted = True
        yield replace(event, asserted=asserted)


def _event(row: dict[str, str]) -> SelEvent:
    what, _, _rest = row.get("Event", "").partition(" ; ")
    values = _VALUES.search(row.get("Event", ""))
    date = _DATE.match(row.get("Date", ""))
    month = _MONTHS.index(date[1]) + 1 if date and date[1] in _MONTHS else 0
    at = f"{date[3]}-{month:02}-{date[2]}T{row.get('Time', '')}" if date and month else ""
    return SelEvent(
        int(row["ID"][:15]),
        f"{row.get('Type', '')} {row.get('Name', '')}".strip(),
        what.replace(" - going", " going"),
        None,
        at,
        float(values[1]) if values else None,
        float(values[2]) if values else None,
    )


def freeipmi_sensors(header: str, lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Name, status in ipmitool's words, and what is said, of each row of ``ipmi-sensors``."""
    for row in _rows(header, lines):
        status = _STATE.get(row.get("State", "").lower(), "ns")
        value = f"{row.get('Reading', '')} {row.get('Units', '')}".strip()
        if value.startswith("N/A"):
            value = row.get("Event", "").replace("' '", ", ").strip("'")
            # A supply without input costs redundancy, not the node: as ipmitool has it.
            status = "nc" if status == "cr" and "input lost" in value else status
        yield row.get("Name", "?"), status, value
