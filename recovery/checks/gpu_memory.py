"""Is each GPU's memory there, and free: did a crashed job leave processes or held memory?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.smi import claims, read_smi, reader_of
from recovery.reading.smi_findings import cut_short, silent_on, unanswered, where
from recovery.reading.smi_words import Form, Gpu, Process, Snapshot

_NAMES = ("memory.",)
_KILL = "find its owner (ps -o pid,user,lstart,cmd -p <pid>), end it, ask again"
_HELD = "ps and fuser -v /dev/nvidia*; if nothing holds it, reset the GPU or reboot"
_TOTAL_SHARE = 0.97
_FULL_SHARE = 0.5
_IDLE_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Expected:
    """Memory per GPU, and whether the node has to be idle now."""

    memory_mib: int | None
    idle: bool


def _expect(raw: Mapping[str, Any]) -> Expected:
    value = raw.get("memory_mib")
    return Expected(value if isinstance(value, int) else None, raw.get("expect_idle") is True)


def _parse(printed: Printed) -> Snapshot:
    seen = read_smi(printed)
    return seen if seen.form is Form.APPS else reader_of(*_NAMES, what="memory")(printed)


def _recognises(printed: Printed) -> bool:
    if claims(*_NAMES)(printed):
        return True
    try:
        return "compute-apps" in printed.command or read_smi(printed).form is Form.APPS
    except ParseError:
        return False


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = [*cut_short(seen), *unanswered(seen, "memory.used", "used memory")]
    for gpu in seen.gpus:
        found += [*_size(seen, gpu, expected.memory_mib), *_use(seen, gpu, expected)]
    processes = seen.processes or ()
    if expected.idle and processes:
        found += _left_over(seen, processes)
    return verdict(found, otherwise=_well(seen, expected))


def _well(seen: Snapshot, expected: Expected) -> str:
    n_processes = "unknown" if seen.processes is None else str(len(seen.processes))
    if not seen.gpus:
        return f"{n_processes} processes on the GPUs"
    used = [n for gpu in seen.gpus if (n := gpu.count("memory.used")) is not None]
    size = "" if expected.memory_mib else "; the profile names no size"
    most = f"{max(used)} MiB used at most" if used else "use not told"
    return f"{most}{silent_on(seen, 'memory.used')}, processes: {n_processes}{size}"


def _size(seen: Snapshot, gpu: Gpu, expected_mib: int | None) -> list[Finding]:
    total = gpu.count("memory.total")
    if total is None or (total and (expected_mib is None or total >= expected_mib * _TOTAL_SHARE)):
        return []
    words = f"{where(seen, gpu.label)}: {total} MiB of memory"
    words += f", {expected_mib} MiB expected" if expected_mib else ""
    remedy = "read the kernel log for Xid, reset the GPU or reboot; if it stays, ask for an RMA"
    return [failed(words, remedy=remedy, component=gpu.label, code="gpu.memory.size")]


def _use(seen: Snapshot, gpu: Gpu, expected: Expected) -> list[Finding]:
    used, total = gpu.count("memory.used"), gpu.count("memory.total")
    if used is None or not total:
        return []
    owners = [p for p in seen.processes or () if p.gpu == gpu.label]
    place = where(seen, gpu.label)
    words = f"{place}: {used} of {total} MiB used"
    if used > total * _FULL_SHARE or (expected.idle and used > total * _IDLE_SHARE):
        if owners:
            who = f" by {_named(owners)}"
        else:
            who = " and no process is to be seen" if seen.processes is not None else ""
        make = failed if expected.idle else warned
        remedy = _KILL if owners else _HELD
        code = "gpu.memory.held" if owners or seen.processes is None else "gpu.memory.orphan"
        return [make(words + who, remedy=remedy, component=gpu.label, code=code)]
    return []


def _named(owners: Sequence[Process]) -> str:
    return ", ".join(f"pid {p.pid} {p.name}".rstrip() for p in owners[:3])


def _left_over(seen: Snapshot, processes: Sequence[Process]) -> list[Finding]:
    return [
        failed(
            f"{where(seen, p.gpu)}: left-over process {_named([p])} ({p.memory_mib or '?'} MiB)",
            remedy=_KILL,
            component=p.gpu,
            code="gpu.memory.left-over",
        )
        for p in processes
    ]


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    if seen.gpus:
        found["memory_used_mib"] = {g.label: g.count("memory.used") for g in seen.gpus}
    if seen.processes is not None:
        found["processes"] = len(seen.processes)
    return found


GPU_MEMORY = Check(
    name="gpu.memory",
    question="Is each GPU's memory there, and free of what a crashed job left?",
    command="nvidia-smi -q",
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=_recognises,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("memory_mib", "expect_idle"),
    timeout_s=90.0,
)
