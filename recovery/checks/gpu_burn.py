"""Does each GPU multiply matrices as fast as its peers for half a minute? Loads the GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check, CheckEffect
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.agreement import SHARE, far_below
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.plain import plain_lines, short_lines

_SAMPLE = re.compile(r"Worker (\d{1,3}):\d+\[\d+\]:.*?\(([\d.]{1,20}) gflops\).*")
_ERROR = re.compile(r"(?i).*(?:\berror\b|\bfailed\b|cuda.*(?:returned|unsupported)).*")
_TOOLS = ("dcgmproftester13", "dcgmproftester12", "dcgmproftester11")
_SLOW = (
    "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER under load: throttled? Then cooling, power cap;"
    " else dcgmi diag -r 3 on this GPU"
)
_PEERS = 0.05  # of the median: less is noise; ours
_FEWEST = 5  # a run of half a minute prints about one a second
_SEARCH = "; ".join(f"command -v {tool} >/dev/null 2>&1 && exec {tool} $a" for tool in _TOOLS)


@dataclass(frozen=True, slots=True)
class Burn:
    """Median Gflop/s of each GPU, after its first sample; and lines of errors."""

    gflops: Mapping[str, float]
    troubles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """The least Gflop/s and how many GPUs must have run; None: nobody said."""

    least: float | None
    n_gpus: float | None


def _parse(printed: Printed) -> Burn:
    samples: dict[str, list[float]] = {}
    troubles = []
    for line in short_lines(plain_lines(f"{printed.text}\n{printed.error_text}")):
        match = _SAMPLE.match(line.strip())
        if match and match[2].count(".") <= 1 and match[2] != ".":
            samples.setdefault(f"GPU{int(match[1])}", []).append(float(match[2]))
        elif _ERROR.match(line):
            troubles.append(line.strip()[:120])
    if not samples and not troubles:
        said = printed.text.strip()[:60] or printed.error_text.strip()[:60]
        remedy = "run dcgmproftester12 -t 1004 by hand with idle GPUs"
        raise ParseError(f"no sample of dcgmproftester: {said!r}", remedy=remedy)
    if printed.exit_status not in (None, 0):
        troubles.append(f"it ended with status {printed.exit_status}")
    steady = {gpu: median(values[1:] or values) for gpu, values in samples.items()}
    few = [gpu for gpu, values in samples.items() if len(values) < _FEWEST]
    troubles += [f"only {len(samples[gpu])} samples of {gpu}" for gpu in few]
    return Burn(steady, tuple(troubles))


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(number(raw, "tensor_gflop_per_s"), number(raw, "expected_gpus"))


def _judge(seen: Burn, expected: Expected) -> Verdict:
    found = [
        unknown(
            f"dcgmproftester says: {line!r}",
            remedy="idle GPUs, and a DCGM of the driver's CUDA version? Run it by hand",
            code="gpu.burn.error",
        )
        for line in seen.troubles[:3]
    ]
    if expected.n_gpus and len(seen.gflops) < expected.n_gpus:
        words = f"{len(seen.gflops)} of {expected.n_gpus:g} GPUs worked"
        found.append(failed(words, remedy="nvidia-smi -L; dmesg for Xid", code="gpu.burn.missing"))
    found += _slow(seen, expected.least)
    worst = min(seen.gflops.values(), default=0.0) / 1000
    compared = "" if expected.least else "; the profile names no floor"
    return verdict(
        found, otherwise=f"{len(seen.gflops)} GPUs, slowest {worst:.1f} Tflop/s{compared}"
    )


def _slow(seen: Burn, floor: float | None) -> Iterator[Finding]:
    below = {gpu: v for gpu, v in seen.gflops.items() if floor is not None and v < floor}
    for gpu, value in below.items():
        words = f"{gpu} reaches {value / 1000:.1f} Tflop/s, {(floor or 0) / 1000:.1f} expected"
        yield failed(words, remedy=_SLOW, component=gpu, code="gpu.burn.low")
    for gpu, value in far_below(seen.gflops, least_share=_PEERS).items():
        if gpu not in below:
            words = f"{gpu} reaches {value / 1000:.1f} Tflop/s, far below the other GPUs"
            yield warned(words, remedy=_SLOW, component=gpu, code="gpu.burn.peers")


def _compare(nodes: Mapping[str, Burn], share: float = SHARE) -> Mapping[str, Verdict]:
    """The slowest GPU of each node against those of the other nodes of this very run."""
    least = {node: min(seen.gflops.values()) for node, seen in nodes.items() if seen.gflops}
    return {
        node: Verdict((warned(
            f"slowest GPU reaches {value / 1000:.1f} Tflop/s, far below the other nodes",
            remedy=_SLOW, code="gpu.burn.nodes"),))
        for node, value in far_below(least, least_share=_PEERS).items()
    }  # fmt: skip


def _facts(seen: Burn) -> Mapping[str, Any]:
    least = min(seen.gflops.values(), default=None)
    return {"tensor_gflop_per_s": least, "gflops": dict(seen.gflops)}


GPU_BURN = Check(
    name="gpu.burn",
    question="Under load for 30 s: does each GPU multiply matrices as fast as its peers?",
    command="a='--no-dcgm-validation -t 1004 -d 30'; "
    + _SEARCH
    + "; echo 'dcgmproftester: not found' >&2; exit 127",
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    compare=_compare,
    recognises=told_by(
        "dcgmproftester", begins=r"Skipping CreateDcgmGroups|Worker \d+:\d+ ?\[1004\]:"
    ),
    effect=CheckEffect.ACTIVE,
    needs="dcgmproftester12 (package datacenter-gpu-manager-4-cuda12)",
    expects=("tensor_gflop_per_s", "expected_gpus"),
    timeout_s=240.0,
)
