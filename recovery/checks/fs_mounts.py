"""Is every file system mounted that should be, and writable?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import wanted
from recovery.reading.sections import asking, read_sections

_ABSENT = "systemctl status of its mount unit; mount it by hand to see why; is its server up?"
_READ_ONLY = (
    "an error made the kernel mount it read-only: read the kernel log, save what you need, fsck on"
    " the unmounted device, reboot; name it under read_only_mounts if it is meant so"
)
_REAL = re.compile(
    r"(?:ext[234]|xfs|btrfs|zfs|f2fs|vfat|nfs\d?|lustre|gpfs|beegfs(?:_nodev)?|wekafs|ceph"
    r"|fuse\.(?!lxcfs|portal|gvfs).+|cifs|bcachefs|ocfs2|gfs2)"
)
_NO_WRITES = (
    "/boot",
    "/efi",
    "/snap",
    "/run/",
    "/usr/",
    "/nix",
    "/etc/",
)  # often read-only rightly
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of ``/proc/mounts``. Source: proc(5), fstab(5)."""

    device: str
    path: str
    kind: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Expected:
    """Paths that must be mounted, and those that may be read-only."""

    paths: tuple[str, ...]
    read_only: tuple[str, ...]


def _parse(printed: Printed) -> tuple[Mount, ...]:
    lines = read_sections(printed, bare="mounts").get("mounts") or ()
    mounts = tuple(_mount(line) for line in lines)
    if not any(m.path == "/" for m in mounts):
        raise ParseError("no root among the mounts", remedy="cat /proc/mounts on the node")
    return mounts


def _mount(line: str) -> Mount:
    words = line.split()
    if len(words) != 6 or not words[1].startswith("/"):
        raise ParseError(f"no mount: {line[:60]!r}", remedy="cat /proc/mounts on the node")
    device, path, kind, options = (_plain(word) for word in words[:4])
    return Mount(device, path, kind, "ro" in options.split(","))


def _plain(word: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 8)), word)


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(wanted(raw, "expected_mounts"), wanted(raw, "read_only_mounts"))


def _judge(seen: tuple[Mount, ...], expected: Expected) -> Verdict:
    # What is mounted last on a path is what a process sees there.
    now = {mount.path: mount for mount in seen}
    found: list[Finding] = []
    for path in expected.paths:
        if (path.rstrip("/") or "/") not in now:
            words = f"{path} is not mounted"
            found.append(failed(words, remedy=_ABSENT, component=path, code="fs.mounts.absent"))
    found += [_closed(mount, expected) for mount in now.values() if _is_closed(mount, expected)]
    real = sum(bool(_REAL.fullmatch(mount.kind)) for mount in now.values())
    compared = "" if expected.paths else "; expected_mounts names none to look for"
    return verdict(found, otherwise=f"{real} file systems, none read-only by fault{compared}")


def _is_closed(mount: Mount, expected: Expected) -> bool:
    return (
        mount.read_only
        and mount.path not in expected.read_only
        and (bool(_REAL.fullmatch(mount.kind)) or mount.path in expected.paths)
    )


def _closed(mount: Mount, expected: Expected) -> Finding:
    words = f"{mount.path} ({mount.kind} on {mount.device[:60]}) is read-only"
    rightly = mount.path.startswith(_NO_WRITES) and mount.path not in expected.paths
    make = warned if rightly else failed
    return make(words, remedy=_READ_ONLY, component=mount.path, code="fs.mounts.read-only")


def _shared(seen: tuple[Mount, ...]) -> Mapping[str, str | None]:
    """What nodes of one kind mount from the network, by path."""
    net = re.compile(r"nfs\d?|lustre|gpfs|beegfs.*|wekafs|ceph|cifs")
    return {f"mount {m.path}": f"{m.kind} {m.device}" for m in seen if net.fullmatch(m.kind)}


def _facts(seen: tuple[Mount, ...]) -> Mapping[str, Any]:
    return {
        "mounts": {m.path: m.kind for m in seen if _REAL.fullmatch(m.kind)},
        "read_only": [m.path for m in seen if m.read_only and _REAL.fullmatch(m.kind)],
    }


FS_MOUNTS = Check(
    name="fs.mounts",
    question="Is every file system mounted that should be, and writable?",
    command=asking({"mounts": "cat /proc/mounts"}),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_shared,
    recognises=told_by(
        r"/proc/mounts", begins=r"## mounts|(?:sysfs|proc|udev|devtmpfs) /\w+ \w+ r[wo],"
    ),
    needs="the kernel's /proc/mounts",
    expects=("expected_mounts", "read_only_mounts"),
)
