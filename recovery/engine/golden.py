"""A golden run of this very cluster, and what another run says otherwise.

Kept is only what should stay (identity, versions, settings), what must not grow (error counters)
and what is measured (bandwidth, temperature), of which the golden run teaches a band.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Any

from recovery.model.verdict import Finding, failed, unknown, warned

Value = str | int | float | bool
Items = Mapping[str, Value]
Facts = Mapping[str, Mapping[str, Items]]
"""check -> fact -> item (``GPU3``, ``mlx5_0``, or ``""``) -> value."""

ALIKE = "alike"  # the name under which the values are kept that nodes share


class Kind(Enum):
    """What a difference from the golden run means."""

    SAME = "same"
    COUNTER = "counter"
    HIGH_IS_GOOD = "high is good"
    LOW_IS_GOOD = "low is good"


_SAME, _COUNTER = Kind.SAME, Kind.COUNTER
WATCHED: Mapping[str, Mapping[str, Kind]] = {
    "gpu.count": {"gpus": _SAME, "models": _SAME},
    "gpu.identity": {"gpu_identity": _SAME},
    "gpu.ecc": {
        "ecc_uncorrected": _COUNTER,
        "aggregate_dram_correctable": _COUNTER,
        "aggregate_dram_uncorrectable": _COUNTER,
    },
    "gpu.remap": {"remapped_uncorrectable": _COUNTER},
    "gpu.retired": {"retired_pages": _COUNTER},
    "gpu.nvlink": {"active_links": _SAME},
    "gpu.nvlink-errors": {"nvlink_errors": _COUNTER},
    "gpu.pcie": {"pcie_width": _SAME, "pcie_gen_max": _SAME},
    "gpu.power": {"power_limits_w": _SAME},
    "gpu.mig": {"mig": _SAME},
    "gpu.persistence": {"persistence": _SAME},
    "gpu.thermal": {"temps_c": Kind.LOW_IS_GOOD},
    "gpu.topology": {"gpu_pair_links": _SAME},
    "gpu.bandwidth": {"h2d_gb_per_s": Kind.HIGH_IS_GOOD, "d2h_gb_per_s": Kind.HIGH_IS_GOOD},
    "gpu.burn": {"gflops": Kind.HIGH_IS_GOOD},
    "nccl.result": {"busbw_at_max": Kind.HIGH_IS_GOOD},
    "driver.match": {"driver": _SAME, "kernel_module": _SAME, "cuda": _SAME, "nvcc": _SAME},
    "driver.modules": {"module_versions": _SAME},
    "ib.state": {"ib_active": _SAME},
    "ib.firmware": {"hca_firmware": _SAME},
    "ib.counters": {"link_downed": _COUNTER, "symbol_error": _COUNTER},
    "fs.mounts": {"mounts": _SAME},
    "host.edac": {"edac_corrected": _COUNTER, "edac_uncorrected": _COUNTER},
    "disk.nvme": {"nvme_disks": _SAME, "worn_pct": _COUNTER},
}
_SHARE, _WARMER_C = 0.05, 10.0
"""The least half-widths of a learned band: a twentieth of the median, or degrees; ours."""
_SIGMAS = 3.0

_NOTE = "if the change is meant: recover baseline save RUN NAME --replace"
_GREW = "look at the part named: a counter that grows between two runs is a fault that goes on"
_WORSE = "ask again on idle nodes; then look at the part named"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of one node."""

    node: str
    check: str
    finding: Finding


def kept_facts(check: str, facts: Mapping[str, Any], alike: Mapping[str, Any]) -> dict[str, Items]:
    """What is kept of one answer; empty for a check that tells nothing that lasts."""
    watched = WATCHED.get(check, {})
    found = {name: _items(facts[name]) for name in watched if facts.get(name) is not None}
    same = {name: value for name, value in alike.items() if isinstance(value, str | int | float)}
    return {**found, ALIKE: same} if same else found


def _items(value: Any) -> Items:
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items() if isinstance(v, str | int | float)}
    return {"": value} if isinstance(value, str | int | float) else {}


