"""One record of a BMC's event log, whatever tool printed it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPES = (
    "Temperature", "Voltage", "Current", "Fan", "Physical Security", "Processor", "Power Supply",
    "Power Unit", "Cooling Device", "Memory", "Drive Slot / Bay", "Drive Slot", "System Firmwares",
    "Event Logging Disabled", "Watchdog1", "Watchdog2", "System Event", "Critical Interrupt",
    "Button", "Module / Board", "Chassis", "Chip Set", "Other FRU", "Cable / Interconnect",
    "System Boot Initiated", "Boot Error", "OS Boot", "OS Critical Stop", "Slot / Connector",
    "Slot/Connector", "System ACPI Power State", "Battery", "Version Change", "FRU State", "Entity",
)  # fmt: skip
READING = re.compile(r"Reading (-?\d+(?:\.\d+)?) [<>] Threshold (-?\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class SelEvent:
    """One record. ``asserted`` None: the record has no direction (OEM). ``at`` is ISO, as told."""

    id: int | str
    sensor: str
    what: str
    asserted: bool | None = None
    at: str = ""
    reading: float | None = None
    threshold: float | None = None
    severity: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What an event and its end have in common."""
        return self.sensor, self.what

    @property
    def words(self) -> str:
        """Sensor and event for people, without type and direction."""
        name = next(
            (self.sensor[len(t) :].strip() for t in _TYPES if self.sensor.startswith(t + " ")), ""
        )
        named = name if name and not name.startswith("#") else self.sensor
        what = re.sub(r" +going (?:high|low)$", "", self.what)
        return f"{named} {what}".strip() if self.sensor else what
