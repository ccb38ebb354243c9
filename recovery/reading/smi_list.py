"""``nvidia-smi -L`` and ``nvidia-smi nvlink -s``: a line for a GPU, deeper lines below it.

Source: drivers 450 to 610. MIG devices are indented lines of ``-L``; a link that is down reads
``<inactive>``; a GPU without any link up has one line that says so instead of its links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recovery.errors import ParseError
from recovery.reading.smi_words import Form, Gpu, Snapshot

_GPU = re.compile(r"^\s{0,2}GPU (\d+): (.+?)(?: \(UUID: ((?:GPU-)?[0-9A-Za-z-]+)\))?\s*$")
_MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: MIG-[\w/-]+\)\s*$")
_LINK = re.compile(r"^\s+Link (\d+): (\S.*?)\s*$")
_NO_LINKS = re.compile(r"all links are in-?active", re.IGNORECASE)
_NO_NVLINK = re.compile(r"not support|no nvlink|unsupported", re.IGNORECASE)
_SPEED = re.compile(r"^[\d.,]+ GB/s$")


def looks_like_list(lines: Sequence[str]) -> bool:
    """Claims that the first line with text is a GPU of such a list."""
    return any(_GPU.match(line) for line in lines[:50] if line.strip())


def read_list(lines: Sequence[str], *, whole_end: bool = True, nvlink: bool = False) -> Snapshot:
    """One snapshot; ``links`` of a GPU is None where the list does not speak of links.

    Raises:
        ParseError: no GPU in it.
    """
    blocks = _blocks(lines)
    if not blocks:
        raise ParseError("the list names no GPU", remedy="run nvidia-smi -L on the node by hand")
    is_nvlink = nvlink or any(_about_links(body) for _, body in blocks)
    gpus = tuple(_gpu(match, body, is_nvlink=is_nvlink) for match, body in blocks)
    return Snapshot(
        form=Form.NVLINK if is_nvlink else Form.LIST,
        gpus=gpus,
        cut=_why_cut(lines, blocks, gpus, whole_end=whole_end),
    )


def _blocks(lines: Sequence[str]) -> list[tuple[re.Match[str], list[str]]]:
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in lines:
        match = _GPU.match(line)
        if match:
            found.append((match, []))
        elif found and line.strip():
            found[-1][1].append(line)
    return found


def _about_links(body: Sequence[str]) -> bool:
    return any(_LINK.match(line) or "nvlink" in line.lower() for line in body)


def _gpu(match: re.Match[str], body: Sequence[str], *, is_nvlink: bool) -> Gpu:
    values = {"index": match[1], "name": match[2], "uuid": match[3] or ""}
    n_mig = sum(1 for line in body if _MIG.match(line))
    links: tuple[str, ...] | None = None
    if is_nvlink:
        links = tuple(m[2] for line in body if (m := _LINK.match(line)))
        if any(_NO_LINKS.search(line) for line in body):
            values["nvlink.state"] = "all inactive"
        elif any(_NO_NVLINK.search(line) for line in body):
            values["nvlink.state"] = "not supported"
    return Gpu(f"GPU{match[1]}", values, links=links, mig_devices=n_mig)


def _why_cut(
    lines: Sequence[str],
    blocks: Sequence[tuple[re.Match[str], list[str]]],
    gpus: Sequence[Gpu],
    *,
    whole_end: bool,
) -> str:
    if any(match[3] is None or not _whole_uuid(match[3]) for match, _ in blocks):
        return "a GPU's line ends before its UUID"
    return _twice(blocks) or _end_cut(lines, gpus, whole_end=whole_end)


def _twice(blocks: Sequence[tuple[re.Match[str], list[str]]]) -> str:
    indices = [match[1] for match, _ in blocks]
    again = next((i for i in indices if indices.count(i) > 1), "")
    return f"GPU {again} is listed twice: several nodes or runs in one text" if again else ""


def _end_cut(lines: Sequence[str], gpus: Sequence[Gpu], *, whole_end: bool) -> str:
    last = next((line for line in reversed(lines) if line.strip()), "").strip()
    link = _LINK.match(f" {last}")
    if link and not (_SPEED.match(link[2]) or (link[2].startswith("<") and link[2].endswith(">"))):
        return f"the text ends within a line: {last[:60]!r}"
    if last.startswith("MIG ") and not last.endswith(")"):
        return f"the text ends within a line: {last[:60]!r}"
    counts = [len(gpu.links) for gpu in gpus if gpu.links]
    last_links = gpus[-1].links
    if last_links is not None and counts and len(last_links) < max(counts):
        stated = "nvlink.state" in gpus[-1].values
        return (
            "" if stated else f"{gpus[-1].label}, the last one, lists fewer links than the others"
        )
    if not whole_end and not last.endswith((")", ">", "GB/s")):
        return f"the text ends within a line: {last[:60]!r}"
    return ""


def _whole_uuid(text: str) -> bool:
    return (
        re.fullmatch(r"(?:GPU-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text)
        is not None
    )
