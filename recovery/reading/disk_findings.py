"""Findings about disks that the checks of smartctl and of nvme word alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recovery.model.verdict import Finding, failed, unknown, warned
from recovery.reading.disks import Disk

_REPLACE = "copy what you need, replace the disk; read its own log (smartctl -x, nvme error-log)"
_WATCH = "plan its replacement; `recover baseline diff` shows whether it grows"
_WORN_PCT = 90
_BITS = (
    (0x01, "its spare blocks are used up"),
    (0x02, "it is too hot or too cold"),
    (0x04, "it is no longer reliable"),
    (0x08, "it is read-only"),
    (0x10, "the backup of its cache has failed"),
)
"""Source: NVM Express base specification 1.4, SMART / Health Information log, byte 0."""


def of_disks(disks: Sequence[Disk]) -> list[Finding]:
    """All findings about the disks; a disk that could not be asked is UNKNOWN."""
    return [finding for disk in disks for finding in _of_disk(disk)]


def _of_disk(disk: Disk) -> Iterator[Finding]:
    def bad(words: str) -> Finding:
        return failed(f"{disk.name}: {words}", remedy=_REPLACE, component=disk.name)

    def weak(words: str) -> Finding:
        return warned(f"{disk.name}: {words}", remedy=_WATCH, component=disk.name)

    if disk.trouble:
        remedy = "ask as root; smartctl -d TYPE for disks behind a RAID controller"
        yield unknown(f"{disk.name}: {disk.trouble}", remedy=remedy, component=disk.name)
        return
    if disk.healthy is False:
        yield bad("it says itself that it fails")
    yield from (bad(words) for bit, words in _BITS if (disk.warning or 0) & bit)
    yield from (bad(f"{name} is below its threshold") for name in disk.failing)
    if disk.media_errors:
        yield weak(f"{disk.media_errors} errors of its medium")
    yield from (weak(f"{name} {n}") for name, n in (disk.sectors or {}).items() if n)
    if (disk.worn_pct or 0) >= _WORN_PCT:
        yield weak(f"{disk.worn_pct} % of its rated writes are used")
    if disk.spare_pct is not None and disk.spare_pct <= (disk.spare_least_pct or 0):
        yield bad(f"{disk.spare_pct} % spare blocks left")
