"""Do the GPUs of the node reach each other by the links that the profile names?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.agreement import SHARE, agree
from recovery.reading.smi_findings import fold_gpus, of_trouble
from recovery.reading.topo import looks_like_topology, nearest_nics, read_topology
from recovery.reading.topo_words import Topology

_COMMAND = "nvidia-smi topo -m"
_AGAIN = "ask again with a longer time limit; a slow topology is itself a sign of a sick link"
_ABSENT = (
    "systemctl status nvidia-fabricmanager and Fabric in nvidia-smi -q; in a VM check that the"
    " NVSwitches are passed through"
)
_OFF = (
    "drain the node; Fabric state, Xid and SXid of {who}; reset the GPU and restart the fabric"
    " manager, or reboot; replace it if that stays"
)
_WIDTH = (
    "nvidia-smi nvlink -s -i {who} to name the link; Xid 74 and SXid in the kernel log; reset"
    " the GPU; ask for an RMA if it stays"
)
_NV = re.compile(r"NV(\d+)")
_UNIFORM = re.compile(r"NV\d+|XGMI|C2C")
_Pairs = dict[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What the profile says: one link for all pairs, a matrix, or that none is needed."""

    n_gpus: int | None
    link: str | None  # NV18, XGMI
    matrix: tuple[tuple[str, ...], ...] | None
    words: str  # as written: "none (PCIe)", "per-pair matrix"

    @property
    def needs_none(self) -> bool:
        """Claims that the profile says that the GPUs have no links of their own."""
        return self.words.lower().startswith(("none", "n/a", "pcie"))


def _expect(raw: Mapping[str, Any]) -> Expected:
    n_gpus, link = raw.get("expected_gpus"), str(raw.get("expected_gpu_link") or "").strip()
    rows = raw.get("expected_gpu_links")
    matrix = None
    if isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) for row in rows):
        matrix = tuple(tuple(str(cell) for cell in row) for row in rows)
    return Expected(
        n_gpus=n_gpus if isinstance(n_gpus, int) else None,
        link=link if _UNIFORM.fullmatch(link) else None,
        matrix=matrix,
        words=link,
    )


def _judge(seen: Topology, expected: Expected) -> Verdict:
    if seen.cut:
        words = f"the topology is cut short: {seen.cut}"
        return single(unknown(words, remedy=_AGAIN, code="gpu.topology.cut"))
    found = [*map(of_trouble, seen.troubles), *_count(seen, expected), *_asymmetric(seen)]
    if expected.link is not None or expected.matrix is not None:
        found += _against_profile(seen, expected)
    elif not expected.needs_none:
        found += _among_peers(seen)
    return verdict(found, otherwise=_well(seen, expected))


def _well(seen: Topology, expected: Expected) -> str:
    links = Counter(seen.pair_links().values())
    shown = ", ".join(f"{n} pairs {link}" for link, n in links.most_common())
    shown = shown or "one GPU, no pair"
    if expected.link is not None or expected.matrix is not None or expected.needs_none:
        return shown
    return f"{shown}; the profile names no links, so only the GPUs were compared with each other"


def _count(seen: Topology, expected: Expected) -> list[Finding]:
    if expected.n_gpus is None or len(seen.gpus) == expected.n_gpus:
        return []
    words = f"{len(seen.gpus)} of {expected.n_gpus} GPUs in the topology"
    remedy = "nvidia-smi -L, lspci -d 10de:, dmesg for Xid 79; then a cold power cycle"
    return [failed(words, remedy=remedy, code="gpu.topology.count")]


def _asymmetric(seen: Topology) -> list[Finding]:
    odd = [
        (one, other)
        for one, other in seen.pairs()
        if seen.links.get((one, other)) != seen.links.get((other, one))
    ]
    if not odd:
        return []
    one, other = odd[0]
    words = f"{one}-{other} reads {seen.links.get(odd[0])} one way and"
    words += f" {seen.links.get((other, one))} the other ({len(odd)} such)"
    return [warned(words, remedy=_AGAIN, component=f"{one}-{other}", code="gpu.topology.odd")]


def _wanted(seen: Topology, expected: Expected) -> _Pairs:
    """The link that each pair has to have; pairs of which nothing is said are left out."""
    if expected.matrix is not None:
        rows = range(len(expected.matrix))
        return {
            (seen.gpus[i], seen.gpus[j]): expected.matrix[i][j]
            for i in rows
            for j in range(i + 1, len(expected.matrix[i]))
            if i < len(seen.gpus) and j < len(seen.gpus)
        }
    if expected.link is not None:
        return dict.fromkeys(seen.pairs(), expected.link)
    return {}


def _usual(seen: Topology) -> _Pairs:
    """Without a profile: the widest link that most pairs have is what all pairs should have."""
    links = seen.pair_links()
    common = Counter(links.values()).most_common(1)
    if not common or not _width(common[0][0]) or common[0][1] * 2 < len(links):
        return {}
    return dict.fromkeys(links, common[0][0])


def _degraded(seen: Topology, wanted: _Pairs) -> _Pairs:
    links = seen.pair_links()
    return {p: links[p] for p, link in wanted.items() if p in links and _worse(links[p], link)}


def _worse(now: str, wanted: str) -> bool:
    if _NV.fullmatch(wanted):
        return _width(now) < _width(wanted)
    return now != wanted


def _width(link: str) -> int:
    match = _NV.fullmatch(link)
    return int(match[1]) if match else 0


