"""Does each GPU copy from and to the host's memory at full speed? Loads PCIe for a minute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check, CheckEffect
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.agreement import SHARE, far_below
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.nvbandwidth import Bandwidths, read_nvbandwidth

_CASES = {
    "host_to_device_memcpy_ce": ("h2d_gb_per_s", "from the host"),
    "device_to_host_memcpy_ce": ("d2h_gb_per_s", "to the host"),
}
_SLOW = (
    "nvidia-smi -q -d PCIE under load: generation and width; replay counters; ACS and IOMMU"
    " settings of the BIOS; reseat the board; idle GPUs and NUMA-local memory for a fair number"
)
_PEERS = 0.05  # of the median: less is noise of a busy machine; ours


@dataclass(frozen=True, slots=True)
class Expected:
    """The least GB/s of each case; left out where nobody said."""

    least: Mapping[str, float]


def _expect(raw: Mapping[str, Any]) -> Expected:
    floors = {case: number(raw, key) for case, (key, _) in _CASES.items()}
    return Expected({case: floor for case, floor in floors.items() if floor is not None})


def _judge(seen: Bandwidths, expected: Expected) -> Verdict:
    found = list(_troubles(seen))
    for case, (_, words) in _CASES.items():
        if case in seen.whole and seen.cases.get(case):
            found += _of_case(seen.cases[case], expected.least.get(case), words)
        else:
            missing = f"copying {words} was not measured to its end"
            remedy = "run nvbandwidth by hand with idle GPUs; look at its messages"
            found.append(unknown(missing, remedy=remedy, code="gpu.bandwidth.missing"))
    shown = ", ".join(
        f"{words} {min(values.values()):.1f}"
        for case, (_, words) in _CASES.items()
        if (values := seen.cases.get(case))
    )
    compared = "" if expected.least else "; the profile names no floor"
    return verdict(found, otherwise=f"at least {shown} GB/s{compared}")


def _troubles(seen: Bandwidths) -> Iterator[Finding]:
    for line in seen.troubles[:3]:
        remedy = "idle GPUs, driver and nvbandwidth of one CUDA version? Run it by hand"
        yield unknown(f"nvbandwidth says: {line!r}", remedy=remedy, code="gpu.bandwidth.error")


def _of_case(values: Mapping[str, float], floor: float | None, words: str) -> Iterator[Finding]:
    below = {gpu: v for gpu, v in values.items() if floor is not None and v < floor}
    for gpu, value in below.items():
        text = f"{gpu} copies {words} at {value:.1f} GB/s, {floor:g} expected"
        yield failed(text, remedy=_SLOW, component=gpu, code="gpu.bandwidth.low")
    for gpu, value in far_below(values, least_share=_PEERS).items():
        if gpu not in below:
            text = f"{gpu} copies {words} at {value:.1f} GB/s, far below the other GPUs"
            yield warned(text, remedy=_SLOW, component=gpu, code="gpu.bandwidth.peers")


def _compare(nodes: Mapping[str, Bandwidths], share: float = SHARE) -> Mapping[str, Verdict]:
    """The slowest GPU of each node against those of the other nodes of this very run."""
    found: dict[str, list[Finding]] = {}
    for case, (_, words) in _CASES.items():
        least = {n: min(v.values()) for n, seen in nodes.items() if (v := seen.cases.get(case))}
        for node, value in far_below(least, least_share=_PEERS).items():
            text = f"copies {words} at {value:.1f} GB/s, far below the other nodes"
            finding = warned(text, remedy=_SLOW, code="gpu.bandwidth.nodes")
            found.setdefault(node, []).append(finding)
    return {node: Verdict(tuple(findings)) for node, findings in found.items()}


def _facts(seen: Bandwidths) -> Mapping[str, Any]:
    return {
        key: min(values.values())
        for case, (key, _) in _CASES.items()
        if (values := seen.cases.get(case))
    }


GPU_BANDWIDTH = Check(
    name="gpu.bandwidth",
    question="Under load: does each GPU copy from and to the host's memory at full speed?",
    command=f"nvbandwidth -t {' '.join(_CASES)}",
    parse=read_nvbandwidth,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    compare=_compare,
    recognises=told_by("nvbandwidth", begins=r"nvbandwidth (?:Version|v\d)"),
    effect=CheckEffect.ACTIVE,
    needs="nvbandwidth (NVIDIA/nvbandwidth, built with CUDA)",
    expects=("h2d_gb_per_s", "d2h_gb_per_s"),
    timeout_s=300.0,
)
