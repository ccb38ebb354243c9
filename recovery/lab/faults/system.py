"""Faults of the system: the clock, the disk, a command that hangs, damaged checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recovery.lab.fault import Fault
from recovery.lab.hardware import Machine

_YEARS = 11 * 365 * 86400


def _reset_clock(machine: Machine, value: str) -> Machine:
    return replace(machine, clock_offset_s=-int(value))


def _late_date(value: str) -> Mapping[str, str]:
    return {"date": f'#!/bin/sh\nexec /bin/date -d "-{int(value)} seconds" "$@"\n'}


def _fill_disk(machine: Machine, value: str) -> Machine:
    return replace(machine, disk_used_percent=int(value))


def _full_df(value: str) -> Mapping[str, str]:
    used = 1_823_514_044 * int(value) // 100
    free = 1_823_514_044 - used
    return {
        "df": "#!/bin/sh\n# A disk without room, as df -P -k says it.\n"
        "echo 'Filesystem     1024-blocks       Used Available Capacity Mounted on'\n"
        f"echo '/dev/nvme0n1p2  1823514044 {used} {free:9d}     {value}% /'\n"
    }


def _hang(value: str) -> Mapping[str, str]:
    return {value: "#!/bin/sh\nexec sleep 86400\n"}


def _tear_newest(home: Path) -> None:
    newest = _checkpoints(home)[-1:]
    for folder in newest:
        for name in ("optimizer.pt", "model.safetensors"):
            file = folder / name
            if file.exists():
                content = file.read_bytes()
                file.write_bytes(content[: len(content) // 2])
                return


def _drop_newest(home: Path) -> None:
    for folder in _checkpoints(home)[-1:]:
        shutil.rmtree(folder)


def _checkpoints(home: Path) -> list[Path]:
    found = (home / "ckpt").glob("checkpoint-*")
    return sorted(found, key=lambda folder: int(folder.name.rpartition("-")[2]))


CLOCK_RESET = Fault(
    name="clock-reset",
    about="the clock lost years (a dead battery)",
    default=str(_YEARS),
    value_help="seconds behind",
    change=_reset_clock,
    tools=_late_date,
)

DISK_FULL = Fault(
    name="disk-full",
    about="no room on the node's disk: df says so, and the job's saves fail with ENOSPC",
    default="100",
    value_help="percent used",
    change=_fill_disk,
    tools=_full_df,
    log="0.0 EXT4-fs warning (device nvme0n1p2): ext4_end_bio:343: I/O error 3 writing to inode",
)

HANG = Fault(
    name="hang",
    about="a command never ends",
    default="nvidia-smi",
    value_help="the command",
    tools=_hang,
)

TORN_CHECKPOINT = Fault(
    name="torn-checkpoint",
    about="the newest checkpoint is cut in the middle of a file",
    damage=_tear_newest,
)

CHECKPOINT_BEHIND = Fault(
    name="checkpoint-behind",
    about="the newest checkpoint is not there: this node is one save behind",
    damage=_drop_newest,
)
