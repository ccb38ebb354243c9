"""May every GPU run at the clocks that its peers run at?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.expecting import number
from recovery.reading.sections import ended, without_end
from recovery.reading.smi import read_smi
from recovery.reading.smi_findings import cut_short, fold_gpus, of_trouble
from recovery.reading.smi_words import Form, Gpu, Snapshot

_FIELDS = ("clocks.max.sm", "clocks.max.memory", "clocks.applications.graphics")
_COMMAND = ended(f"nvidia-smi --query-gpu=index,{','.join(_FIELDS)} --format=csv")
_RESET = "nvidia-smi -rac; nvidia-smi -rgc (as root); look for a service that locks the clocks"


def _parse(printed: Printed) -> Snapshot:
    seen = read_smi(without_end(printed))
    if any(_mhz(gpu, name) for gpu in seen.gpus for name in _FIELDS):
        return seen
    trouble = next(iter(seen.troubles), None)
    said = f": {trouble.line!r}" if trouble else ""
    remedy = trouble.remedy if trouble else "nvidia-smi -q -d CLOCK on the node"
    raise ParseError(f"no GPU tells its clocks{said}", remedy=remedy)


def _mhz(gpu: Gpu, name: str) -> int | None:
    value = gpu.number(name)
    return None if value is None else round(value)


def _judge(seen: Snapshot, least_mhz: float | None) -> Verdict:
    found = [*map(of_trouble, seen.troubles), *cut_short(seen)]
    for name in _FIELDS:
        found += _unequal(seen, name)
    low = [
        gpu.label
        for gpu in seen.gpus
        if least_mhz and (mhz := _mhz(gpu, "clocks.applications.graphics")) and mhz < least_mhz
    ]
    if low:
        words = f"{fold_gpus(low)}: application clock below {least_mhz:g} MHz"
        component = fold_gpus(low)
        found.append(failed(words, remedy=_RESET, component=component, code="gpu.clocks.low"))
    shown = ", ".join(f"{name.removeprefix('clocks.')} {mhz}" for name, mhz in _usual(seen).items())
    return verdict(found, otherwise=f"{shown} MHz on {len(seen.gpus)} GPUs")


def _usual(seen: Snapshot) -> dict[str, int]:
    found = {}
    for name in _FIELDS:
        told = Counter(mhz for gpu in seen.gpus if (mhz := _mhz(gpu, name)))
        if told:
            found[name] = told.most_common(1)[0][0]
    return found


def _unequal(seen: Snapshot, name: str) -> list[Finding]:
    usual = _usual(seen).get(name)
    others = [gpu.label for gpu in seen.gpus if (mhz := _mhz(gpu, name)) and mhz != usual]
    if not others:
        return []
    words = f"{fold_gpus(others)}: {name} is not {usual} MHz as on the other GPUs"
    component = fold_gpus(others)
    return [warned(words, remedy=_RESET, component=component, code="gpu.clocks.unlike")]


def _alike(seen: Snapshot) -> Mapping[str, int | None]:
    return {**dict.fromkeys(_FIELDS), **_usual(seen)}


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    return {name.replace(".", "_") + "_mhz": mhz for name, mhz in _usual(seen).items()}


def _recognises(printed: Printed) -> bool:
    if "clocks.max.sm" not in (printed.command or printed.text.partition("\n")[0]):
        return False
    try:
        return read_smi(without_end(printed)).form is Form.CSV
    except ParseError:
        return True


GPU_CLOCKS = Check(
    name="gpu.clocks",
    question="May every GPU run at the clocks that its peers run at?",
    command=_COMMAND,
    parse=_parse,
    expect=lambda raw: number(raw, "app_clock_mhz_min"),
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=_recognises,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("app_clock_mhz_min",),
)