def differences(golden: Mapping[str, Facts], now: Mapping[str, Facts]) -> tuple[Difference, ...]:
    """What the nodes of ``now`` say otherwise than in the golden run, worst first.

    What was answered then and is not now is UNKNOWN, never alike.
    """
    bands = _bands(golden)
    found = [
        Difference(node, check, finding)
        for node, facts in now.items()
        for check, before in golden.get(node, {}).items()
        for finding in _of_check(check, before, facts.get(check), bands)
    ]
    absent = [n for n in golden if n not in now]
    found += [Difference(n, "", _absent("is not in this run")) for n in absent]
    found += [Difference(n, "", _absent("is not in the baseline")) for n in now if n not in golden]
    return tuple(sorted(found, key=lambda d: (-d.finding.level, d.check, d.node)))


def _absent(words: str) -> Finding:
    return unknown(f"the node {words}", remedy=_NOTE, code="baseline.node")


def _of_check(
    check: str,
    before: Mapping[str, Items],
    now: Mapping[str, Items] | None,
    bands: Mapping[tuple[str, str], tuple[float, float]],
) -> Iterator[Finding]:
    if now is None:
        remedy = f"run a check step with {check} in it"
        yield unknown("no answer in this run", remedy=remedy, code="baseline.silent")
        return
    watched = WATCHED.get(check, {})
    for name, items in before.items():
        kind = watched.get(name, Kind.SAME)
        after = now.get(name)
        if kind is Kind.COUNTER:
            yield from _grown(name, items, after or {})
        elif after is None:
            yield unknown(f"{name} is not told in this run", remedy=_WORSE, code="baseline.silent")
        elif kind is Kind.SAME:
            yield from _changed(name, items, after)
        elif (check, name) in bands:
            yield from _outside(name, after, kind, bands[check, name])


def _named(fact: str, item: str) -> str:
    if fact == ALIKE:
        return item
    return f"{item} {fact}".strip()


def _changed(name: str, before: Items, after: Items) -> Iterator[Finding]:
    for item in dict.fromkeys([*before, *after]):
        one, other = before.get(item, "absent"), after.get(item, "absent")
        if one != other:
            words = f"{_named(name, item)} is {other}, was {one}"
            yield warned(words, remedy=_NOTE, component=item, code="baseline.changed")


def _grown(name: str, before: Items, after: Items) -> Iterator[Finding]:
    for item, value in after.items():
        old = before.get(item, 0)
        if isinstance(value, int | float) and isinstance(old, int | float) and value > old:
            words = f"{_named(name, item)} grew from {old:g} to {value:g}"
            serious = "uncorrect" in name
            make = failed if serious else warned
            yield make(words, remedy=_GREW, component=item, code="baseline.grew")


def _outside(name: str, after: Items, kind: Kind, band: tuple[float, float]) -> Iterator[Finding]:
    low, high = band
    for item, value in after.items():
        if not isinstance(value, int | float):
            continue
        if kind is Kind.HIGH_IS_GOOD and value < low:
            words = f"{_named(name, item)} is {value:g}, the golden run had {low:.4g} at least"
        elif kind is Kind.LOW_IS_GOOD and value > high:
            words = f"{_named(name, item)} is {value:g}, the golden run had {high:.4g} at most"
        else:
            continue
        yield warned(words, remedy=_WORSE, component=item, code="baseline.band")


def _bands(golden: Mapping[str, Facts]) -> dict[tuple[str, str], tuple[float, float]]:
    """Of each measured fact what was usual over all nodes and parts of the golden run."""
    seen: dict[tuple[str, str], list[float]] = {}
    for facts in golden.values():
        for check, named in facts.items():
            for name, items in named.items():
                if WATCHED.get(check, {}).get(name, _SAME) not in (_SAME, _COUNTER):
                    told = [float(v) for v in items.values() if isinstance(v, int | float)]
                    seen.setdefault((check, name), []).extend(told)
    return {key: _band(values, WATCHED[key[0]][key[1]]) for key, values in seen.items() if values}


def _band(values: list[float], kind: Kind) -> tuple[float, float]:
    middle = median(values)
    sigma = 1.4826 * median(abs(v - middle) for v in values)
    least = _WARMER_C if kind is Kind.LOW_IS_GOOD else _SHARE * abs(middle)
    half = max(_SIGMAS * sigma, least)
    return middle - half, middle + half
