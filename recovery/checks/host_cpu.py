"""Are all CPUs there, on line, and free to run at full speed?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.cell import whole
from recovery.reading.content import told_by
from recovery.reading.expecting import number, word
from recovery.reading.sections import asking, pairs, read_sections

_CPU = "/sys/devices/system/cpu"
_EACH = f"cat {_CPU}/cpu[0-9]*/cpufreq/%s 2>/dev/null | sort | uniq -c"
_LOST = "read the kernel log for MCE and the BMC's event log; look at the BIOS settings; reboot"
_SLOW = "cpupower frequency-set -g performance, and set it at boot (tuned profile)"
_CAPPED = "cpupower frequency-set -u MAX; look for a power cap in the BMC or the BIOS"
_SPEEDS = ("scaling_governor", "scaling_max_freq", "cpuinfo_max_freq")


@dataclass(frozen=True, slots=True)
class Cpus:
    """Counts from lscpu; governors and frequencies (kHz) with how many CPUs have them."""

    n_cpus: int
    off_line: str
    sockets: int | None
    numa_nodes: int | None
    threads_per_core: int | None
    model: str
    governors: Mapping[str, int]
    allowed_khz: Mapping[int, int]
    possible_khz: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Expected:
    """Number of CPUs and the governor; None: nobody said."""

    n_cpus: float | None
    governor: str | None


def _parse(printed: Printed) -> Cpus:
    sections = read_sections(printed, bare="lscpu")
    told = dict(pairs(sections.get("lscpu") or ()))
    n_cpus = whole(told.get("cpu(s)", ""))
    if not n_cpus:
        raise ParseError("lscpu names no number of CPUs", remedy="run lscpu on the node")
    counts = {name: _counted(sections.get(name) or ()) for name in _SPEEDS}
    return Cpus(
        n_cpus=n_cpus,
        off_line=told.get("off-line cpu(s) list", ""),
        sockets=whole(told.get("socket(s)", "")),
        numa_nodes=whole(told.get("numa node(s)", "")),
        threads_per_core=whole(told.get("thread(s) per core", "")),
        model=told.get("model name", ""),
        governors=counts["scaling_governor"],
        allowed_khz=_numbers(counts["scaling_max_freq"]),
        possible_khz=_numbers(counts["cpuinfo_max_freq"]),
    )


def _counted(lines: Sequence[str]) -> dict[str, int]:
    """Lines of ``uniq -c``: how often, and what."""
    found: Counter[str] = Counter()
    for line in lines:
        times, _, what = line.strip().partition(" ")
        if times.isdecimal() and what:
            found[what.strip()] += int(times[:9])
    return dict(found)


def _numbers(counts: Mapping[str, int]) -> dict[int, int]:
    return {int(khz[:12]): n for khz, n in counts.items() if khz.isdecimal()}


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(number(raw, "expected_cpus"), word(raw, "cpu_governor"))


def _judge(seen: Cpus, expected: Expected) -> Verdict:
    found: list[Finding] = []
    if expected.n_cpus and seen.n_cpus < expected.n_cpus:
        words = f"{seen.n_cpus} CPUs, {expected.n_cpus:g} expected"
        found.append(failed(words, remedy=_LOST, code="host.cpu.missing"))
    if seen.off_line:
        words = f"CPUs {seen.off_line} are off line"
        found.append(warned(words, remedy=_LOST, code="host.cpu.off-line"))
    found += [*_governor(seen, expected.governor), *_capped(seen)]
    compared = "" if expected.n_cpus else "; no expected number to compare with"
    return verdict(found, otherwise=f"{seen.n_cpus} CPUs on line{compared}")


def _governor(seen: Cpus, wanted: str | None) -> list[Finding]:
    others = {name: n for name, n in seen.governors.items() if wanted and name != wanted}
    if not others:
        return []
    listed = ", ".join(f"{name} on {n} CPUs" for name, n in others.items())
    words = f"governor {listed}; {wanted} expected"
    return [failed(words, remedy=_SLOW, code="host.cpu.governor")]


def _capped(seen: Cpus) -> list[Finding]:
    """Claims a cap below what the CPU can do, whoever set it."""
    if not seen.allowed_khz or not seen.possible_khz:
        return []
    allowed, possible = min(seen.allowed_khz), max(seen.possible_khz)
    if allowed >= possible * 0.9:
        return []
    words = f"held to {allowed / 1e6:.1f} GHz of {possible / 1e6:.1f}"
    return [warned(words, remedy=_CAPPED, code="host.cpu.capped")]


def _alike(seen: Cpus) -> Mapping[str, str | int | None]:
    return {
        "CPUs": seen.n_cpus,
        "sockets": seen.sockets,
        "NUMA nodes": seen.numa_nodes,
        "threads per core": seen.threads_per_core,
        "CPU model": seen.model or None,
        "governor": "+".join(sorted(seen.governors)) or None,
    }


HOST_CPU = Check(
    name="host.cpu",
    question="Are all CPUs there and free to run at full speed?",
    command=asking({"lscpu": "LC_ALL=C lscpu", **{n: _EACH % n for n in _SPEEDS}}, needs="lscpu"),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=lambda seen: {key: value for key, value in _alike(seen).items() if value is not None},
    alike=_alike,
    recognises=told_by(r"lscpu", begins=r"## lscpu|Architecture:  +\S"),
    needs="lscpu (util-linux)",
    expects=("expected_cpus", "cpu_governor"),
)
