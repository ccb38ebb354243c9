"""Does the fabric manager run, of the same version as the driver?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import (
    Finding,
    Verdict,
    failed,
    passed,
    single,
    unknown,
    verdict,
    warned,
)
from recovery.reading.content import told_by
from recovery.reading.expecting import flag, word
from recovery.reading.sections import asking, pairs, read_sections

_START = "systemctl restart nvidia-fabricmanager with the GPUs idle; journalctl -u it says why"
_SAME = "install the fabric manager of exactly the driver's version, restart it, reset the GPUs"
_MANY = 3
_DRIVER = re.compile(r"Kernel Module(?: for \S+)?\s+(\d[\d.]{3,20})\b")
_MANAGER = re.compile(r"Fabric ?Manager version is ?: ?(\d[\d.]{3,20})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Manager:
    """The service as systemd sees it, and both versions; None where they are not told."""

    loaded: str
    active: str
    result: str
    n_restarts: int
    version: str | None
    driver: str | None


def _parse(printed: Printed) -> Manager:
    sections = read_sections(printed, bare="service")
    told = dict(pairs(sections.get("service") or ()))
    if "loadstate" not in told or "activestate" not in told:
        raise ParseError(
            "systemd does not tell of the service",
            remedy="systemctl status nvidia-fabricmanager on the node",
        )
    restarts = told.get("nrestarts", "")
    return Manager(
        loaded=told["loadstate"],
        active=told["activestate"],
        result=told.get("result", ""),
        n_restarts=int(restarts[:9]) if restarts.isdecimal() else 0,
        version=_found(_MANAGER, sections.get("manager") or ()),
        driver=_found(_DRIVER, sections.get("driver") or ()),
    )


def _found(pattern: re.Pattern[str], lines: tuple[str, ...]) -> str | None:
    return next((m[1] for line in lines if (m := pattern.search(line))), None)


def _expect(raw: Mapping[str, Any]) -> bool | None:
    """Whether one is needed: said, or what the links between the GPUs tell."""
    said = flag(raw, "fabric_manager")
    if said is not None:
        return said
    link = word(raw, "expected_gpu_link")
    return False if link and link.lower().startswith(("none", "n/a", "pcie")) else None


def _judge(seen: Manager, needed: bool | None) -> Verdict:  # noqa: FBT001 - a check's judge
    if needed is False:
        return single(passed("these GPUs need no fabric manager"))
    if seen.loaded != "loaded":
        words = "nvidia-fabricmanager is not installed" + (
            "" if needed else "; nobody said if it is needed"
        )
        remedy = (
            "install it where the GPUs reach each other by NVSwitch; else fabric_manager: false"
        )
        make = failed if needed else unknown
        return single(make(words, remedy=remedy, code="fabric.manager.absent"))
    found = [*_running(seen), *_versions(seen)]
    return verdict(found, otherwise=f"nvidia-fabricmanager {seen.version or ''} is active")


def _running(seen: Manager) -> list[Finding]:
    if seen.active != "active":
        words = (
            f"nvidia-fabricmanager is {seen.active or 'in no state'} ({seen.result or 'no word'})"
        )
        make = warned if seen.active in ("activating", "reloading") else failed
        return [make(words, remedy=_START, code="fabric.manager.down")]
    if seen.n_restarts >= _MANY:
        words = f"nvidia-fabricmanager was restarted {seen.n_restarts} times"
        return [warned(words, remedy=_START, code="fabric.manager.restarts")]
    return []


def _versions(seen: Manager) -> list[Finding]:
    if not seen.version or not seen.driver or seen.version == seen.driver:
        return []
    words = f"fabric manager {seen.version}, driver {seen.driver}"
    return [failed(words, remedy=_SAME, code="fabric.manager.version")]


def _facts(seen: Manager) -> Mapping[str, Any]:
    return {"fabric_manager": seen.active, "fabric_manager_version": seen.version}


FABRIC_MANAGER = Check(
    name="fabric.manager",
    question="Does the fabric manager run, of the same version as the driver?",
    command=asking(
        {
            "service": "systemctl show nvidia-fabricmanager -p LoadState -p ActiveState -p Result"
            " -p NRestarts 2>&1",
            "manager": "nv-fabricmanager --version 2>&1",
            "driver": "cat /proc/driver/nvidia/version 2>&1",
        }
    ),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=lambda seen: {"fabric manager": seen.version},
    recognises=told_by(r"fabricmanager", begins=r"## service"),
    needs="systemctl (systemd), nv-fabricmanager (package nvidia-fabricmanager)",
    expects=("fabric_manager", "expected_gpu_link"),
)
