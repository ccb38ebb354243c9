"""Does a bad memory row wait for its replacement, or did replacing one fail?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, nonzero, saying, where
from recovery.reading.smi_words import Gpu, Snapshot

_NAMES = ("remapped_rows.", "retired_pages.")
_RESET = "drain the node, reset the GPU or reboot so that the spare is used, then dcgmi diag -r 3"
_RMA = "isolate the node and ask for an RMA of this GPU"


def _nothing(raw: Mapping[str, Any]) -> None:
    return None


def _judge(seen: Snapshot, expected: None) -> Verdict:
    found = cut_short(seen)
    for gpu in seen.gpus:
        found += [*_now(seen, gpu), *_past(seen, gpu)]
    supported = any(
        gpu.text(name) is not None
        for gpu in seen.gpus
        for name in gpu.values
        if name.startswith(_NAMES)
    )
    well = f"no row or page of {len(seen.gpus)} GPUs waits for its replacement"
    if not supported:
        well = "these GPUs neither remap rows nor retire pages"
    return verdict(found, otherwise=well)


def _now(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    found = []
    place = where(seen, gpu.label)
    if gpu.says("remapped_rows.failure", "yes", "1"):
        words = f"{place}: a bad memory row could not be replaced"
        found.append(_fail(gpu, words, _RMA, "gpu.ecc.remap-failed"))
    if gpu.says("remapped_rows.pending", "yes", "1"):
        words = f"{place}: a bad memory row waits for a reset to be replaced"
        found.append(_fail(gpu, words, _RESET, "gpu.ecc.remap-pending"))
    if gpu.says("retired_pages.pending", "yes", "1"):
        words = f"{place}: a bad memory page waits for a reset to be retired"
        found.append(_fail(gpu, words, _RESET, "gpu.ecc.retirement-pending"))
    return found


def _fail(gpu: Gpu, words: str, remedy: str, code: str) -> Finding:
    return failed(words, remedy=remedy, component=gpu.label, code=code)


def _past(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    place = where(seen, gpu.label)
    rows = gpu.count("remapped_rows.uncorrectable") or 0
    pages = gpu.count("retired_pages.double_bit.count") or 0
    empty = gpu.count("remapped_rows.histogram.none") or 0
    seen_words = (
        (rows, f"{rows} rows were replaced after uncorrectable errors", "gpu.ecc.remapped"),
        (pages, f"{pages} pages were retired after double-bit errors", "gpu.ecc.retired"),
        (empty, f"{empty} memory banks have no spare row left", "gpu.ecc.no-spare"),
    )
    return [
        warned(
            f"{place}: {words}",
            remedy="note it; act only if the number grows",
            component=gpu.label,
            code=code,
        )
        for count, words, code in seen_words
        if count
    ]


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "remap_pending": saying(seen.gpus, "remapped_rows.pending", "yes", "1"),
        "remap_failure": saying(seen.gpus, "remapped_rows.failure", "yes", "1"),
        "remapped_uncorrectable": nonzero(seen.gpus, "remapped_rows.uncorrectable"),
    }
    retired = saying(seen.gpus, "retired_pages.pending", "yes", "1")
    if retired:
        found["retirement_pending"] = retired
    return found


GPU_REMAP = Check(
    name="gpu.remap",
    question="Does a bad memory row wait for its replacement, or did replacing fail?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="remapped rows"),
    expect=_nothing,
    judge=_judge,
    facts=_facts,
    recognises=claims(*_NAMES),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    timeout_s=90.0,
)
