"""Has a GPU retired so many memory pages that it should be replaced?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.expecting import number
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, where
from recovery.reading.smi_words import Gpu, Snapshot

_NAMES = ("retired_pages.", "remapped_rows.")
_PARTS = ("retired_pages.single_bit_ecc.count", "retired_pages.double_bit.count")
_HARD, _SOFT = 63, 15
"""Pages from which on NVIDIA takes a card back, and on which to look. Source: NVIDIA/DCGM@72fa3fe;
the card's table holds 64."""


def _total(gpu: Gpu) -> int | None:
    known = [n for name in _PARTS if (n := gpu.count(name)) is not None]
    return sum(known) if known else None


def _judge(seen: Snapshot, hard: float | None) -> Verdict:
    most = hard or _HARD
    found = cut_short(seen)
    for gpu in seen.gpus:
        n = _total(gpu) or 0
        if n >= min(most, _SOFT):
            found.append(_finding(seen, gpu, n, most))
    counting = [gpu for gpu in seen.gpus if _total(gpu) is not None]
    pages = sum(_total(gpu) or 0 for gpu in counting)
    well = f"{pages} pages retired on {len(counting)} GPUs"
    if not counting:
        well = "these GPUs replace rows and retire no pages: see gpu.remap"
    return verdict(found, otherwise=well)


def _finding(seen: Snapshot, gpu: Gpu, n: int, most: float) -> Finding:
    words = f"{where(seen, gpu.label)}: {n} memory pages retired, {most:g} are the limit"
    if n >= most:
        remedy = "isolate the node and ask for an RMA of this GPU"
        return failed(words, remedy=remedy, component=gpu.label, code="gpu.retired.many")
    remedy = "plan its replacement; `recover baseline diff` shows whether it grows"
    return warned(words, remedy=remedy, component=gpu.label, code="gpu.retired.some")


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    return {"retired_pages": {g.label: n for g in seen.gpus if (n := _total(g)) is not None}}


GPU_RETIRED = Check(
    name="gpu.retired",
    question="Has a GPU retired so many memory pages that it should be replaced?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="retired pages"),
    expect=lambda raw: number(raw, "retired_pages_max"),
    judge=_judge,
    facts=_facts,
    recognises=claims("retired_pages."),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("retired_pages_max",),
    timeout_s=90.0,
)
