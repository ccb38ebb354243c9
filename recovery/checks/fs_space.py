"""Is there room for files, and for more of them?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Level, Verdict, failed, unknown, verdict
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.nccl_size import size_bytes
from recovery.reading.sections import asking, read_sections

_ROW = re.compile(r"(\S.*?)\s+(\d+|-)\s+(\d+|-)\s+(-?\d+|-)\s+(\d+%|-)\s+(/.*)")
_TROUBLE = re.compile(r"df: '?(/[^':]*)'?: (.*)")
_FULL_PCT = 95.0
"""Source: imbue-ai/cluster-health@8f5964a; a profile may say ``disk_full_pct``."""
_NEARLY = 5.0  # per cent below that
_CLEAN = "du -xsh PATH/* | sort -h; old logs, core files, container images, dead checkpoints"
# Images and the kernel's own are full by nature, or have no size.
_SKIPPED = re.compile(r"/dev/loop\d+|squashfs|devtmpfs|efivarfs|none|udev|/snap/.*")


@dataclass(frozen=True, slots=True)
class Use:
    """One file system: KiB or inodes, and how full it is in per cent."""

    device: str
    path: str
    total: int
    free: int
    used_pct: int


@dataclass(frozen=True, slots=True)
class Space:
    """Uses by path, and what df could not read."""

    blocks: Mapping[str, Use]
    inodes: Mapping[str, Use]
    troubles: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """How full is full, and the least bytes free by path."""

    full_pct: float
    least_free: Mapping[str, int]


def _parse(printed: Printed) -> Space:
    sections = read_sections(printed, bare="space")
    troubles = []
    uses: dict[str, dict[str, Use]] = {"space": {}, "inodes": {}}
    for name, into in uses.items():
        for line in sections.get(name) or ():
            if match := _TROUBLE.match(line):
                troubles.append((match[1], match[2].strip()))
            elif (use := _use(line)) is not None:
                into.setdefault(use.path, use)
    if not uses["space"]:
        raise ParseError("df lists no file system", remedy="run df -Pk on the node")
    return Space(uses["space"], uses["inodes"], tuple(dict.fromkeys(troubles)))


def _use(line: str) -> Use | None:
    match = _ROW.fullmatch(line.strip())
    if match is None:
        if line.startswith("Filesystem") or "Mounted on" in line:
            return None
        raise ParseError(f"no line of df: {line[:60]!r}", remedy="run df -Pk on the node")
    device, total, _, free, pct, path = match.groups()
    if _SKIPPED.fullmatch(device) or not total.isdecimal() or not pct.endswith("%"):
        return None
    return Use(device, path, int(total[:20]), int(free[:20]) if free != "-" else 0, int(pct[:-1]))


def _expect(raw: Mapping[str, Any]) -> Expected:
    least = raw.get("least_free")
    sizes = {p: size_bytes(v) for p, v in least.items()} if isinstance(least, Mapping) else {}
    known = {str(path): size for path, size in sizes.items() if size is not None}
    return Expected(number(raw, "disk_full_pct") or _FULL_PCT, known)


def _judge(seen: Space, expected: Expected) -> Verdict:
    found = list(_full(seen.blocks, "full", expected.full_pct))
    found += _full(seen.inodes, "out of inodes", expected.full_pct)
    found += _least(seen, expected)
    for path, why in seen.troubles:
        remedy = "a server that is gone? umount -l and mount again when it is back"
        make = (
            failed if "tale" in why or "nput/output" in why or "not connected" in why else unknown
        )
        found.append(make(f"{path}: {why}", remedy=remedy, component=path, code="fs.space.trouble"))
    worst = max(seen.blocks.values(), key=lambda use: use.used_pct)
    return verdict(found, otherwise=f"{worst.path} is the fullest, {worst.used_pct} %")


def _full(uses: Mapping[str, Use], what: str, full_pct: float) -> Iterator[Finding]:
    for use in uses.values():
        if use.used_pct < full_pct - _NEARLY:
            continue
        level = Level.FAIL if use.used_pct >= full_pct else Level.WARN
        words = f"{use.path} is {use.used_pct} % {what}"
        yield Finding(level, words, _CLEAN, use.path, "fs.space.full")


def _least(seen: Space, expected: Expected) -> Iterator[Finding]:
    for path, size in expected.least_free.items():
        use = seen.blocks.get(path)
        if use is None:
            words = f"{path} is no mount of its own: its free space is not known"
            yield unknown(words, remedy="mount it, or name its mount", code="fs.space.no-mount")
        elif use.free * 1024 < size:
            words = f"{path} has {use.free / 2**20:.0f} GiB free, {size / 2**30:.0f} needed"
            yield failed(words, remedy=_CLEAN, component=path, code="fs.space.least")


def _facts(seen: Space) -> Mapping[str, Any]:
    return {"used_pct": {path: use.used_pct for path, use in seen.blocks.items()}}


FS_SPACE = Check(
    name="fs.space",
    question="Is there room on every file system, for files and for more of them?",
    command=asking({"space": "LC_ALL=C df -Pk 2>&1", "inodes": "LC_ALL=C df -Pi 2>&1"}, needs="df"),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=told_by(
        r"^df |df -Pk 2>&1", begins=r"## space|Filesystem +1(?:024|K)-blocks +Used +Available"
    ),
    needs="df (coreutils)",
    expects=("disk_full_pct", "least_free"),
)
