"""Sensors of a BMC: ``ipmitool sdr``, ``sdr elist``, ``sensor``, ``-c sdr``, and Redfish.

Source: ipmitool 1.8.19 lib/ipmi_sdr.c and ipmi_sensor.c, DMTF Thermal, Power and Sensor schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.output import Printed
from recovery.reading.bmc import Sensor, Sensors, json_body, no_answer, plain, unanswered
from recovery.reading.bmc_freeipmi import FREEIPMI, freeipmi_sensors
from recovery.reading.plain import ends_with_newline

_STATUS = frozenset({"ok", "nc", "cr", "nr", "ns", "na", "us", "lnc", "lcr", "lnr", "unc", "ucr",
                     "unr"})  # fmt: skip
_VALUE = re.compile(r"(?P<value>-?\d+(?:\.\d+)?) +(?P<unit>[A-Za-z%][\w %/]*)$")
_HEALTH = {"OK": "ok", "Warning": "nc", "Critical": "cr"}
_READINGS = (
    ("ReadingCelsius", "degrees C"),
    ("PowerInputWatts", "Watts"),
    ("PowerConsumedWatts", "Watts"),
    ("ReadingVolts", "Volts"),
    ("Reading", ""),
)
SENSOR_LINE = re.compile(
    r"^ID +\| Name +\| Type +\|(?! *Event *$)|"
    r"^[^|\n]{1,40}\|[^|\n]*\| *(?:ok|nc|cr|nr|ns|na) *(?:$|\||\r)"
    r"|^[^|\n]{1,40}\|[^|\n]*\|[^|\n]*\| *(?:ok|nc|cr|nr|na|ns|lnc|lcr|lnr|unc|ucr|unr) *\|"
    r"|\"(?:Temperatures|Fans|PowerSupplies)\"|#Sensor\.|#Thermal\.|#Power\.",
    re.MULTILINE,
)


def parse_sensors(printed: Printed) -> Sensors:
    """All sensors that the text lists.

    Raises:
        ParseError: it lists none.
    """
    whole = ends_with_newline(printed.text)
    printed = plain(printed)
    refused = no_answer(printed)
    if refused is not None:
        return Sensors(refused=refused)
    body = json_body(printed.text)
    if body is not None:
        found = tuple(_redfish(body))
        cut = False
    else:
        lines = printed.text.split("\n")
        header = next((line for line in lines if FREEIPMI.match(line)), "")
        rows = freeipmi_sensors(header, lines) if header else ()
        found = tuple(_sensor(name, status, said) for name, status, said in rows)
        found = found or tuple(s for line in lines if (s := _of_line(line)) is not None)
        cut = not whole
    if not found:
        raise unanswered(printed, "the sensors")
    return Sensors(found, cut=cut)


def _of_line(line: str) -> Sensor | None:
    bars = [cell.strip() for cell in line.split("|")]
    if len(bars) >= 3:
        return _of_cells(bars)
    cells = [cell.strip() for cell in line.split(",")]
    return _of_csv(cells) if len(cells) >= 3 else None


def _of_cells(cells: list[str]) -> Sensor | None:
    """``name | value | ok``, ``name | 04h | ok | 7.1 | value``, ``name | 22 | unit | ok``."""
    at = next((i for i in (2, 3) if i < len(cells) and cells[i].lower() in _STATUS), None)
    if at is None:
        return None
    if at == 3:
        return _sensor(cells[0], cells[3], f"{cells[1]} {cells[2]}".strip())
    elist = len(cells) >= 5 and re.fullmatch(r"[0-9A-Fa-f]{2}h", cells[1]) is not None
    return _sensor(cells[0], cells[2], cells[4] if elist else cells[1])


def _of_csv(cells: list[str]) -> Sensor | None:
    """``name,value,unit,ok`` and ``name,no reading,ns``."""
    at = next((i for i in (3, 2) if i < len(cells) and cells[i].lower() in _STATUS), None)
    if at is None:
        return None
    return _sensor(cells[0], cells[at], " ".join(cells[1:at]))


def _sensor(name: str, status: str, said: str) -> Sensor:
    low = status.lower()
    status = {"na": "ns", "us": "ns"}.get(low, low[-2:])
    match = _VALUE.match(said)
    if match is None:
        return Sensor(name, status, None, "", said)
    return Sensor(name, status, float(match["value"]), match["unit"].strip(), said)


def _redfish(body: Mapping[str, Any]) -> Iterator[Sensor]:
    lists = [body.get(key) for key in ("Temperatures", "Fans", "PowerSupplies", "Members")]
    items = [item for found in lists if isinstance(found, list) for item in found]
    if not items and "Reading" in body:
        items = [body]
    for item in items:
        if isinstance(item, Mapping) and isinstance(item.get("Status"), Mapping):
            yield _redfish_sensor(item, item["Status"])


def _redfish_sensor(item: Mapping[str, Any], status: Mapping[str, Any]) -> Sensor:
    name = str(item.get("Name") or item.get("FanName") or item.get("MemberId") or "?")
    absent = status.get("State") in ("Absent", "Disabled", "UnavailableOffline")
    key, unit = next(((k, u) for k, u in _READINGS if item.get(k) is not None), ("", ""))
    value = item.get(key)
    number = float(value) if isinstance(value, int | float) else None
    health = _HEALTH.get(str(status.get("Health")), "ns")
    unit = unit or str(item.get("ReadingUnits") or "")
    return Sensor(
        name,
        "ns" if absent else health,
        number,
        unit,
        "" if number is None else f"{number:g} {unit}",
    )
