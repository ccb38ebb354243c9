"""Is the firmware of the board the expected one, and that of its peers?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict
from recovery.reading.content import told_by
from recovery.reading.expecting import word
from recovery.reading.sections import asking, first_line, read_sections

_PARTS = ("bios_vendor", "bios_version", "bios_date", "sys_vendor", "product_name", "board_name")
_UPDATE = "update the firmware with the maker's tool, then power-cycle the node (cold)"


@dataclass(frozen=True, slots=True)
class Firmware:
    """What the board says of itself, by the kernel's names; parts that are not told are left out.

    Source: kernel Documentation/ABI/testing/sysfs-devices-system (class/dmi/id), as
    ``dmidecode -s`` reads it, without root.
    """

    parts: Mapping[str, str]


def _parse(printed: Printed) -> Firmware:
    sections = read_sections(printed)
    if not set(sections) & set(_PARTS):
        raise ParseError("no word of the board's firmware", remedy="dmidecode -s bios-version")
    told = {name: first_line(sections, name) for name in _PARTS}
    return Firmware({name: value for name, value in told.items() if value})


def _judge(seen: Firmware, expected: str | None) -> Verdict:
    version = seen.parts.get("bios_version")
    if version is None:
        remedy = "dmidecode -s bios-version as root; in a virtual machine leave this check out"
        return single(unknown("the board names no BIOS version", remedy=remedy))
    found: list[Finding] = []
    if expected and version != expected:
        words = f"BIOS {version}, {expected} expected"
        found.append(failed(words, remedy=_UPDATE, code="host.bios.version"))
    model = seen.parts.get("product_name", "unknown model")
    compared = "" if expected else "; no expected version to compare with"
    return verdict(found, otherwise=f"BIOS {version} on {model}{compared}")


def _alike(seen: Firmware) -> Mapping[str, str | None]:
    names = ("bios_version", "bios_date", "product_name", "board_name")
    return {name: seen.parts.get(name) for name in names}


HOST_BIOS = Check(
    name="host.bios",
    question="Is the board's firmware the expected one, and that of its peers?",
    command=asking({name: f"cat /sys/class/dmi/id/{name} 2>/dev/null" for name in _PARTS}),
    parse=_parse,
    expect=lambda raw: word(raw, "bios_expected"),
    judge=_judge,
    facts=lambda seen: dict(seen.parts),
    alike=_alike,
    recognises=told_by(r"/sys/class/dmi/id", begins=r"## bios_vendor"),
    needs="the kernel's DMI tables (/sys/class/dmi)",
    expects=("bios_expected",),
)
