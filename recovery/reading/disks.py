"""What disks say of their own health: smartctl and nvme-cli, one section a disk.

Source: smartmontools 7.3 (``smartctl -H -A`` for ATA, SCSI and NVMe), nvme-cli 1.16 and 2.4
(``nvme smart-log``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recovery.model.output import Printed
from recovery.reading.cell import whole
from recovery.reading.sections import pairs, read_sections

_ATTRIBUTE = re.compile(
    r"\s*(\d{1,3}) ([\w/-]+)\s+0x\w{4}\s+\d+\s+\d+\s+\S+\s+\S+\s+\S+\s+(\S+)\s+(\d+).*"
)
_COUNTED = ("Reallocated_Sector_Ct", "Current_Pending_Sector", "Offline_Uncorrectable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One disk. ``healthy`` is its own word, ``warning`` NVMe's bits; None where it does not tell.

    ``failing`` are ATA attributes that are below their threshold now, ``sectors`` counts of bad
    ones; ``trouble`` is what the tool said where it could not ask.
    """

    name: str
    healthy: bool | None = None
    warning: int | None = None
    worn_pct: int | None = None
    spare_pct: int | None = None
    spare_least_pct: int | None = None
    media_errors: int | None = None
    failing: tuple[str, ...] = ()
    sectors: Mapping[str, int] | None = None
    trouble: str = ""


def read_disks(printed: Printed) -> tuple[Disk, ...]:
    """The disks in the order asked.

    Raises:
        ParseError: no answer, or a cut one.
    """
    sections = read_sections(printed, bare="the disk")
    return tuple(_disk(name, lines) for name, lines in sections.items())


def _disk(name: str, lines: Sequence[str]) -> Disk:
    told = dict(pairs(lines))
    word = told.get("smart overall-health self-assessment test result") or told.get(
        "smart health status"
    )
    rows = [match for line in lines if (match := _ATTRIBUTE.fullmatch(line))]
    bits = told.get("critical warning", told.get("critical_warning", ""))
    found = Disk(
        name=name,
        healthy=None if word is None else word.split()[:1] in (["PASSED"], ["OK"]),
        warning=_bits(bits),
        worn_pct=_first(told, "percentage used", "percentage_used"),
        spare_pct=_first(told, "available spare", "available_spare"),
        spare_least_pct=_first(told, "available spare threshold", "available_spare_threshold"),
        media_errors=_first(told, "media and data integrity errors", "media_errors"),
        failing=tuple(m[2] for m in rows if m[3] == "FAILING_NOW"),
        sectors={m[2]: int(m[4][:18]) for m in rows if m[2] in _COUNTED},
    )
    silent = found.healthy is None and found.warning is None
    said = next((line.strip() for line in reversed(lines) if line.strip()), "no answer")
    return Disk(name=name, trouble=said[:120]) if silent else found


def _bits(text: str) -> int | None:
    match = re.match(r"(0x[0-9a-fA-F]{1,8}|\d{1,8})\b", text)
    return int(match[1], 0) if match and not re.match(r"0\d", match[1]) else None


def _first(told: Mapping[str, str], *names: str) -> int | None:
    return next((whole(told[name]) for name in names if name in told), None)
