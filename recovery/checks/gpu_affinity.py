"""Has every GPU its own HCA behind the same PCIe switch?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.expecting import word
from recovery.reading.smi_findings import fold_gpus
from recovery.reading.topo import looks_like_topology, read_topology
from recovery.reading.topo_words import Topology

_HCA = re.compile(r"GPU0\b.*\s(?:NIC0|\w*mlx\d_\w+)\s")
_NEARNESS = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
_MOVED = (
    "is the HCA in its slot and trained (lspci -vv, ibstat)? Are ACS and the BIOS settings those of"
    " the other nodes? In a VM the hypervisor's topology is missing: NCCL_TOPO_FILE"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """The farthest link allowed to the nearest HCA, and the HCA of each GPU by name."""

    link: str | None
    nics: Mapping[str, str]


def _expect(raw: Mapping[str, Any]) -> Expected:
    named = raw.get("expected_gpu_nics")
    nics = {str(k): str(v) for k, v in named.items()} if isinstance(named, Mapping) else {}
    link = word(raw, "expected_gpu_nic_link")
    return Expected(link if link in _NEARNESS else None, nics)


def _nearest(seen: Topology) -> dict[str, tuple[str, list[str]]]:
    """Of each GPU the nearest link to any HCA, and the HCAs that have it, by their own names."""
    found = {}
    for gpu in seen.gpus:
        links = {nic: seen.links.get((gpu, nic), "") for nic in seen.nics}
        known = {nic: link for nic, link in links.items() if link in _NEARNESS}
        if known:
            best = min(known.values(), key=_NEARNESS.__getitem__)
            names = [seen.nic_names.get(nic, nic) for nic, link in known.items() if link == best]
            found[gpu] = (best, names)
    return found


def _judge(seen: Topology, expected: Expected) -> Verdict:
    if seen.cut:
        remedy = "run nvidia-smi topo -m again"
        return single(unknown(f"the topology is cut short: {seen.cut}", remedy=remedy))
    nearest = _nearest(seen)
    if not nearest:
        return single(_no_hca(expected))
    found = [*_far(nearest, expected.link), *_others(nearest, expected.nics)]
    if not expected.nics and not expected.link:
        found += _unequal(nearest)
    counted = Counter(link for link, _ in nearest.values())
    words = ", ".join(f"{n} GPUs {link}" for link, n in counted.most_common())
    compared = "" if expected.link or expected.nics else "; the profile names no nearness"
    return verdict(found, otherwise=f"nearest HCA: {words}{compared}")


def _no_hca(expected: Expected) -> Finding:
    words = "no HCA in the topology"
    if expected.link or expected.nics:
        return failed(words, remedy=_MOVED, code="gpu.affinity.none")
    remedy = "ibstat; list gpu.affinity under not_applicable for nodes without HCAs"
    return unknown(words, remedy=remedy, code="gpu.affinity.none")


def _far(nearest: Mapping[str, tuple[str, list[str]]], allowed: str | None) -> list[Finding]:
    far = {
        gpu: link
        for gpu, (link, _) in nearest.items()
        if allowed and _NEARNESS[link] > _NEARNESS[allowed]
    }
    if not far:
        return []
    words = f"{fold_gpus(far)}: nearest HCA is {max(far.values(), key=_NEARNESS.__getitem__)} away"
    return [
        failed(
            f"{words}, {allowed} expected",
            remedy=_MOVED,
            component=fold_gpus(far),
            code="gpu.affinity.far",
        )
    ]


def _others(
    nearest: Mapping[str, tuple[str, list[str]]], wanted: Mapping[str, str]
) -> list[Finding]:
    return [
        failed(
            f"{gpu}: nearest is {', '.join(names[:3])}, {wanted[gpu]} expected",
            remedy=_MOVED,
            component=gpu,
            code="gpu.affinity.other",
        )
        for gpu, (_, names) in nearest.items()
        if gpu in wanted and wanted[gpu] not in names
    ]


def _unequal(nearest: Mapping[str, tuple[str, list[str]]]) -> list[Finding]:
    """Without a profile: a few GPUs farther from any HCA than most of the node's own."""
    links = Counter(link for link, _ in nearest.values())
    usual, n = links.most_common(1)[0]
    far = [g for g, (link, _) in nearest.items() if _NEARNESS[link] > _NEARNESS[usual]]
    if not far or n * 2 <= len(nearest) or _NEARNESS[usual] > _NEARNESS["PXB"]:
        return []
    words = f"{fold_gpus(far)} have no HCA near them, the other {n} GPUs have one at {usual}"
    return [warned(words, remedy=_MOVED, component=fold_gpus(far), code="gpu.affinity.unequal")]


def _alike(seen: Topology) -> Mapping[str, str | None]:
    return {
        f"HCA near {gpu}": f"{'+'.join(names)} ({link})"
        for gpu, (link, names) in _nearest(seen).items()
    }


def _facts(seen: Topology) -> Mapping[str, Any]:
    return {"nearest_hca": {gpu: names[0] for gpu, (_, names) in _nearest(seen).items()}}


def _recognises(printed: Printed) -> bool:
    """Claims a topology with HCAs in it: cards without them answer `topo -m` rightly."""
    return _HCA.search(printed.text[:65536]) is not None and looks_like_topology(printed)


GPU_AFFINITY = Check(
    name="gpu.affinity",
    question="Has every GPU its own HCA behind the same PCIe switch?",
    command="nvidia-smi topo -m",
    parse=read_topology,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=_recognises,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_gpu_nic_link", "expected_gpu_nics"),
)
