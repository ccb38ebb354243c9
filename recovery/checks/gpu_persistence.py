"""Does the driver stay loaded between jobs?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Verdict, verdict, warned
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, fold_gpus, saying, unanswered
from recovery.reading.smi_words import Snapshot

_NAME = "persistence_mode"


def _nothing(raw: Mapping[str, Any]) -> None:
    return None


def _judge(seen: Snapshot, expected: None) -> Verdict:
    found = [*cut_short(seen), *unanswered(seen, _NAME, "persistence mode")]
    off = saying(seen.gpus, _NAME, "disabled", "off")
    if off:
        found.append(
            warned(
                f"{fold_gpus(off)}: persistence mode is off; the driver reloads with every job",
                remedy="systemctl enable --now nvidia-persistenced (or nvidia-smi -pm 1)",
                component=fold_gpus(off),
                code="gpu.persistence.off",
            )
        )
    return verdict(found, otherwise="persistence mode is on")


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    return {"persistence": {g.label: g.text(_NAME) for g in seen.gpus}}


GPU_PERSISTENCE = Check(
    name="gpu.persistence",
    question="Does the driver stay loaded between jobs?",
    command="nvidia-smi -q",
    parse=reader_of(_NAME, what="persistence mode"),
    expect=_nothing,
    judge=_judge,
    facts=_facts,
    recognises=claims(_NAME),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    timeout_s=90.0,
)
