"""Did memory errors occur that could not be corrected, now or in the past?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading import cell
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, fold_gpus, nonzero, saying, where
from recovery.reading.smi_words import Form, Gpu, Snapshot

_NAMES = ("ecc.", "repair.")
_FLAGS = (
    (
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
        "its SRAM error threshold is exceeded",
        "isolate the node and ask for an RMA: SRAM cannot be remapped",
        "gpu.ecc.sram-threshold",
    ),
    (
        "repair.unrepairable",
        "it has memory that cannot be repaired",
        "isolate the node and ask for an RMA",
        "gpu.ecc.unrepairable",
    ),
    (
        "repair.channel.pending",
        "a memory channel's repair waits for a reset",
        "drain the node and reset the GPU or reboot, then run dcgmi diag",
        "gpu.ecc.repair-pending",
    ),
    (
        "repair.tpc.pending",
        "a compute cluster's repair waits for a reset",
        "drain the node and reset the GPU or reboot, then run dcgmi diag",
        "gpu.ecc.repair-pending",
    ),
)


def _nothing(raw: Mapping[str, Any]) -> None:
    return None


def _judge(seen: Snapshot, expected: None) -> Verdict:
    found = cut_short(seen)
    for gpu in seen.gpus:
        found += _of_gpu(seen, gpu)
    off = saying(seen.gpus, "ecc.mode.current", "disabled", "off")
    if off and len(off) < len(seen.gpus):
        found.append(_partly_off(off))
    elif not off:
        found += _uncounted(seen)
    return verdict(found, otherwise=_well(seen, off))


def _of_gpu(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    place = where(seen, gpu.label)
    found = [
        failed(f"{place}: {words}", remedy=remedy, component=gpu.label, code=code)
        for name, words, remedy, code in _FLAGS
        if gpu.says(name, "yes", "true")
    ]
    now = _total(gpu, "uncorrected.volatile")
    before = _total(gpu, "uncorrected.aggregate")
    if now:
        found.append(
            failed(
                f"{place}: {now} uncorrectable memory errors since the last reset",
                remedy="drain the node; read Remapped Rows of nvidia-smi -q, reset the GPU"
                " or reboot, then run dcgmi diag -r 3",
                component=gpu.label,
                code="gpu.ecc.uncorrectable",
            )
        )
    elif before:
        found.append(
            warned(
                f"{place}: {before} uncorrectable memory errors in its life, none now",
                remedy="note it; act only if the number grows",
                component=gpu.label,
                code="gpu.ecc.past-errors",
            )
        )
    return found


def _total(gpu: Gpu, kind: str) -> int | None:
    """All errors of a kind: the printed total, or the sum of the parts that are printed."""
    total = gpu.count(f"ecc.errors.{kind}.total")
    if total is not None:
        return total
    parts = ("dram", "sram", "sram.parity", "sram.secded")
    known = [n for part in parts if (n := gpu.count(f"ecc.errors.{kind}.{part}")) is not None]
    return sum(known) if known else None


def _uncounted(seen: Snapshot) -> list[Finding]:
    """GPUs whose counters nobody could read, and those that count nothing while their peers do."""
    unread = [gpu.label for gpu in seen.gpus if _is_unread(gpu)]
    found = []
    if unread:
        found.append(
            unknown(
                f"{fold_gpus(unread)}: the memory error counters cannot be read",
                remedy="ask again as root; when it stays so, read dmesg and reset the GPU",
                code="gpu.ecc.unread",
            )
        )
    untold = [gpu.label for gpu in seen.gpus if _tells_only_corrected(gpu)]
    if untold:
        found.append(
            unknown(
                f"{fold_gpus(untold)}: the uncorrectable errors are not in the text",
                remedy="ask again with nvidia-smi -q and keep the whole output",
                code="gpu.ecc.not-told",
            )
        )
    silent = [g.label for g in seen.gpus if g.label not in unread and _counts_nothing(g)]
    if silent and len(silent) + len(unread) < len(seen.gpus):
        found.append(
            warned(
                f"{fold_gpus(silent)}: no memory errors are counted, on its peers they are",
                remedy="see ECC Mode of nvidia-smi -q; nvidia-smi -e 1 -i <GPU>, then reset it",
                code="gpu.ecc.off",
            )
        )
    return found


def _is_unread(gpu: Gpu) -> bool:
    values = [v for name, v in gpu.values.items() if name.startswith("ecc.errors.uncorrected")]
    denied = any("permission" in value.lower() for value in values)
    return denied or any(cell.is_failed(value) for value in values)


def _tells_only_corrected(gpu: Gpu) -> bool:
    kinds = {name.split(".")[2] for name in gpu.values if name.startswith("ecc.errors.")}
    return kinds == {"corrected"}


def _counts_nothing(gpu: Gpu) -> bool:
    asked = any(name.startswith("ecc.errors.uncorrected.volatile") for name in gpu.values)
    return asked and _total(gpu, "uncorrected.volatile") is None


def _partly_off(labels: Iterable[str]) -> Finding:
    return warned(
        f"ECC is off on {fold_gpus(labels)} and on elsewhere: their errors are not counted",
        remedy="nvidia-smi -e 1 -i <GPU>, then reset it",
        code="gpu.ecc.off",
    )


def _well(seen: Snapshot, off: list[str]) -> str:
    totals = [_total(gpu, "uncorrected.volatile") for gpu in seen.gpus]
    counted = sum(total is not None for total in totals)
    if off:
        return f"ECC is off on all {len(off)} GPUs: no errors are counted"
    if not counted:
        return "these GPUs count no uncorrectable errors (ECC is not available)"
    corrected = sum(_total(gpu, "corrected.volatile") or 0 for gpu in seen.gpus)
    tail = f"; {corrected} corrected" if corrected else ""
    silent = f" ({len(totals) - counted} GPUs do not count)" if counted < len(totals) else ""
    return f"no uncorrectable memory error on {counted} GPUs{silent}{tail}"


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    gpus = seen.gpus
    found: dict[str, Any] = {
        "sram_threshold_exceeded": saying(gpus, _FLAGS[0][0], "yes", "true"),
    }
    for scope in ("volatile", "aggregate"):
        for kind in ("correctable", "uncorrectable"):
            name = f"ecc.errors.{kind.replace('able', 'ed')}.{scope}.dram"
            if any(gpu.has(name) for gpu in gpus):
                found[f"{scope}_dram_{kind}"] = nonzero(gpus, name)
    totals = {
        gpu.label: n for gpu in gpus if (n := _total(gpu, "uncorrected.volatile")) is not None
    }
    if totals:
        found["ecc_uncorrected"] = sum(totals.values()) if seen.form is Form.CSV else totals
    return found


GPU_ECC = Check(
    name="gpu.ecc",
    question="Did memory errors occur that could not be corrected?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="ECC"),
    expect=_nothing,
    judge=_judge,
    facts=_facts,
    recognises=claims(*_NAMES),
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    timeout_s=90.0,
)