def _bad_gpus(seen: Topology, bad: Mapping[tuple[str, str], str]) -> list[str]:
    """The fewest GPUs that explain the bad pairs: those with the most bad pairs first."""
    left = set(bad)
    found: list[str] = []
    while left:
        counts = Counter(gpu for pair in left for gpu in pair)
        most = max(counts.values())
        top = [gpu for gpu in seen.gpus if counts[gpu] == most]
        # A single bad pair, or all GPUs alike: nobody can be singled out.
        chosen = top if most == 1 or len(top) == len(seen.gpus) - len(found) else top[:1]
        found += chosen
        left = {pair for pair in left if not set(pair) & set(chosen)}
    return [gpu for gpu in seen.gpus if gpu in found]


def _against_profile(seen: Topology, expected: Expected) -> list[Finding]:
    wanted = _wanted(seen, expected)
    bad = _degraded(seen, wanted)
    if not bad:
        return []
    return [_bad_pairs(seen, bad, wanted)]


def _bad_pairs(seen: Topology, bad: _Pairs, wanted: _Pairs) -> Finding:
    links = seen.pair_links()
    who = _bad_gpus(seen, bad)
    pair, link = next(iter(bad.items()))
    words = f"{pair[0]}-{pair[1]} is {link}, expected {wanted[pair]}"
    words += f" ({len(bad)} such of {len(links)} pairs; {fold_gpus(who)})"
    narrow = all(_width(now) for now in bad.values())
    if len(bad) == len(links) and len(links) > 1 and not narrow:
        return failed(words, remedy=_ABSENT, component=fold_gpus(who), code="gpu.topology.absent")
    numbers = ",".join(gpu.removeprefix("GPU") for gpu in who)
    remedy = _WIDTH.format(who=numbers) if narrow else _OFF.format(who=fold_gpus(who))
    code = "gpu.topology.narrow" if narrow else "gpu.topology.off-fabric"
    return failed(words, remedy=remedy, component=fold_gpus(who), code=code)


def _among_peers(seen: Topology) -> list[Finding]:
    """Bad always: a GPU without any link among GPUs that have them; odd: unequal sums."""
    usual = _usual(seen)
    bad = _degraded(seen, usual)
    if bad:
        return [_bad_pairs(seen, bad, usual)]
    sums = {
        gpu: sum(_width(link) for pair, link in seen.pair_links().items() if gpu in pair)
        for gpu in seen.gpus
    }
    most = max(sums.values(), default=0)
    fewer = [gpu for gpu, width in sums.items() if width < most]
    if not fewer:
        return []
    words = f"{fold_gpus(fewer)} with fewer NVLinks than the others ({most} at most)"
    remedy = "name the links in the profile (expected_gpu_link), or look at nvidia-smi nvlink -s"
    code = "gpu.topology.unequal"
    return [warned(words, remedy=remedy, component=fold_gpus(fewer), code=code)]


def _facts(seen: Topology) -> Mapping[str, Any]:
    if seen.cut:
        return {
            "readable": False,
            "header_gpus": len(seen.gpus),
            "complete_rows": seen.n_complete_rows,
        }
    if seen.is_rocm:
        return _rocm_facts(seen)
    found: dict[str, Any] = {
        "gpu_count": len(seen.gpus),
        "nic_count": len(seen.nics),
        "gpu_pair_links": dict(Counter(seen.pair_links().values())),
        "cpu_affinity": seen.cpu_affinity,
        "numa_affinity": seen.numa_affinity,
        "gpu_numa_id": seen.gpu_numa_id,
        "nic_names": seen.nic_names,
        "nearest_nic": nearest_nics(seen),
    }
    if seen.soc_means is not None:
        found["soc_means"] = seen.soc_means
    return found


def _rocm_facts(seen: Topology) -> Mapping[str, Any]:
    def counted(cells: Mapping[tuple[str, str], str] | None) -> dict[str, int]:
        return dict(Counter((cells or {}).get(pair, "") for pair in seen.pairs()))

    return {
        "gpu_count": len(seen.gpus),
        "link_type_pairs": dict(Counter(seen.pair_links().values())),
        "weight_pairs": counted(seen.weights),
        "hops_pairs": counted(seen.hops),
        "numa": seen.numa,
    }


def _conclusions(seen: Topology, expected: Expected) -> Mapping[str, Any]:
    wanted = _wanted(seen, expected)
    if not wanted and not expected.needs_none:
        wanted = _usual(seen)
    bad = {} if seen.cut else _degraded(seen, wanted)
    if not bad:
        return {}
    return {"bad_gpus": _bad_gpus(seen, bad), "degraded_pairs": len(bad)}


def _compare(nodes: Mapping[str, Topology], share: float = SHARE) -> Mapping[str, Verdict]:
    """Nodes of one kind have one matrix; who differs is named with its first other link."""
    matrices = {
        node: tuple(seen.pair_links().items()) for node, seen in nodes.items() if not seen.cut
    }
    common = agree(matrices, share=share)
    if common is None:
        return {}
    usual = dict(common.value)
    found = {}
    for node, pairs in common.outliers.items():
        odd = next(((p, link) for p, link in pairs if usual.get(p) != link), None)
        words = "another number of GPUs" if odd is None else f"{odd[0][0]}-{odd[0][1]} is {odd[1]}"
        usually = "" if odd is None else f", {usual.get(odd[0], 'absent')}"
        words += f"{usually} on {common.n_agree} of {common.n_nodes} nodes"
        code = "gpu.topology.unlike"
        found[node] = single(warned(words, remedy=_OFF.format(who="this node"), code=code))
    return found


GPU_TOPOLOGY = Check(
    name="gpu.topology",
    question="Do the GPUs of the node reach each other by the links that the profile names?",
    command=_COMMAND,
    parse=read_topology,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    conclusions=_conclusions,
    recognises=looks_like_topology,
    compare=_compare,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_gpus", "expected_gpu_link", "expected_gpu_links"),
    timeout_s=180.0,
)
