"""Are fans, temperatures, voltages and power supplies within their limits?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.bmc import Sensor, Sensors, is_asked
from recovery.reading.bmc_sensors import SENSOR_LINE, parse_sensors
from recovery.reading.bmc_words import refused_finding

_SUPPLY = re.compile(r"(?P<name>(?:PSU?|Power Supply) ?\d+)\b.*", re.IGNORECASE)
_WORDS = re.compile(r"redundancy (?:lost|degraded)|failure detected|AC lost|fault", re.IGNORECASE)
FEWEST = 8
"""Sensors below which a list is taken for a part of one; a GPU node's has dozens."""

_IDLE_W = 10.0  # a supply that carries load draws more; an idle one shows a few watts


def expect(raw: Mapping[str, Any]) -> frozenset[str]:
    """Reads ``ignored_sensors``: names that do not matter on this machine."""
    return frozenset(str(name) for name in raw.get("ignored_sensors") or ())


def judge(found: Sensors, ignored: frozenset[str]) -> Verdict:
    """The BMC's own status counts; a sensor without a reading is no fault, all of them are."""
    if found.refused is not None:
        return verdict([refused_finding(found.refused, "bmc.sensors")], otherwise="")
    used = [s for s in found.sensors if s.name not in ignored]
    findings = [*_beyond(used), *_supplies(used)]
    n_read = sum(s.status != "ns" for s in used)
    if not findings and n_read == 0:
        findings.append(
            unknown(
                f"none of {len(used)} sensors has a reading",
                remedy="is the node on? ask again after power on; else reset the BMC",
                code="bmc.sensors.none",
            )
        )
    elif not findings and len(used) < FEWEST:
        findings.append(
            warned(
                f"only {len(used)} sensors are listed, a whole list has more",
                remedy="read all of them: `ipmitool sdr elist full`",
                code="bmc.sensors.few",
            )
        )
    elif not findings and found.cut:
        findings.append(unknown("the list is cut", remedy="read it again", code="bmc.sensors.cut"))
    return verdict(findings, otherwise=f"{n_read} sensors are within their limits")


def _beyond(sensors: list[Sensor]) -> Iterator[Finding]:
    for sensor in sensors:
        text = f"{sensor.name}: {sensor.said}" if sensor.said else sensor.name
        if sensor.status in ("cr", "nr"):
            yield failed(
                f"{text}, critical",
                remedy="replace the fan or supply named, or cool the room, before loading the node",
                component=sensor.name,
                code="bmc.sensors.critical",
            )
        elif sensor.status == "nc" or (sensor.value is None and _WORDS.search(sensor.said)):
            yield warned(
                f"{text}, near its limit" if sensor.status == "nc" else text,
                remedy="look at it again under load; check fans, feeds and room",
                component=sensor.name,
                code="bmc.sensors.warning",
            )


def _supplies(sensors: list[Sensor]) -> Iterator[Finding]:
    """A supply that draws nothing while another does: lost redundancy with status ok."""
    drawn = supply_watts(sensors)
    if not any(watts > _IDLE_W for watts in drawn.values()):
        return
    for name, watts in drawn.items():
        if watts <= 0.0:
            yield warned(
                f"{name} draws nothing while others carry the load: redundancy is lost",
                remedy="check its feed and breaker after the outage, then the supply",
                component=name,
                code="bmc.sensors.supply",
            )


def supply_watts(sensors: list[Sensor] | tuple[Sensor, ...]) -> dict[str, float]:
    """Input power of each power supply, in watts."""
    found: dict[str, float] = {}
    for sensor in sensors:
        match = _SUPPLY.fullmatch(sensor.name)
        watts = sensor.unit.startswith("Watt") and "out" not in sensor.name.lower()
        if match and watts and sensor.value is not None:
            found[match["name"]] = sensor.value
    return found


def facts(found: Sensors) -> Mapping[str, Any]:
    """The facts by the names of `recover judge`."""
    if found.refused is not None:
        return found.refused.facts()

    def named(*status: str) -> list[str]:
        return [s.name for s in found.sensors if s.status in status]

    return {
        "sensors": len(found.sensors),
        "critical": named("cr", "nr"),
        "warning": named("nc"),
        "no_reading": named("ns"),
        "ps_input_w": supply_watts(found.sensors),
        "values": {s.name: s.value for s in found.sensors if s.value is not None},
    }


def recognises(printed: Printed) -> bool:
    """Claims ``ipmitool sdr``, ``sensor`` and Redfish thermal and power."""
    return is_asked(printed, r"\bsdr\b|\bsensors?\b|/Thermal|/Power\b|/Sensors|SessionService",
                    SENSOR_LINE)  # fmt: skip


SENSORS = Check(
    name="bmc.sensors",
    question="Are fans, temperatures, voltages and power supplies within their limits?",
    command="ipmitool sdr elist full",
    parse=parse_sensors,
    expect=expect,
    judge=judge,
    facts=facts,
    recognises=recognises,
    needs_root=True,
    needs="ipmitool",
    expects=("ignored_sensors",),
    timeout_s=60.0,
)
