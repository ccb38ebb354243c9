"""Has the node all its memory? After a power loss a module that failed its training is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.cell import whole
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.sections import asking, pairs, read_sections

_MISSING = (
    "a memory module is missing or was left out at boot: read the BMC's event log and"
    " dmidecode -t memory, reseat or replace the module"
)
_TOLERANCE = 0.05  # kernel and firmware keep some; azurehpc-health-checks allows 5 % too


@dataclass(frozen=True, slots=True)
class Memory:
    """Sizes in KiB, and huge pages."""

    total_kib: int
    available_kib: int | None
    swap_kib: int | None
    huge_pages: int | None
    huge_free: int | None


@dataclass(frozen=True, slots=True)
class Expected:
    """GiB of memory and number of huge pages; None: nobody said."""

    memory_gib: float | None
    huge_pages: float | None


def _parse(printed: Printed) -> Memory:
    lines = read_sections(printed, bare="memory").get("memory") or ()
    told = dict(pairs(lines))
    total = whole(told.get("memtotal", ""))
    if not total or "hugepages_total" not in told or "hugepagesize" not in told:
        raise ParseError("no whole /proc/meminfo", remedy="cat /proc/meminfo on the node")
    return Memory(
        total_kib=total,
        available_kib=whole(told.get("memavailable", "")),
        swap_kib=whole(told.get("swaptotal", "")),
        huge_pages=whole(told["hugepages_total"]),
        huge_free=whole(told.get("hugepages_free", "")),
    )


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(number(raw, "expected_memory_gib"), number(raw, "expected_huge_pages"))


def _judge(seen: Memory, expected: Expected) -> Verdict:
    found: list[Finding] = []
    gib = seen.total_kib / 2**20
    if expected.memory_gib and gib < expected.memory_gib * (1 - _TOLERANCE):
        words = f"{gib:.0f} GiB of memory, {expected.memory_gib:g} expected"
        found.append(failed(words, remedy=_MISSING, code="host.memory.missing"))
    if expected.huge_pages is not None and (seen.huge_pages or 0) < expected.huge_pages:
        words = f"{seen.huge_pages or 0} huge pages, {expected.huge_pages:g} expected"
        remedy = "sysctl -w vm.nr_hugepages=N soon after boot, or hugepages=N for the kernel"
        found.append(failed(words, remedy=remedy, code="host.memory.huge-pages"))
    if seen.available_kib is not None and seen.available_kib < seen.total_kib * 0.1:
        words = f"only {seen.available_kib / 2**20:.0f} of {gib:.0f} GiB are available"
        remedy = "look for processes of an earlier job: ps aux --sort -rss | head"
        found.append(warned(words, remedy=remedy, code="host.memory.used"))
    compared = "" if expected.memory_gib else "; no expected size to compare with"
    return verdict(found, otherwise=f"{gib:.0f} GiB of memory{compared}")


def _alike(seen: Memory) -> Mapping[str, int | None]:
    # Firmware keeps a little more or less on each machine: compared to 1 % of a terabyte.
    return {"memory in 8 GiB": round(seen.total_kib / 2**23), "huge pages": seen.huge_pages}


def _facts(seen: Memory) -> Mapping[str, Any]:
    return {
        "memory_gib": round(seen.total_kib / 2**20, 1),
        "huge_pages": seen.huge_pages,
        "huge_pages_free": seen.huge_free,
        "swap_kib": seen.swap_kib,
    }


HOST_MEMORY = Check(
    name="host.memory",
    question="Has the node all its memory, and the huge pages that it should?",
    command=asking({"memory": "cat /proc/meminfo"}),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=told_by(r"/proc/meminfo", begins=r"## memory|MemTotal: +\d+ kB"),
    needs="the kernel's /proc/meminfo",
    expects=("expected_memory_gib", "expected_huge_pages"),
)
