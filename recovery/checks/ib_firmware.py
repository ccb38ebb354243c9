"""Do all HCAs of a kind run one firmware, the expected one?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.expecting import word
from recovery.reading.ib import IbPorts, is_ib, parse_ib

_TOLD = re.compile(r"\b(?:Firmware version|fw_ver):")
_UPDATE = "mlxfwmanager --online -u or the maker's image, then reset the HCA (mlxfwreset) or reboot"


def _judge(seen: IbPorts, expected: str | None) -> Verdict:
    if seen.absent or not seen.firmware:
        why = f": {seen.absent}" if seen.absent else ""
        remedy = "ibstat on the node; list ib.firmware under not_applicable for nodes without HCAs"
        return single(unknown(f"no HCA tells its firmware{why}", remedy=remedy))
    found: list[Finding] = []
    for kind, devices in _by_kind(seen).items():
        versions = {seen.firmware[device] for device in devices}
        if expected:
            found += [_other(seen, device, expected) for device in devices
                      if seen.firmware[device] != expected]  # fmt: skip
        elif len(versions) > 1:
            words = f"HCAs of kind {kind} run {', '.join(sorted(versions))}"
            found.append(warned(words, remedy=_UPDATE, code="ib.firmware.mixed"))
    if seen.torn:
        found.append(unknown(f"the answer is cut: {seen.torn}", remedy="run ibstat again"))
    words = ", ".join(sorted(set(seen.firmware.values())))
    compared = "" if expected else "; no expected version to compare with"
    return verdict(found, otherwise=f"{len(seen.firmware)} HCAs run {words}{compared}")


def _other(seen: IbPorts, device: str, expected: str) -> Finding:
    words = f"{device} runs {seen.firmware[device]}, {expected} expected"
    return failed(words, remedy=_UPDATE, component=device, code="ib.firmware.version")


def _by_kind(seen: IbPorts) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for device in seen.firmware:
        kinds.setdefault(seen.kinds.get(device, "unknown"), []).append(device)
    return kinds


def _alike(seen: IbPorts) -> Mapping[str, str | None]:
    return {
        f"firmware of {kind}": "+".join(sorted({seen.firmware[d] for d in devices}))
        for kind, devices in _by_kind(seen).items()
    }


def _facts(seen: IbPorts) -> Mapping[str, Any]:
    return {"hca_firmware": dict(seen.firmware)}


def _recognises(printed: Printed) -> bool:
    """Claims the answers of those tools of ib.state that tell the firmware."""
    return is_ib(printed) and _TOLD.search(printed.text[:65536]) is not None


IB_FIRMWARE = Check(
    name="ib.firmware",
    question="Do all HCAs of a kind run one firmware, the expected one?",
    command="ibstat",
    parse=parse_ib,
    expect=lambda raw: word(raw, "hca_firmware_expected"),
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=_recognises,
    needs="ibstat (package infiniband-diags)",
    expects=("hca_firmware_expected",),
)
