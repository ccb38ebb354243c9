"""``nvidia-smi -q`` as text, full or by ``-d``, old and new layout, whole or filtered by grep.

The layout is read by indentation and by name, never by the column of the colon: drivers up to
51x put it in column 43, later ones in column 56.

Source: outputs of drivers 450 to 610; nvidia-smi(1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from recovery.errors import ParseError
from recovery.reading import cell
from recovery.reading.smi_names import of_query
from recovery.reading.smi_words import Form, Gpu, Process, Snapshot

_BLOCK = re.compile(r"^GPU ([0-9A-Fa-f]{1,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])(?:\s*:.*)?$")
_Key = tuple[int, str]
_MOST_GPUS = 512
_COLON = re.compile(r"\s:(?: |$)")
_ATTACHED = re.compile(r"^Attached GPUs\s+: ?(\d+)\s*$")
_BANNER = re.compile(r"^=+\s*NVSMI LOG\s*=+\s*$")
_DEPRECATED = re.compile(r"\[Deprecated.*$")
_REMEDY = "run nvidia-smi -q on the node by hand; it may take a minute with a sick GPU"
# What one GPU may have and its neighbour need not.
_LOOSE = ("processes", "mig device", "clocks event reasons counters", "capabilities")
_SELECTED = {
    "ECC": "ecc",
    "ROW_REMAPPER": "remapped_rows.",
    "TEMPERATURE": "temperature.",
    "POWER": "power.",
    "MEMORY": "memory.",
    "PAGE_RETIREMENT": "retired_pages.",
}


@dataclass(frozen=True, slots=True)
class _Outline:
    """Of each line of a block where it stands, and our name for it."""

    paths: tuple[tuple[str, ...], ...]
    names: tuple[str | None, ...]
    seen: frozenset[tuple[str, ...]]


@lru_cache(maxsize=512)  # the GPUs of a node, and its peers, print the same lines but for values
def _outline(keys: tuple[_Key, ...]) -> _Outline:
    """What indentation and names alone tell."""
    paths: list[tuple[str, ...]] = []
    stack: list[tuple[int, tuple[str, ...]]] = []
    for indent, name in keys:
        while stack and stack[-1][0] >= indent:
            stack.pop()
        path = (*stack[-1][1], name) if stack else (name,)
        stack.append((indent, path))
        paths.append(path)
    return _Outline(tuple(paths), tuple(map(of_query, paths)), frozenset(paths))


@dataclass(slots=True)
class _Block:
    """One GPU: its lines as key and value (None: a section), read when all of them are there."""

    bus: str
    rows: list[tuple[_Key, str | None]] = field(default_factory=list)
    top: int | None = None  # indentation of its outermost lines
    tops: set[str] = field(default_factory=set)
    outline: _Outline = _Outline((), (), frozenset())
    entries: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    @property
    def seen(self) -> frozenset[tuple[str, ...]]:
        return self.outline.seen

    def begins_again(self, key: _Key) -> bool:
        """Claims that an outermost name comes a second time: the next GPU, without a headline."""
        indent, name = key
        if self.top is not None and indent > self.top:
            return False
        self.top = indent
        again = name in self.tops
        self.tops.add(name)
        return again

    def read(self) -> None:
        self.outline = _outline(tuple(key for key, _ in self.rows))
        placed = zip(self.outline.paths, self.rows, strict=True)
        self.entries = [(path, value) for path, (_, value) in placed if value is not None]


def _entry_in(line: str) -> tuple[str, str] | None:
    """The name and the value of ``Name   : value``; a colon inside a name has no blank before."""
    before, colon, after = line.partition(" : ")
    if not colon:  # rarer: nothing behind the colon, or another blank before it
        match = _COLON.search(line) if ":" in line else None
        if match is None:
            return None
        before, after = line[: match.start()], line[match.end() :]
    name = before.strip()
    return (name, after.strip()) if name else None


def looks_like_query(lines: Sequence[str]) -> bool:
    """Claims that the lines are a ``-q`` text or a part of one."""
    for line in lines[:4000]:
        if _BANNER.match(line) or _BLOCK.match(line) or _ATTACHED.match(line):
            return True
    entries = sum(1 for line in lines[:400] if line.startswith("    ") and _entry_in(line))
    return entries >= 3


def read_query(lines: Sequence[str], *, command: str = "", whole_end: bool = True) -> Snapshot:
    """One snapshot; GPUs are labelled GPU0.. in the order of their blocks.

    Raises:
        ParseError: the header is there and not one GPU.
    """
    head, blocks = _split(lines)
    attached = _attached(head)
    if not blocks:
        if attached == 0:
            return Snapshot(form=Form.QUERY, attached=0)
        raise ParseError(
            "nvidia-smi -q names no GPU: the text is cut short or is something else",
            remedy=_REMEDY,
        )
    gpus = tuple(_gpu(index, block) for index, block in enumerate(blocks))
    if not any(gpu.values for gpu in gpus):
        raise ParseError("no value that nvidia-smi -q prints is in it", remedy=_REMEDY)
    partial = bool(re.search(r"\s(-i|--id)[ =]", command))
    return Snapshot(
        form=Form.QUERY,
        gpus=gpus,
        attached=None if partial else attached,
        driver=_head_value(head, "kmd version", "driver version"),
        cuda=_head_value(head, "cuda umd version", "cuda version"),
        processes=_processes(blocks),
        cut=_why_cut(gpus, blocks, None if partial else attached, command)
        or _unfinished(lines, blocks, whole_end=whole_end),
    )


def _split(lines: Sequence[str]) -> tuple[dict[str, str], list[_Block]]:
    head: dict[str, str] = {}
    blocks: list[_Block] = []
    headed = any(line.startswith("GPU ") and _BLOCK.match(line) for line in lines)
    for raw in lines:
        key, value, line = _parts(raw)
        opened = _BLOCK.match(line) if line.startswith("GPU ") else None
        if opened:
            blocks.append(_Block(cell.bus_id(opened[1])))
        elif line == "--" and not headed:
            blocks.append(_Block(""))
        elif key[0] and blocks and headed:
            blocks[-1].rows.append((key, value))
        elif key[0] and not headed:
            _headless(key, value, blocks)
        else:
            _header(line, head)
    if len(blocks) > _MOST_GPUS:
        raise ParseError(f"{len(blocks)} GPUs are not one node's answer", remedy=_REMEDY)
    for block in blocks:
        block.read()
    return head, [block for block in blocks if block.entries or headed]


@lru_cache(maxsize=8192)
def _parts(raw: str) -> tuple[_Key, str | None, str]:
    """Indentation and name in lower case; value (None: a section); the line without tabs."""
    line = (raw.expandtabs(4) if "\t" in raw else raw).rstrip()
    entry = _entry_in(line)
    name, value = entry or (line.strip(), None)
    return (len(line) - len(line.lstrip()), name.lower()), value, line


def _headless(key: _Key, value: str | None, blocks: list[_Block]) -> None:
    if not blocks:
        blocks.append(_Block(""))
    if blocks[-1].begins_again(key):
        blocks.append(_Block(""))
        blocks[-1].begins_again(key)
    blocks[-1].rows.append((key, value))


def _header(line: str, head: dict[str, str]) -> None:
    entry = _entry_in(line)
    if entry:
        head.setdefault(entry[0].lower(), _DEPRECATED.sub("", entry[1]).strip())


def _head_value(head: Mapping[str, str], *names: str) -> str | None:
    values = (head.get(name, "") for name in names)
    return next((v for v in values if v and not cell.is_absent(v)), None)


def _attached(head: Mapping[str, str]) -> int | None:
    return cell.whole(head.get("attached gpus", ""))


def _gpu(index: int, block: _Block) -> Gpu:
    values: dict[str, str] = {}
    printed: dict[str, str] = {}
    outline = block.outline
    for path, name, (_, value) in zip(outline.paths, outline.names, block.rows, strict=True):
        if name and value is not None and name not in values:
            values[name] = value
            printed[name] = " / ".join(path)
    if block.bus:
        values["pci.bus_id"] = block.bus
    n_mig = sum(
        1 for path, _ in block.entries if path[:1] == ("mig device",) and path[1:] == ("index",)
    )
    return Gpu(f"GPU{index}", values, printed, mig_devices=n_mig)


def _processes(blocks: Sequence[_Block]) -> tuple[Process, ...] | None:
    found: list[Process] = []
    spoken = False
    for index, block in enumerate(blocks):
        for path, value in block.entries:
            if path[0] != "processes":
                continue
            spoken = True
            if path[-1] == "process id":
                found.append(Process(f"GPU{index}", cell.whole(value), "", None))
            elif found and path[-1] == "name":
                found[-1] = Process(found[-1].gpu, found[-1].pid, value, found[-1].memory_mib)
            elif found and path[-1] == "used gpu memory":
                last = found[-1]
                found[-1] = Process(last.gpu, last.pid, last.name, cell.whole(value))
    return tuple(found) if spoken else None


def _why_cut(
    gpus: Sequence[Gpu], blocks: Sequence[_Block], attached: int | None, command: str
) -> str:
    if attached is not None and len(gpus) != attached:
        return f"the text promises {attached} GPUs and describes {len(gpus)}"
    if len(blocks) > 1:
        common = frozenset.intersection(*(_skeleton(block.seen) for block in blocks[:-1]))
        missing = common - _skeleton(blocks[-1].seen)
        if missing:
            name = " / ".join(min(missing))
            return f"{gpus[-1].label}, the last one, lacks {len(missing)} lines ({name}...)"
    return _lacks_selected(gpus[-1], command)


@lru_cache(maxsize=512)
def _skeleton(seen: frozenset[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    return frozenset(path for path in seen if not path[0].startswith(_LOOSE))


def _lacks_selected(gpu: Gpu, command: str) -> str:
    match = re.search(r"\s(?:-d|--display)[ =]([A-Z_,]+)", command)
    for word in match[1].split(",") if match else ():
        prefix = _SELECTED.get(word)
        if prefix and not any(name.startswith(prefix) for name in gpu.values):
            return f"{gpu.label} has no {word} section although it was asked for"
    return ""


def _unfinished(lines: Sequence[str], blocks: Sequence[_Block], *, whole_end: bool) -> str:
    """A full answer of one GPU ends with its processes; a last line without its end is suspect."""
    block = blocks[-1]
    names = {path[0] for path in block.seen}
    if len(blocks) == 1 and "product name" in names and "pci" in names and "processes" not in names:
        return "the only GPU's description ends before its processes"
    if whole_end or not block.entries:
        return ""
    path, value = block.entries[-1]
    last = next((line for line in reversed(lines) if line.strip()), "")
    if not _entry_in(last):
        return f"the text ends within a line: {last.strip()[:60]!r}"
    peers = {v for other in blocks[:-1] for p, v in other.entries if p == path}
    if value in peers or value.lower() in {"n/a", "none", "yes", "no", "enabled", "disabled"}:
        return ""
    return f"the text ends within a line: {last.strip()[:60]!r}"
