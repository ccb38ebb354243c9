"""What the inspector printed on one node, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recovery.errors import ParseError
from recovery.model.verdict import Finding, Level

T = TypeVar("T")

KNOWN_VERSION = 1
_REMEDY = "run the inspector on that node by hand, and look at what it prints"


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One file: ``identity`` is equal for equal content where it is not empty."""

    name: str
    size_bytes: int
    mtime_ns: int
    inode: int
    identity: str = ""


@dataclass(frozen=True, slots=True)
class RankSet:
    """Which ranks have their file here, and which the checkpoint as a whole needs."""

    kind: str
    have: frozenset[int]
    want: frozenset[int]


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding of the inspector; ``absent`` names the files it misses, when that is all."""

    finding: Finding
    rule: str
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint as one node sees it.

    ``seen`` is a digest over names, sizes, times and inodes: equal where two nodes look at the
    same files. ``alias`` says that its name tells no step (``last.ckpt``). ``place`` is the path
    asked for under which it lies, ``series`` the folder below that.
    """

    step: int | None
    level: Level
    path: str
    place: str = ""
    framework: str = "torch"
    components: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    ranks: RankSet | None = None
    alias: bool = False
    files: tuple[CheckpointFile, ...] = ()
    files_left_out: int = 0
    seen: str = ""

    @property
    def series(self) -> str:
        """The folder that holds this checkpoint and its elder ones, below the path asked for."""
        parent = self.path.rpartition("/")[0]
        return parent[len(self.place) :].strip("/") if parent.startswith(self.place) else ""

    @property
    def newest_s(self) -> float | None:
        """When its last file was written, by the node's clock."""
        return number(self.facts.get("newest"))

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files here."""
        return int(number(self.facts.get("bytes")) or 0)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A file that names the checkpoint to load, and what is wrong with it."""

    path: str
    text: str
    step: int | None
    problem: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path asked for, and the file system it is on; ``storage_known`` is false without one."""

    path: str
    exists: bool
    storage_known: bool = False
    source: str = ""
    fstype: str = ""
    inode: int = 0
    free_bytes: int = 0
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All that one node said. ``power`` is ``full``, or ``shell`` where python3 is missing."""

    now_s: float
    checkpoints: tuple[Checkpoint, ...]
    places: tuple[Place, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    findings: tuple[Finding, ...] = ()
    errors: tuple[str, ...] = ()
    power: str = "full"
    deep: bool = False


def number(value: object) -> float | None:
    """A plain number, or None."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def fold_numbers(numbers: frozenset[int] | set[int]) -> str:
    """``0-3,7`` for people."""
    parts: list[list[int]] = []
    for n in sorted(numbers):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def read_inspection(text: str) -> Inspection:
    """Reads the document of ``payloads/checkpoint_inspector``; lines before it are passed over.

    Raises:
        ParseError: no document, one that was cut short, or one of another version.
    """
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise ParseError(f"no inspection: {text.strip()[:120]!r}", remedy=_REMEDY)
    try:
        raw = json.loads(lines[-1])
    except (ValueError, RecursionError) as error:
        words = f"an inspection that was cut short: {lines[-1][-60:]!r}"
        raise ParseError(words, remedy=_REMEDY) from error
    if not isinstance(raw, dict) or raw.get("end") is not True:
        raise ParseError(f"no whole inspection: {lines[-1][:120]!r}", remedy=_REMEDY)
    if raw.get("inspector") != KNOWN_VERSION:
        words = f"an inspection of version {raw.get('inspector')!r}, not {KNOWN_VERSION}"
        raise ParseError(words, remedy=_REMEDY)
    return _trusted(_inspection, raw)


def _trusted(read: Callable[[Any], T], raw: Any) -> T:
    try:
        return read(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        words = f"an inspection with a part missing: {type(error).__name__} {error}"
        raise ParseError(words, remedy=_REMEDY) from error


def _inspection(raw: Mapping[str, Any]) -> Inspection:
    places = tuple(_place(p) for p in raw["paths"])
    return Inspection(
        now_s=float(raw["now"]),
        checkpoints=tuple(_checkpoint(c, places) for c in raw["checkpoints"]),
        places=places,
        pointers=tuple(_pointer(p) for p in raw["pointers"]),
        findings=tuple(_finding(f) for f in raw["findings"]),
        errors=tuple(f"{e['path']}: {e['error']}" for e in raw["errors"]),
        power=str(raw["power"]),
        deep=bool(raw["deep"]),
    )


def _checkpoint(raw: Mapping[str, Any], places: tuple[Place, ...]) -> Checkpoint:
    path = str(raw["path"])
    roots = [p.path for p in places if path == p.path or path.startswith(p.path.rstrip("/") + "/")]
    return Checkpoint(
        step=None if raw["step"] is None else int(raw["step"]),
        level=Level[str(raw["level"]).upper()],
        path=path,
        place=max(roots, key=len, default=""),
        framework=str(raw["framework"]),
        components=tuple(str(c) for c in raw["components"]),
        problems=tuple(_problem(f) for f in raw["findings"]),
        facts=dict(raw["facts"]),
        ranks=_ranks(raw["ranks"]),
        alias=bool(raw["alias"]),
        files=tuple(_file(f) for f in raw["files"]),
        files_left_out=int(raw["files_left_out"]),
        seen=str(raw["seen"]),
    )


def _problem(raw: Mapping[str, Any]) -> Problem:
    return Problem(_finding(raw), str(raw["code"]), tuple(str(a) for a in raw.get("absent", ())))


def _finding(raw: Mapping[str, Any]) -> Finding:
    level = Level[str(raw["level"]).upper()]
    remedy = str(raw["remedy"]) or ("" if level is Level.PASS else "look at it by hand")
    code = f"checkpoint.{str(raw['code']).lower()}"
    return Finding(level, str(raw["finding"]), remedy, str(raw["component"]), code)


def _ranks(raw: Mapping[str, Any] | None) -> RankSet | None:
    if raw is None:
        return None
    return RankSet(str(raw["kind"]), _unfold(str(raw["have"])), _unfold(str(raw["want"])))


def _unfold(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _file(raw: Mapping[str, Any]) -> CheckpointFile:
    return CheckpointFile(
        str(raw["name"]),
        int(raw["size"]),
        int(raw["mtime_ns"]),
        int(raw["inode"]),
        str(raw.get("id", "")),
    )


def _pointer(raw: Mapping[str, Any]) -> Pointer:
    step = None if raw["step"] is None else int(raw["step"])
    return Pointer(str(raw["path"]), str(raw["text"]), step, str(raw["problem"]), str(raw["words"]))


def _place(raw: Mapping[str, Any]) -> Place:
    storage = raw["storage"]
    if storage is None:
        return Place(path=str(raw["path"]), exists=bool(raw["exists"]))
    return Place(
        path=str(raw["path"]),
        exists=bool(raw["exists"]),
        storage_known=True,
        source=str(storage["source"]),
        fstype=str(storage["fstype"]),
        inode=int(storage["inode"]),
        free_bytes=int(storage["free_bytes"]),
        read_only=bool(storage["read_only"]),
    )
