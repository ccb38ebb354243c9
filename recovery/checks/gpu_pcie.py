"""Did the PCIe link of every GPU train to its full width and generation?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, silent_on, unanswered, where
from recovery.reading.smi_words import Gpu, Snapshot

_NAMES = ("pcie.link.",)
_SEAT = "lspci -vv -s {bus} and the slot's root port; reseat card and riser, then power-cycle"
_WIDTH = "pcie.link.width.current"


@dataclass(frozen=True, slots=True)
class Expected:
    """The link that the node's GPUs have; None where the profile does not say."""

    gen: int | None
    width: int | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    values = (raw.get("expected_pcie_gen"), raw.get("expected_pcie_width"))
    return Expected(*(v if isinstance(v, int) else None for v in values))


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = cut_short(seen)
    if any(gpu.has(_WIDTH) for gpu in seen.gpus):
        found += unanswered(seen, _WIDTH, "PCIe width")
    for gpu in seen.gpus:
        found += [*_width(seen, gpu, expected.width), *_gen(seen, gpu, expected.gen)]
    widths = sorted({w for gpu in seen.gpus if (w := gpu.count(_WIDTH)) is not None})
    shown = "/".join(f"x{w}" for w in widths) or "width not in this answer"
    compared = "" if expected.width is not None else "; the profile names no width"
    return verdict(found, otherwise=f"{shown}{silent_on(seen, _WIDTH)}{compared}")


def _width(seen: Snapshot, gpu: Gpu, expected: int | None) -> list[Finding]:
    now = gpu.count(_WIDTH)
    most = gpu.count("pcie.link.width.max")
    if now is None:
        return []
    if expected is not None and now < expected:
        words = f"{where(seen, gpu.label)}: PCIe x{now}, x{expected} expected"
        return [_fail(gpu, words, "gpu.pcie.width")]
    if expected is None and most is not None and now < most:
        words = f"{where(seen, gpu.label)}: PCIe x{now} of x{most}"
        return [_fail(gpu, words, "gpu.pcie.width")]
    return []


def _gen(seen: Snapshot, gpu: Gpu, expected: int | None) -> list[Finding]:
    """An idle link rests at a low generation: only what it can reach is judged, unless it works."""
    now, most = gpu.count("pcie.link.gen.current"), gpu.count("pcie.link.gen.max")
    place = where(seen, gpu.label)
    if expected is not None and most is not None and most < expected:
        words = f"{place}: PCIe reaches generation {most}, {expected} expected"
        return [_fail(gpu, words, "gpu.pcie.generation")]
    busy = (gpu.number("utilization.gpu") or 0.0) > 0
    wanted = expected if expected is not None else most
    if busy and now is not None and wanted is not None and now < wanted:
        words = f"{place}: PCIe generation {now} while it works, {wanted} expected"
        return [_fail(gpu, words, "gpu.pcie.generation")]
    device = gpu.count("pcie.link.gen.gpumax")
    if expected is None and device is not None and most is not None and most < device:
        words = f"{place}: the slot offers PCIe generation {most}, the card could {device}"
        remedy = "check the BIOS setting of that slot, or name expected_pcie_gen in the profile"
        code = "gpu.pcie.slot"
        return [warned(words, remedy=remedy, component=gpu.label, code=code)]
    return []


def _fail(gpu: Gpu, words: str, code: str) -> Finding:
    remedy = _SEAT.format(bus=gpu.text("pci.bus_id") or gpu.label)
    return failed(words, remedy=remedy, component=gpu.label, code=code)


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    return {
        "pcie_width": {g.label: g.count(_WIDTH) for g in seen.gpus},
        "pcie_gen_max": {g.label: g.count("pcie.link.gen.max") for g in seen.gpus},
        "pcie_gen": {g.label: g.count("pcie.link.gen.current") for g in seen.gpus},
    }


GPU_PCIE = Check(
    name="gpu.pcie",
    question="Did every GPU's PCIe link train to its full width and generation?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="PCIe links"),
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=claims(*_NAMES),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_pcie_gen", "expected_pcie_width"),
    timeout_s=90.0,
)
