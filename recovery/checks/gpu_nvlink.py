"""Are all NVLinks up, and at full speed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading import cell
from recovery.reading.nvlink_errors import is_nvlink_errors
from recovery.reading.smi import read_smi
from recovery.reading.smi_findings import cut_short, of_trouble
from recovery.reading.smi_words import Form, Gpu, Snapshot

_COMMAND = "nvidia-smi nvlink -s"
_LINKS = (
    "kernel log for Xid 74, 144-150 and SXid; reset the GPU or restart the fabric manager;"
    " if a link stays down ask for an RMA of the board"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """Links that are up on each GPU, and the least raw rate of one, in GB/s; None: not known."""

    n_links: int | None
    least_gb_per_s: float | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    links, rate = raw.get("expected_links"), raw.get("nvlink_gb_per_s")
    return Expected(
        links if isinstance(links, int) else None,
        float(rate) if isinstance(rate, int | float) else None,
    )


def _parse(printed: Printed) -> Snapshot:
    seen = read_smi(printed)
    if seen.form is Form.NVLINK:
        return seen
    trouble = next(iter(seen.troubles), None)
    if trouble is not None:
        raise ParseError(f"nvidia-smi gives no readings: {trouble.line!r}", remedy=trouble.remedy)
    raise ParseError("the answer says nothing of NVLink", remedy=f"ask with {_COMMAND}")


def _recognises(printed: Printed) -> bool:
    if is_nvlink_errors(printed):
        return False  # counters of errors, not states
    try:
        return read_smi(printed).form is Form.NVLINK
    except ParseError:
        return "nvidia-smi nvlink" in printed.command


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = [of_trouble(trouble) for trouble in seen.troubles]
    found += cut_short(seen)
    usual = max((n for gpu in seen.gpus if (n := len(_up(gpu)))), default=0)
    best = max((rate for gpu in seen.gpus for rate in _up(gpu)), default=0.0)
    for gpu in seen.gpus:
        if not (seen.cut and gpu is seen.gpus[-1]):  # its other links may be what was cut off
            found += _of_gpu(gpu, expected.n_links, usual)
        found += _slow(gpu, expected, best)
    if not seen.cut and not any(gpu.links or gpu.has("nvlink.state") for gpu in seen.gpus):
        found.append(_silent(expected))
    compared = "" if expected.n_links is not None else "; the profile names no number of links"
    well = f"{usual} links up on each of {len(seen.gpus)} GPUs"
    if not usual:
        well = "no NVLink in use on this node"
    return verdict(found, otherwise=f"{well}{compared}")


def _up(gpu: Gpu) -> list[float]:
    rates = (cell.decimal(link) for link in gpu.links or ())
    return [rate for rate in rates if rate is not None]


def _down(gpu: Gpu) -> list[int]:
    return [i for i, link in enumerate(gpu.links or ()) if cell.decimal(link) is None]


def _of_gpu(gpu: Gpu, n_expected: int | None, usual: int) -> list[Finding]:
    wanted = n_expected if n_expected is not None else usual
    n_up = len(_up(gpu))
    told = bool(gpu.links) or gpu.says("nvlink.state", "all inactive")
    if gpu.says("nvlink.state", "not supported") and not n_expected and not usual:
        return []
    if n_up >= wanted or (not told and not gpu.has("nvlink.state")):
        return []
    down = _down(gpu)
    which = f" ({', '.join(map(str, down))} inactive)" if 0 < len(down) <= 6 else ""
    words = f"{gpu.label}: {n_up} of {wanted} NVLinks up{which}"
    return [failed(words, remedy=_LINKS, component=gpu.label, code="gpu.nvlink.down")]


def _slow(gpu: Gpu, expected: Expected, best: float) -> list[Finding]:
    rates = _up(gpu)
    if not rates:
        return []
    least = min(rates)
    if expected.least_gb_per_s is not None and least < expected.least_gb_per_s:
        words = (
            f"{gpu.label}: an NVLink runs at {least:g} GB/s, {expected.least_gb_per_s:g} expected"
        )
        return [failed(words, remedy=_LINKS, component=gpu.label, code="gpu.nvlink.slow")]
    if least < best * 0.95:
        words = f"{gpu.label}: an NVLink runs at {least:g} GB/s, others at {best:g}"
        return [warned(words, remedy=_LINKS, component=gpu.label, code="gpu.nvlink.slow")]
    return []


def _silent(expected: Expected) -> Finding:
    wanted = f"; {expected.n_links} on each GPU expected" if expected.n_links else ""
    return unknown(
        f"no word about any link{wanted}",
        remedy="run nvidia-smi nvlink -s by hand; check that these GPUs have NVLink",
        code="gpu.nvlink.silent",
    )


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    rates = {rate for gpu in seen.gpus for rate in _up(gpu)}
    speed = next(iter(rates)) if len(rates) == 1 else sorted(rates) or None
    return {
        "gpus": seen.n_gpus,
        "active_links": {gpu.label: len(_up(gpu)) for gpu in seen.gpus},
        "inactive": [[gpu.label, link] for gpu in seen.gpus for link in _down(gpu)],
        "speed_gbs": speed,
    }


GPU_NVLINK = Check(
    name="gpu.nvlink",
    question="Are all NVLinks up, and at full speed?",
    command=_COMMAND,
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=_recognises,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_links", "nvlink_gb_per_s"),
)
