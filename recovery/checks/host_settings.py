"""Are the settings of BIOS and platform the expected ones, and those of the peers?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict
from recovery.reading.content import told_by
from recovery.reading.sections import asking, read_sections

_CPU = "/sys/devices/system/cpu"
_PARTS = {
    "smt": f"cat {_CPU}/smt/control 2>/dev/null",
    "sockets": f"cat {_CPU}/cpu[0-9]*/topology/physical_package_id 2>/dev/null | sort -u | wc -l",
    "numa nodes": "ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l",
    "idle driver": f"cat {_CPU}/cpuidle/current_driver 2>/dev/null",
    "idle states": f"cat {_CPU}/cpu0/cpuidle/state[0-9]*/name 2>/dev/null",
    "frequency driver": f"cat {_CPU}/cpu0/cpufreq/scaling_driver 2>/dev/null",
    "no turbo": f"cat {_CPU}/intel_pstate/no_turbo 2>/dev/null",
    "boost": f"cat {_CPU}/cpufreq/boost 2>/dev/null",
    "iommu units": "ls /sys/class/iommu 2>/dev/null | wc -l",
    "aspm": "cat /sys/module/pcie_aspm/parameters/policy 2>/dev/null",
    "boot": "test -d /sys/firmware/efi && echo uefi || echo legacy",
    "secure boot": "od -An -j4 -tu1 /sys/firmware/efi/efivars/SecureBoot-* 2>/dev/null",
    "acs": "command -v lspci >/dev/null 2>&1 && lspci -vv 2>/dev/null"
    " | awk '/ACSCtl:/ {n++; if (/SrcValid\\+/) on++} END {print on+0, n+0}'",
}
# Of one machine only, or a secret: never compared, never kept.
_OWN = re.compile(
    r"asset|serial|uuid|mac(?:addr|$)|\bip|address|password|passphrase|secret|key|date|time$"
    r"|hostname|bootorder|bootseq|bootoption|wwn|wwpn|iscsi|tag\b",
    re.IGNORECASE,
)
_REMEDY = "set it in the BIOS as on the other nodes (Redfish /Bios/Settings), then power-cycle"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by name; what the platform does not tell is left out.

    Source: kernel Documentation/ABI/testing (sysfs-devices-system-cpu, sysfs-firmware-efi),
    lspci(8), DMTF Redfish Bios.v1 ``Attributes``.
    """

    by_name: Mapping[str, str]
    redfish: bool = False


def _parse(printed: Printed) -> Settings:
    text = printed.text.strip()
    if text.startswith("{"):
        return Settings(_attributes(text), redfish=True)
    sections = read_sections(printed)
    told = {name: " ".join(line.strip() for line in sections.get(name, ())) for name in _PARTS}
    found = dict(_settings({name: value for name, value in told.items() if value}))
    if not set(sections) & set(_PARTS):
        raise ParseError("no setting of the platform in it", remedy="run the check again")
    return Settings(found)


def _attributes(text: str) -> dict[str, str]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    attributes = body.get("Attributes") if isinstance(body, dict) else None
    if not isinstance(attributes, dict) or not attributes:
        raise ParseError(
            "no BIOS attributes in the answer", remedy="GET /redfish/v1/Systems/ID/Bios, whole"
        )
    return {str(k): str(v) for k, v in attributes.items() if not _OWN.search(str(k))}


def _settings(told: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from _of_sockets(told)
    for name, (part, read) in _READ.items():
        if part in told and (value := read(told[part])):
            yield name, value


def _as_it_is(text: str) -> str:
    return text


def _chosen(text: str) -> str:
    """``default [performance] powersave``: the word in brackets."""
    match = re.fullmatch(r".*\[(\w+)\].*", text)
    return match[1] if match else ""


def _on_unless(off: str) -> Callable[[str], str]:
    return lambda text: "off" if text == off else "on"


def _acs(text: str) -> str:
    """How many bridges have it on, and how many show the register: none does without root."""
    match = re.fullmatch(r"(\d{1,6}) (\d{1,6})", text)
    if match is None or match[2] == "0":
        return ""
    return "off" if match[1] == "0" else "on"


_READ: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "smt": ("smt", _as_it_is),
    "c-states": ("idle states", _as_it_is),
    "turbo": ("no turbo", _on_unless("1")),
    "boost": ("boost", _on_unless("0")),
    "iommu": ("iommu units", _on_unless("0")),
    "acs": ("acs", _acs),
    "aspm": ("aspm", _chosen),
    "idle driver": ("idle driver", _as_it_is),
    "frequency driver": ("frequency driver", _as_it_is),
    "boot": ("boot", _as_it_is),
    "secure boot": ("secure boot", _on_unless("0")),
}


def _of_sockets(told: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    sockets, nodes = told.get("sockets", ""), told.get("numa nodes", "")
    if sockets.isdecimal() and int(sockets[:9]) > 0:
        yield "sockets", sockets
        if nodes.isdecimal() and int(nodes[:9]) > 0:
            # NPS of AMD, sub-NUMA clustering of Intel.
            yield "numa nodes a socket", f"{int(nodes[:9]) / int(sockets[:9]):g}"


def _expect(raw: Mapping[str, Any]) -> Mapping[str, str]:
    """Reads ``bios_settings``, a mapping; YAML's ``on`` is a boolean to many writers."""
    named = raw.get("bios_settings")
    words = {True: "on", False: "off"}
    if not isinstance(named, Mapping):
        return {}
    return {str(k): words[v] if isinstance(v, bool) else str(v) for k, v in named.items()}


def _judge(seen: Settings, expected: Mapping[str, str]) -> Verdict:
    if not seen.by_name:
        remedy = "ask the BMC: GET /redfish/v1/Systems/ID/Bios; in a virtual machine leave it out"
        return single(unknown("no setting can be read here", remedy=remedy))
    found: list[Finding] = []
    for name, value in expected.items():
        now = seen.by_name.get(name)
        if now is None:
            words = f"{name} cannot be read here, {value} expected"
            remedy = "run it as root with pciutils, or ask the BMC for /redfish/v1/Systems/ID/Bios"
            found.append(unknown(words, remedy=remedy, code="host.settings.not-told"))
        elif now.lower() != value.lower():
            words = f"{name} is {now}, {value} expected"
            found.append(failed(words, remedy=_REMEDY, code="host.settings.other"))
    shown = ", ".join(f"{name} {value}" for name, value in list(seen.by_name.items())[:6])
    compared = "" if expected else "; the profile names no settings"
    return verdict(found, otherwise=f"{shown}{compared}")


_told = told_by(r"/sys/devices/system/cpu/smt/control|/redfish/\S*/Bios\b", begins=r"## smt\s*$")


def _recognises(printed: Printed) -> bool:
    return _told(printed) or (not printed.command and "#Bios." in printed.text[:4096])


HOST_SETTINGS = Check(
    name="host.settings",
    question="Are the settings of BIOS and platform the expected ones, and those of the peers?",
    command=asking(_PARTS),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=lambda seen: {"bios_settings": dict(seen.by_name)},
    alike=lambda seen: dict(seen.by_name),
    recognises=_recognises,
    needs="sysfs; lspci (package pciutils) as root for ACS",
    expects=("bios_settings",),
)
