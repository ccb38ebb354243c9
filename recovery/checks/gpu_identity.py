"""Are these the GPUs that were here before, each once, with the same VBIOS?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.expecting import wanted, word
from recovery.reading.sections import ended, without_end
from recovery.reading.smi import read_smi
from recovery.reading.smi_findings import cut_short, fold_gpus, of_trouble
from recovery.reading.smi_words import Form, Snapshot

_COMMAND = ended(
    "nvidia-smi --query-gpu=index,name,uuid,serial,pci.bus_id,vbios_version --format=csv"
)
_SWAPPED = (
    "was a board or a tray replaced, or the node renamed? Then write the new ones into known_gpus;"
    " else look which machine this is (BMC, serial of the chassis)"
)
_VBIOS = "update the VBIOS with the maker's tool; NCCL jobs are as slow as their slowest card"


@dataclass(frozen=True, slots=True)
class Expected:
    """UUIDs or serials of this node's GPUs, and the VBIOS; None and empty: nobody said."""

    known: tuple[str, ...]
    vbios: str | None


def _parse(printed: Printed) -> Snapshot:
    seen = read_smi(without_end(printed))
    if seen.gpus and any(gpu.text("uuid") for gpu in seen.gpus):
        return seen
    trouble = next(iter(seen.troubles), None)
    said = f": {trouble.line!r}" if trouble else ""
    remedy = trouble.remedy if trouble else "nvidia-smi -L on the node"
    raise ParseError(f"no GPU tells its UUID{said}", remedy=remedy)


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(wanted(raw, "known_gpus"), word(raw, "vbios_expected"))


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = [*map(of_trouble, seen.troubles), *cut_short(seen)]
    found += [*_twice(seen), *_known(seen, expected.known), *_vbios(seen, expected.vbios)]
    n_silent = sum(gpu.text("uuid") is None for gpu in seen.gpus)
    if n_silent:
        words = f"{n_silent} of {len(seen.gpus)} GPUs do not tell their UUID"
        found.append(unknown(words, remedy="nvidia-smi -L", code="gpu.identity.silent"))
    compared = "" if expected.known else "; known_gpus names none, `recover baseline` can compare"
    return verdict(found, otherwise=f"{len(seen.gpus)} GPUs, each once{compared}")


def _twice(seen: Snapshot) -> Iterator[Finding]:
    # By UUID alone: the two GPUs of some boards rightly share the board's serial.
    told = Counter(value for gpu in seen.gpus if (value := gpu.text("uuid")))
    for value, n in told.items():
        if n > 1:
            words = f"{n} GPUs have the UUID {value}"
            remedy = "ask again; reset the GPUs or reboot"
            yield failed(words, remedy=remedy, code="gpu.identity.twice")


def _known(seen: Snapshot, known: tuple[str, ...]) -> Iterator[Finding]:
    if not known:
        return
    told = {gpu.label: {gpu.text("uuid"), gpu.text("serial")} for gpu in seen.gpus}
    strange = [label for label, names in told.items() if not names & set(known)]
    here = {name for names in told.values() for name in names}
    gone = [name for name in known if name not in here]
    if strange:
        words = f"{fold_gpus(strange)} not among the known GPUs of this node"
        component = fold_gpus(strange)
        code = "gpu.identity.strange"
        yield failed(words, remedy=_SWAPPED, component=component, code=code)
    if gone:
        words = f"{len(gone)} known GPUs are not here: {', '.join(gone[:4])}"
        yield failed(words, remedy=_SWAPPED, code="gpu.identity.gone")


def _vbios(seen: Snapshot, expected: str | None) -> Iterator[Finding]:
    versions: dict[str, list[str]] = {}
    for gpu in seen.gpus:
        if version := gpu.text("vbios_version"):
            versions.setdefault(version, []).append(gpu.label)
    if expected:
        for version, labels in versions.items():
            if version != expected:
                words = f"{fold_gpus(labels)} with VBIOS {version}, {expected} expected"
                yield failed(words, remedy=_VBIOS, component=fold_gpus(labels))
    elif len(versions) > 1:
        words = ", ".join(f"{fold_gpus(labels)} {version}" for version, labels in versions.items())
        yield warned(f"several VBIOS versions: {words}", remedy=_VBIOS, code="gpu.identity.vbios")


def _alike(seen: Snapshot) -> Mapping[str, str | None]:
    versions = sorted({v for gpu in seen.gpus if (v := gpu.text("vbios_version"))})
    return {"VBIOS": "+".join(versions) or None}


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    # By place, not by index: a GPU that is gone moves the indexes of those behind it.
    gpus = {
        gpu.text("pci.bus_id") or gpu.label: gpu.text("serial") or gpu.text("uuid")
        for gpu in seen.gpus
    }
    return {"gpu_identity": gpus, "vbios": _alike(seen)["VBIOS"]}


def _recognises(printed: Printed) -> bool:
    if "vbios_version" not in (printed.command or printed.text.partition("\n")[0]):
        return False
    try:
        return read_smi(without_end(printed)).form is Form.CSV
    except ParseError:
        return True


GPU_IDENTITY = Check(
    name="gpu.identity",
    question="Are these the GPUs that were here before, each once, with one VBIOS?",
    command=_COMMAND,
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=_recognises,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("known_gpus", "vbios_expected"),
)
