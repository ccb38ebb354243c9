"""Are the GPUs whole, or split into MIG instances, as the profile says?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, fold_gpus, saying
from recovery.reading.smi_words import Snapshot

_NOW, _NEXT = "mig.mode.current", "mig.mode.pending"


@dataclass(frozen=True, slots=True)
class Expected:
    """Whether MIG has to be on; None where the profile does not say."""

    on: bool | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    value = raw.get("expected_mig")
    return Expected(value if isinstance(value, bool) else None)


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    on = saying(seen.gpus, _NOW, "enabled")
    off = saying(seen.gpus, _NOW, "disabled", "n/a") or [
        gpu.label for gpu in seen.gpus if gpu.label not in on
    ]
    found = [*cut_short(seen), *_pending(seen)]
    if expected.on is not None:
        wrong = off if expected.on else on
        if wrong:
            found.append(_wrong(wrong, "off" if expected.on else "on"))
    elif on and off:
        found.append(_mixed(on, off))
    compared = "" if expected.on is not None else "; the profile does not say whether it should be"
    state = f"MIG is on for {fold_gpus(on)}" if on else "MIG is off"
    return verdict(found, otherwise=f"{state}{compared}")


def _pending(seen: Snapshot) -> list[Finding]:
    waiting = [
        gpu.label
        for gpu in seen.gpus
        if gpu.text(_NOW) and gpu.text(_NEXT) and gpu.text(_NOW) != gpu.text(_NEXT)
    ]
    if not waiting:
        return []
    words = f"{fold_gpus(waiting)}: a change of the MIG mode waits for a reset"
    remedy = "reset the GPU or reboot, or take the change back with nvidia-smi -mig"
    return [warned(words, remedy=remedy, code="gpu.mig.pending")]


def _wrong(labels: list[str], state: str) -> Finding:
    other = "1" if state == "off" else "0"
    words = f"{fold_gpus(labels)}: MIG is {state}, the profile says otherwise"
    remedy = f"drain the node, nvidia-smi -i <GPU> -mig {other}, reset the GPU"
    return failed(words, remedy=remedy, component=fold_gpus(labels), code="gpu.mig.mode")


def _mixed(on: list[str], off: list[str]) -> Finding:
    words = f"MIG is on for {fold_gpus(on)} and off for {fold_gpus(off)}"
    remedy = "set all alike with nvidia-smi -mig, or name expected_mig in the profile"
    return warned(words, remedy=remedy, code="gpu.mig.mixed")


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    return {"mig": {g.label: g.text(_NOW) for g in seen.gpus}}


GPU_MIG = Check(
    name="gpu.mig",
    question="Are the GPUs whole, or split into MIG instances, as the profile says?",
    command="nvidia-smi -q",
    parse=reader_of(_NOW, what="MIG"),
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=claims(_NOW),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_mig",),
    timeout_s=90.0,
)
