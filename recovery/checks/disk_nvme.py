"""Are all NVMe disks there, and healthy?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Verdict, failed, single, unknown, verdict
from recovery.reading.content import told_by
from recovery.reading.disk_findings import of_disks
from recovery.reading.disks import Disk, read_disks
from recovery.reading.expecting import number
from recovery.reading.sections import looping

_LOST = "lspci for the controller, kernel log for nvme resets; reseat it; power-cycle (cold)"


def _judge(seen: tuple[Disk, ...], n_expected: float | None) -> Verdict:
    disks = tuple(d for d in seen if "*" not in d.name)  # a pattern that fits nothing stays itself
    if not disks and n_expected is None:
        remedy = "set expected_nvme: 0 where there should be none; else ls /dev/nvme*"
        return single(unknown("no NVMe disk here", remedy=remedy, code="disk.nvme.none"))
    found = of_disks(disks)
    if n_expected is not None and len(disks) < n_expected:
        words = f"{len(disks)} of {n_expected:g} NVMe disks"
        found.append(failed(words, remedy=_LOST, code="disk.nvme.missing"))
    return verdict(found, otherwise=f"{len(disks)} NVMe disks, none complains")


def _facts(seen: tuple[Disk, ...]) -> Mapping[str, Any]:
    disks = [d for d in seen if "*" not in d.name]
    return {"nvme_disks": len(disks), "worn_pct": {d.name: d.worn_pct for d in disks}}


DISK_NVME = Check(
    name="disk.nvme",
    question="Are all NVMe disks there, and healthy?",
    command=looping("/dev/nvme[0-9]*n1", 'nvme smart-log "$d" 2>&1', needs="nvme"),
    parse=read_disks,
    expect=lambda raw: number(raw, "expected_nvme"),
    judge=_judge,
    facts=_facts,
    alike=lambda seen: {"NVMe disks": sum("*" not in d.name for d in seen)},
    recognises=told_by(
        "nvme smart-log",
        begins=r"## /dev/nvme|Smart Log for NVME device|nvme: (?:command )?not found",
    ),
    needs_root=True,
    needs="nvme (package nvme-cli)",
    expects=("expected_nvme",),
)
