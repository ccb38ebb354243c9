"""The kept outputs of one kind of tool, and how they are judged; shared by the case tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recovery.checks.dcgm_diag import DCGM_DIAG
from recovery.checks.driver_match import DRIVER_MATCH
from recovery.checks.gpu_count import GPU_COUNT
from recovery.checks.gpu_ecc import GPU_ECC
from recovery.checks.gpu_fabric import GPU_FABRIC
from recovery.checks.gpu_memory import GPU_MEMORY
from recovery.checks.gpu_mig import GPU_MIG
from recovery.checks.gpu_nvlink import GPU_NVLINK
from recovery.checks.gpu_pcie import GPU_PCIE
from recovery.checks.gpu_persistence import GPU_PERSISTENCE
from recovery.checks.gpu_power import GPU_POWER
from recovery.checks.gpu_remap import GPU_REMAP
from recovery.checks.gpu_state import GPU_STATE
from recovery.checks.gpu_thermal import GPU_THERMAL
from recovery.checks.gpu_throttle import GPU_THROTTLE
from recovery.checks.gpu_topology import GPU_TOPOLOGY
from recovery.engine.judging import AnyCheck, judge_text
from recovery.model.output import Printed
from recovery.model.verdict import Level, Verdict

CASES = Path(__file__).parents[1] / "cases"
STATUS = {
    "pass": Level.PASS,
    "warn": Level.WARN,
    "fail": Level.FAIL,
    "unreadable": Level.UNKNOWN,
}
CHECKS: tuple[AnyCheck, ...] = (
    DCGM_DIAG,
    DRIVER_MATCH,
    GPU_COUNT,
    GPU_ECC,
    GPU_FABRIC,
    GPU_MEMORY,
    GPU_MIG,
    GPU_NVLINK,
    GPU_PCIE,
    GPU_PERSISTENCE,
    GPU_POWER,
    GPU_REMAP,
    GPU_STATE,
    GPU_THERMAL,
    GPU_THROTTLE,
    GPU_TOPOLOGY,
)


@dataclass(frozen=True)
class Case:
    """One output, with what must be read from it and concluded."""

    id: str
    text: str
    command: str
    exit_code: int
    context: Mapping[str, Any]
    reading: Mapping[str, Any]
    status: Level

    @property
    def printed(self) -> Printed:
        return Printed(self.text, exit_status=self.exit_code, command=self.command)


def cases(kind: str) -> list[Case]:
    folder = CASES / kind
    return [
        Case(
            id=entry["id"],
            text=(folder / entry["file"]).read_bytes().decode("utf-8", "backslashreplace"),
            command=entry["command"],
            exit_code=entry["exit_code"],
            context=entry["context"],
            reading=entry["reading"],
            status=STATUS[entry["status"]],
        )
        for entry in yaml.safe_load((folder / "index.yaml").read_text())
    ]


def judged(case: Case, **changes: Any) -> tuple[Verdict, Mapping[str, Any]]:
    values = {
        "text": case.text,
        "command": case.command,
        "exit_status": case.exit_code,
        **changes,
    }
    return judge_text(CHECKS, Printed(**values), case.context)


def covers(facts: Any, wanted: Any) -> bool:
    """Claims that all that is wanted is among the facts; empty things are alike."""
    if not facts and not wanted and isinstance(wanted, list | dict):
        return True
    if isinstance(wanted, dict) and isinstance(facts, Mapping):
        return all(key in facts and covers(facts[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], dict):
        return len(facts) == len(wanted) and all(map(covers, facts, wanted))
    return bool(facts == wanted)


def misses(case: Case) -> list[str]:
    """What is not as the case says, in words."""
    found, facts = judged(case)
    wrong = [f"{case.id}: level {found.level.word}, not {case.status.word}: {found.worst}"]
    wrong = [] if found.level is case.status else wrong
    return wrong + [
        f"{case.id}: {key} is {facts.get(key)!r}, not {value!r}"
        for key, value in case.reading.items()
        if key not in facts or not covers(facts[key], value)
    ]
