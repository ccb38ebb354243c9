"""The screens of ipmitool, in band.

Source: ipmitool 1.8.18 (sel list, sel elist, sdr list, chassis status).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recovery.lab.state import Happening

_EVENTS = {
    "boot": (("System Boot Initiated #0x9a", "Initiated by power up", "Asserted"),),
    "ac-lost": (
        ("Power Supply #0x85", "Power Supply AC lost", "Asserted"),
        ("Power Supply #0x86", "Power Supply AC lost", "Asserted"),
        ("Power Unit #0x01", "AC lost", "Asserted"),
    ),
    "ac-back": (
        ("Power Supply #0x85", "Power Supply AC lost", "Deasserted"),
        ("Power Supply #0x86", "Power Supply AC lost", "Deasserted"),
        ("Power Unit #0x01", "AC lost", "Deasserted"),
    ),
    "gpu-lost": (("Critical Interrupt #0x90", "PCI SERR", "Asserted"),),
}
_SDR = """Inlet Temp       | 22 degrees C      | ok
CPU1 Temp        | 41 degrees C      | ok
CPU2 Temp        | 42 degrees C      | ok
GPU Tray Inlet   | 24 degrees C      | ok
FAN1             | 8400 RPM          | ok
FAN2             | 8540 RPM          | ok
FAN3             | 8400 RPM          | ok
FAN4             | 8470 RPM          | ok
12V              | 11.97 Volts       | ok
PS1 Input Power  | 1210 Watts        | ok
PS2 Input Power  | 1195 Watts        | ok
Pwr Unit Redund  | 0x00              | ok
"""
_CHASSIS = """System Power         : on
Power Overload       : false
Power Interlock      : inactive
Main Power Fault     : false
Power Control Fault  : false
Power Restore Policy : previous
Last Power Event     : {last}
Chassis Intrusion    : inactive
Front-Panel Lockout  : inactive
Drive Fault          : false
Cooling/Fan Fault    : false
"""


def render(happenings: Sequence[Happening]) -> dict[str, str]:
    """All screens by file name."""
    lost = any(h.what == "ac-lost" for h in happenings)
    return {
        "ipmi-sel-list": _sel(happenings, "%m/%d/%y", "%H:%M:%S UTC"),
        "ipmi-sel-elist": _sel(happenings, "%m/%d/%Y", "%H:%M:%S"),
        "ipmi-sdr": _SDR,
        "ipmi-chassis": _CHASSIS.format(last="ac-failed" if lost else ""),
    }


def _sel(happenings: Sequence[Happening], day: str, hour: str) -> str:
    rows = ["   1 |  Pre-Init  |0000000612| Event Logging Disabled #0x01 | "
            "Log area reset/cleared | Asserted\n"]  # fmt: skip
    for happening in happenings:
        at = datetime.utcfromtimestamp(happening.at)  # noqa: DTZ004 - the log itself is UTC
        for sensor, event, direction in _EVENTS.get(happening.what, ()):
            stamp = f"{at.strftime(day)} | {at.strftime(hour)}"
            rows.append(f"{len(rows) + 1:>4x} | {stamp} | {sensor} | {event} | {direction}\n")
    return "".join(rows)
