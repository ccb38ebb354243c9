"""May a process of a job lock its memory and open its files, and is shared memory large enough?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.sections import asking, first_line, read_sections

_UNLIMITED = float("inf")
_MOUNT = "/dev/shm"  # noqa: S108 - shared memory, no file of ours
_LOCKS = (
    "`* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity for slurmd,"
    " sshd or the container runtime; without it RDMA fails with 'Cannot allocate memory'"
)
_FILES = "`* - nofile 1048576` in /etc/security/limits.conf, LimitNOFILE for the service"
_SHM = "mount -o remount,size=NNG /dev/shm; --shm-size for a container: NCCL and loaders use it"
_FEW_FILES = 16384  # ours: a rank opens a few thousand, its data loaders as many again


@dataclass(frozen=True, slots=True)
class Limits:
    """Locked memory in KiB and open files (infinite where unlimited); ``/dev/shm`` in KiB."""

    locked_kib: float
    files: float
    shm_kib: int | None
    shm_used_kib: int | None


def _parse(printed: Printed) -> Limits:
    sections = read_sections(printed)
    locked, files = _limit(first_line(sections, "locked")), _limit(first_line(sections, "files"))
    if locked is None or files is None:
        raise ParseError("no limits in the answer", remedy="ulimit -l; ulimit -n on the node")
    size, used = _shm(sections.get("shm") or ())
    return Limits(locked, files, size, used)


def _limit(text: str | None) -> float | None:
    if text == "unlimited":
        return _UNLIMITED
    return float(text) if text is not None and text.isdecimal() and len(text) < 20 else None


def _shm(lines: tuple[str, ...]) -> tuple[int | None, int | None]:
    """Size and used of ``df -Pk``; a directory that is no mount of its own is no shared memory."""
    for line in lines:
        words = line.split()
        sized = len(words) >= 6 and words[-5].isdecimal() and int(words[-5][:18]) > 0
        if sized and words[-1] == _MOUNT:
            return int(words[-5][:18]), int(words[-4][:18]) if words[-4].isdecimal() else None
    return None, None


def _judge(seen: Limits, shm_gib: float | None) -> Verdict:
    found: list[Finding] = []
    if seen.locked_kib != _UNLIMITED:
        words = f"a process may lock only {seen.locked_kib / 2**20:.2g} GiB of memory"
        found.append(warned(words, remedy=_LOCKS, code="host.limits.locked"))
    if seen.files < _FEW_FILES:
        words = f"a process may open only {seen.files:g} files"
        found.append(warned(words, remedy=_FILES, code="host.limits.files"))
    if seen.shm_kib is None:
        words = f"{_MOUNT} is no mount of its own"
        found.append(failed(words, remedy="mount -t tmpfs tmpfs /dev/shm", code="host.limits.shm"))
    else:
        found += _shared(seen, seen.shm_kib, shm_gib)
    return verdict(found, otherwise="locked memory unlimited, files and shared memory suffice")


def _shared(seen: Limits, size_kib: int, wanted_gib: float | None) -> list[Finding]:
    gib = size_kib / 2**20
    if wanted_gib is not None and gib < wanted_gib:
        words = f"{_MOUNT} has {gib:.1f} GiB, {wanted_gib:g} expected"
        return [failed(words, remedy=_SHM, code="host.limits.shm")]
    if (seen.shm_used_kib or 0) > size_kib * 0.8:
        words = f"{_MOUNT} is {100 * (seen.shm_used_kib or 0) / size_kib:.0f} % full"
        remedy = "files of a dead job: ls -la /dev/shm, remove what no process holds (fuser)"
        return [warned(words, remedy=remedy, code="host.limits.shm-full")]
    return []


def _alike(seen: Limits) -> Mapping[str, str | float | None]:
    return {
        "locked memory": "unlimited" if seen.locked_kib == _UNLIMITED else seen.locked_kib,
        "open files": "unlimited" if seen.files == _UNLIMITED else seen.files,
    }


def _facts(seen: Limits) -> Mapping[str, Any]:
    shm = None if seen.shm_kib is None else round(seen.shm_kib / 2**20, 2)
    return {**_alike(seen), "shm_gib": shm}


HOST_LIMITS = Check(
    name="host.limits",
    question="May jobs lock memory and open files, and is shared memory large enough?",
    command=asking(
        {"locked": "ulimit -l", "files": "ulimit -n", "shm": "df -Pk /dev/shm 2>/dev/null"}
    ),
    parse=_parse,
    expect=lambda raw: number(raw, "expected_shm_gib"),
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=told_by(r"ulimit -l", begins=r"## locked"),
    needs="df (coreutils)",
    expects=("expected_shm_gib",),
)
