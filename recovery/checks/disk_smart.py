"""What do the disks say of their own health?"""

from __future__ import annotations

from recovery.model.check import Check
from recovery.model.verdict import Verdict, single, unknown, verdict
from recovery.reading.content import told_by
from recovery.reading.disk_findings import of_disks
from recovery.reading.disks import Disk, read_disks
from recovery.reading.sections import looping


def _judge(seen: tuple[Disk, ...], expected: None) -> Verdict:
    if not seen:
        remedy = "smartctl --scan as root; a diskless node lists disk.smart under not_applicable"
        return single(unknown("smartctl finds no disk", remedy=remedy, code="disk.smart.none"))
    return verdict(of_disks(seen), otherwise=f"{len(seen)} disks are well")


DISK_SMART = Check(
    name="disk.smart",
    question="What do the disks say of their own health?",
    command=looping(
        "$(smartctl --scan | cut -d' ' -f1)", 'smartctl -H -A "$d" 2>&1', needs="smartctl"
    ),
    parse=read_disks,
    expect=lambda raw: None,
    judge=_judge,
    facts=lambda seen: {"disks": {d.name: d.healthy for d in seen}},
    recognises=told_by("smartctl", begins=r"smartctl (?:pre-)?\d|smartctl: (?:command )?not found"),
    needs_root=True,
    needs="smartctl (package smartmontools)",
)
