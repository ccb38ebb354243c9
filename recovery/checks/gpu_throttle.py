"""Does the hardware slow a GPU down, for heat or for power?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading import cell
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, unanswered, where
from recovery.reading.smi_names import REASONS
from recovery.reading.smi_words import Gpu, Snapshot

_PREFIX = "clocks_event_reasons."
_MASK = f"{_PREFIX}active"
_BAD = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
_HEAT = "check cooling, fans and air flow of that slot; start no job on it"
_BRAKE = "check the power supplies and the BMC's event log: something outside asserts the brake"
_SLOW = "look for heat and power in nvidia-smi -q; ask again, it may be a change of clocks"


def _nothing(raw: Mapping[str, Any]) -> None:
    return None


def _active(gpu: Gpu) -> tuple[str, ...]:
    """The active reasons: those named one by one, and those in the mask."""
    named = [r for r in REASONS if gpu.says(_PREFIX + r, "active")]
    mask = _mask(gpu) or 0
    return tuple(r for r, bit in REASONS.items() if r in named or (mask & bit))


def _mask(gpu: Gpu) -> int | None:
    text = gpu.text(_MASK)
    try:
        return None if text is None else int(text, 16)
    except ValueError:
        return None


def _judge(seen: Snapshot, expected: None) -> Verdict:
    known = next((n for gpu in seen.gpus for n in gpu.values if n.startswith(_PREFIX)), _MASK)
    found = [*cut_short(seen), *unanswered(seen, known, "clock event reasons")]
    for gpu in seen.gpus:
        found += _of_gpu(seen, gpu)
    idle = sum("gpu_idle" in _active(gpu) for gpu in seen.gpus)
    capped = sum("sw_power_cap" in _active(gpu) for gpu in seen.gpus)
    words = f"no GPU is slowed down by heat or hardware ({idle} idle, {capped} at their power cap)"
    return verdict(found, otherwise=words)


def _of_gpu(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    active = _active(gpu)
    place = f"{where(seen, gpu.label)}{_readings(gpu)}"
    if "hw_thermal_slowdown" in active:
        return [_fail(gpu, f"{place}: the hardware slows it down for heat", _HEAT, "heat")]
    if "hw_power_brake_slowdown" in active:
        return [_fail(gpu, f"{place}: an external power brake slows it down", _BRAKE, "brake")]
    if "hw_slowdown" in active and "gpu_idle" not in active:
        return [_fail(gpu, f"{place}: the hardware slows it down", _SLOW, "hardware")]
    if "hw_slowdown" in active:
        return [_warn(gpu, f"{place}: the hardware slows it down while idle", _SLOW, "hardware")]
    if "sw_thermal_slowdown" in active:
        return [_warn(gpu, f"{place}: the driver lowers its clocks for heat", _HEAT, "driver-heat")]
    return []


def _readings(gpu: Gpu) -> str:
    temp, clock = gpu.number("temperature.gpu"), gpu.number("clocks.current.sm")
    parts = [f"{temp:g} C" if temp is not None else "", f"SM {clock:g} MHz" if clock else ""]
    kept = [part for part in parts if part]
    return f" at {', '.join(kept)}" if kept else ""


def _fail(gpu: Gpu, words: str, remedy: str, code: str) -> Finding:
    return failed(words, remedy=remedy, component=gpu.label, code=f"gpu.throttle.{code}")


def _warn(gpu: Gpu, words: str, remedy: str, code: str) -> Finding:
    return warned(words, remedy=remedy, component=gpu.label, code=f"gpu.throttle.{code}")


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    by_gpu = {gpu.label: _active(gpu) for gpu in seen.gpus}
    throttled = {
        label: [r for r in active if r in _BAD]
        for label, active in by_gpu.items()
        if any(r in _BAD for r in active)
    }
    found: dict[str, Any] = {
        "throttled": throttled,
        "idle": sum("gpu_idle" in active for active in by_gpu.values()),
        "sw_power_cap": [label for label, active in by_gpu.items() if "sw_power_cap" in active],
    }
    for gpu in seen.gpus:
        if gpu.label in throttled:
            found.update(_details(gpu))
    return found


def _details(gpu: Gpu) -> dict[str, Any]:
    name = gpu.label.lower()
    mask = _mask(gpu)
    temp, clock = gpu.text("temperature.gpu"), gpu.text("clocks.current.sm")
    values = {
        f"mask_{name}": None if mask is None else hex(mask),
        f"temp_{name}": None if temp is None else cell.whole(temp),
        f"sm_mhz_{name}": None if clock is None else cell.whole(clock),
    }
    return {key: value for key, value in values.items() if value is not None}


GPU_THROTTLE = Check(
    name="gpu.throttle",
    question="Does the hardware slow a GPU down?",
    command="nvidia-smi -q",
    parse=reader_of(_PREFIX, what="clock event reasons"),
    expect=_nothing,
    judge=_judge,
    facts=_facts,
    recognises=claims(_PREFIX),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    timeout_s=90.0,
)
