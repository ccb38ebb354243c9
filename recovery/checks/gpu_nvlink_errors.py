"""Did NVLinks have to repeat or recover what they carried?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import (
    Finding,
    Verdict,
    failed,
    passed,
    single,
    unknown,
    verdict,
    warned,
)
from recovery.reading.agreement import far_above
from recovery.reading.nvlink_errors import LinkErrors, is_nvlink_errors, read_nvlink_errors
from recovery.reading.sections import ended
from recovery.reading.smi_findings import fold_gpus

_FATAL = ("link recovery failed events",)
_RECOVERED = ("recovery errors", "link recovery successful events")
_RETRIED = (
    "replay errors",
    "crc errors",
    "malformed packet errors",
    "buffer overrun errors",
    "rx errors",
    "local link integrity errors",
)
_BAD = (
    "reset the GPU; Xid 74, 144-150 and SXid in the kernel log name the partner; ask for an RMA of"
    " the board if it comes back"
)
_WATCH = "read them again under load (dcgmi diag -r 3): only a number that grows is a fault"
_NOISE = 100.0
"""A link this many above its peers is worth a look; ours. DCGM allows 100 CRC errors a second."""


@dataclass(frozen=True, slots=True)
class Expected:
    """How many links each GPU has; None: nobody said."""

    n_links: int | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    links = raw.get("expected_links")
    return Expected(links if isinstance(links, int) else None)


def _judge(seen: LinkErrors, expected: Expected) -> Verdict:
    if not seen.counts:
        return single(_none(seen, expected))
    found = [*_of_links(seen, _FATAL, fatal=True), *_of_links(seen, _RECOVERED, fatal=False)]
    found += _noisy(seen)
    if seen.torn:
        remedy = "run nvidia-smi nvlink -e again"
        found.append(unknown(f"cut short: {seen.torn}", remedy=remedy, code="unreadable.cut"))
    elif not any(seen.counts.values()):
        remedy = "ask as root, outside a container"
        found.append(
            unknown("no link gives a counter", remedy=remedy, code="gpu.nvlink-errors.none")
        )
    total = sum(_sum(counts, _RETRIED) for counts in seen.counts.values())
    retried = f", {total} packets repeated in all" if total else ""
    return verdict(found, otherwise=f"{len(seen.counts)} links recovered nothing{retried}")


def _none(seen: LinkErrors, expected: Expected) -> Finding:
    if expected.n_links == 0:
        return passed("no NVLink, and none expected")
    said = f": {seen.notes[0]!r}" if seen.notes else ""
    remedy = "nvidia-smi nvlink -s; set expected_links: 0 for cards without NVLink"
    return unknown(f"no link is named{said}", remedy=remedy, code="gpu.nvlink-errors.none")


def _sum(counts: Mapping[str, int], names: tuple[str, ...]) -> int:
    return sum(counts.get(name, 0) for name in names)


def _of_links(seen: LinkErrors, names: tuple[str, ...], *, fatal: bool) -> Iterator[Finding]:
    for (gpu, link), counts in seen.counts.items():
        n = _sum(counts, names)
        if n and fatal:
            words = f"{gpu} link {link}: {n} recoveries of the link failed"
            code = "gpu.nvlink-errors.failed"
            yield failed(words, remedy=_BAD, component=f"{gpu} link {link}", code=code)
        elif n:
            words = f"{gpu} link {link} had to recover {n} times"
            code = "gpu.nvlink-errors.recovered"
            yield warned(words, remedy=_WATCH, component=f"{gpu} link {link}", code=code)


def _noisy(seen: LinkErrors) -> Iterator[Finding]:
    sums = {
        f"{gpu} link {link}": float(_sum(c, _RETRIED)) for (gpu, link), c in seen.counts.items()
    }
    for name, n in far_above(sums, least=_NOISE).items():
        words = f"{name} repeated {n:g} packets, far more than the other links"
        yield warned(words, remedy=_WATCH, component=name, code="gpu.nvlink-errors.noisy")


def _facts(seen: LinkErrors) -> Mapping[str, Any]:
    names = (*_FATAL, *_RECOVERED, *_RETRIED)
    by_gpu = {gpu: sum(_sum(c, names) for (g, _), c in seen.counts.items() if g == gpu)
              for gpu in seen.gpus}  # fmt: skip
    bad = [gpu for gpu, n in by_gpu.items() if n]
    return {"nvlink_errors": by_gpu, "nvlink_error_gpus": fold_gpus(bad)}


GPU_NVLINK_ERRORS = Check(
    name="gpu.nvlink-errors",
    question="Did NVLinks have to repeat or recover what they carried?",
    command=ended("nvidia-smi nvlink -e"),
    parse=read_nvlink_errors,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=is_nvlink_errors,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_links",),
)
