"""Is a GPU or its memory too hot, by its own limits first and by the profile's second?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, single, verdict, warned
from recovery.reading.agreement import SHARE, far_above
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, silent_on, unanswered, where
from recovery.reading.smi_words import Gpu, Snapshot

_NAMES = ("temperature.",)
_COOL = "look at fans, air flow, coolant and dust of that slot; start no job on it until it is cool"
_PEERS_C = 15.0


@dataclass(frozen=True, slots=True)
class Expected:
    """Limits in degrees Celsius; None where the profile names none."""

    warn_c: float | None
    max_c: float | None
    memory_max_c: float | None
    tlimit_slowdown_c: float | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    names = ("temp_warn_c", "temp_max_c", "mem_temp_max_c", "tlimit_slowdown_c")
    values = [raw.get(name) for name in names]
    return Expected(*(float(v) if isinstance(v, int | float) else None for v in values))


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = [*cut_short(seen), *unanswered(seen, "temperature.gpu", "temperature")]
    for gpu in seen.gpus:
        found += [*_own_limits(seen, gpu, expected), *_memory(seen, gpu, expected)]
        found += _profile(seen, gpu, expected)
    found += _hotter_than_peers(seen)
    hottest = max(_temps(seen).values(), default=None)
    return verdict(
        found,
        otherwise=f"{hottest:g} C at most{silent_on(seen, 'temperature.gpu')}{_by(expected)}"
        if hottest is not None
        else "no temperature in this answer",
    )


def _by(expected: Expected) -> str:
    if expected.warn_c is None and expected.max_c is None:
        return "; judged by the GPUs' own limits, the profile names none"
    return ""


def _hot(gpu: Gpu, words: str) -> Finding:
    return failed(words, remedy=_COOL, component=gpu.label, code="gpu.thermal.hot")


def _warm(gpu: Gpu, words: str) -> Finding:
    return warned(words, remedy=_COOL, component=gpu.label, code="gpu.thermal.warm")


def _own_limits(seen: Snapshot, gpu: Gpu, expected: Expected) -> list[Finding]:
    """The margin that the card reports beats any table: newer cards give nothing else."""
    place = where(seen, gpu.label)
    margin, now = gpu.number("temperature.gpu.tlimit"), gpu.number("temperature.gpu")
    if margin is not None:
        return _margin(place, gpu, margin, expected)
    slow, high = gpu.number("temperature.slowdown"), gpu.number("temperature.max")
    if now is not None and slow is not None and now >= slow:
        return [_hot(gpu, f"{place}: {now:g} C, it slows down at {slow:g} C")]
    if now is not None and high is not None and now >= high:
        return [_warm(gpu, f"{place}: {now:g} C, its range ends at {high:g} C")]
    return []


def _margin(place: str, gpu: Gpu, margin: float, expected: Expected) -> list[Finding]:
    """``T.Limit`` counts down to 0 at the end of the card's range, and below where it slows."""
    slow, high = gpu.number("temperature.tlimit.slowdown"), gpu.number("temperature.tlimit.max")
    slow = expected.tlimit_slowdown_c if slow is None else slow
    if slow is not None and margin <= slow:
        return [_hot(gpu, f"{place}: {margin:g} C of margin, it slows down for heat")]
    if margin <= (0.0 if high is None else high):
        return [_warm(gpu, f"{place}: {margin:g} C of margin, no longer within its range")]
    return []


def _memory(seen: Snapshot, gpu: Gpu, expected: Expected) -> list[Finding]:
    now = gpu.number("temperature.memory")
    limit = gpu.number("temperature.memory.max")
    if limit is None:
        limit = expected.memory_max_c
    if now is None or limit is None or now < limit:
        return []
    place = where(seen, gpu.label)
    return [_hot(gpu, f"{place}: its memory is at {now:g} C, the limit is {limit:g} C")]


def _profile(seen: Snapshot, gpu: Gpu, expected: Expected) -> list[Finding]:
    now = gpu.number("temperature.gpu")
    place = where(seen, gpu.label)
    if now is None:
        return []
    if expected.max_c is not None and now >= expected.max_c:
        return [_hot(gpu, f"{place}: {now:g} C, the profile allows less than {expected.max_c:g} C")]
    if expected.warn_c is not None and now >= expected.warn_c:
        return [_warm(gpu, f"{place}: {now:g} C, the profile warns from {expected.warn_c:g} C")]
    return []


def _temps(seen: Snapshot) -> dict[str, float]:
    pairs = ((gpu.label, gpu.number("temperature.gpu")) for gpu in seen.gpus)
    return {label: temp for label, temp in pairs if temp is not None}


def _hotter_than_peers(seen: Snapshot) -> list[Finding]:
    found = []
    for label, temp in far_above(_temps(seen), least=_PEERS_C).items():
        words = f"{where(seen, label)}: {temp:g} C, far above the other GPUs of the node"
        code = "gpu.thermal.above-peers"
        found.append(warned(words, remedy=_COOL, component=label, code=code))
    return found


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    temps = _temps(seen)
    return {"max_temp_c": max(temps.values(), default=None), "temps_c": temps}


def _compare(nodes: Mapping[str, Snapshot], share: float = SHARE) -> Mapping[str, Verdict]:
    """The hottest GPU of each node against those of the other nodes."""
    hottest = {node: max(temps.values()) for node, seen in nodes.items() if (temps := _temps(seen))}
    return {
        node: single(
            warned(
                f"hottest GPU {temp:g} C, far above those of the other nodes",
                remedy="look at the node's fans, inlet temperature and blanking panels",
                code="gpu.thermal.above-nodes",
            )
        )
        for node, temp in far_above(hottest, least=_PEERS_C).items()
    }


GPU_THERMAL = Check(
    name="gpu.thermal",
    question="Is a GPU or its memory too hot?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="temperatures"),
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=claims(*_NAMES),
    compare=_compare,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("temp_warn_c", "temp_max_c", "mem_temp_max_c", "tlimit_slowdown_c"),
    timeout_s=90.0,
)
