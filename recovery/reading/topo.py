"""The topology matrix of ``nvidia-smi topo -m``, and of ``rocm-smi --showtopo``.

Source: drivers 375 to 610. Cells are parted by tabs, or by two blanks and more where a terminal
expanded them; the header row may be underlined; adapters are columns ``NIC0`` with a legend, or
columns by their own name (``mlx5_0``) before driver 510; ``SOC`` is the old word for ``SYS``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import tool_asked
from recovery.reading.once import once
from recovery.reading.plain import ends_with_newline, plain_lines, short_lines
from recovery.reading.smi_errors import find_troubles
from recovery.reading.topo_rocm import looks_like_rocm, read_rocm
from recovery.reading.topo_words import Topology

_REMEDY = (
    "ask again with a longer time limit; a topology that takes minutes is itself a sign of a"
    " sick link"
)
_GPU = re.compile(r"GPU\d{1,3}")
_LINK = re.compile(r"NV\d{1,2}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|X|C2C|N/A|-")
_LEGEND = re.compile(r"^\s*(NIC\d{1,3}): (\S+)\s*$")
_WORD = re.compile(r"^\s*(X|SYS|SOC|NODE|PHB|PXB|PIX|PSB|NV#)\s+= ")
_TITLES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_NEAR = {"PIX": 0, "PXB": 1, "PHB": 2}
_LAST_WORD = "NV#"
_PCIE_ONLY = re.compile(r"\btopo\s+(?:.*\s)?-(?:mp|p2p)\b")


@dataclass(slots=True)
class _Parts:
    """The text by its parts, before they are understood."""

    header: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)
    tails: dict[str, list[str]] = field(default_factory=dict)
    legend: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    last: str = ""
    whole_end: bool = True


def looks_like_topology(printed: Printed) -> bool:
    """Claims that the command asked for a topology or, without one, that the text is one."""
    if re.search(r"\btopo\b|--showtopo", printed.command):
        return True
    if tool_asked(printed.command) not in ("", "smi"):
        return False
    lines = _lines_or_none(printed.text)
    return lines is not None and (looks_like_rocm(lines) or _header_at(lines) is not None)


@once
def read_topology(printed: Printed) -> Topology:
    """The matrix; one that is cut short comes with the reason in ``cut``.

    Raises:
        ParseError: there is no header of GPUs in the text.
    """
    lines = short_lines(plain_lines(printed.text))
    if looks_like_rocm(lines):
        return read_rocm(lines)
    start = _header_at(lines)
    if start is None:
        raise _no_matrix(printed, lines)
    further = _header_at(lines[start + 1 :])
    if further is not None:
        lines = lines[: start + 1 + further]
    parts = _split(lines[start:])
    parts.whole_end = ends_with_newline(printed.text)
    found = _topology(parts, timed_out=printed.exit_status in (124, 137, 143))
    if further is not None:
        found = replace(found, cut="a second matrix follows: several nodes or runs in one text")
    elif _PCIE_ONLY.search(printed.command):
        found = replace(found, cut="-mp and -p2p leave the NVLinks out: ask with -m")
    return replace(found, troubles=find_troubles((*plain_lines(printed.error_text), *lines)))


def _lines_or_none(text: str) -> tuple[str, ...] | None:
    try:
        return short_lines(plain_lines(text))
    except ParseError:
        return None


def _no_matrix(printed: Printed, lines: Sequence[str]) -> ParseError:
    first = next((line.strip() for line in lines if line.strip()), "")
    first = first or printed.error_text.strip().partition("\n")[0]
    what = f"not a topology: {first[:80]!r}" if first else "no topology was printed"
    return ParseError(what, remedy=_REMEDY)


def _header_at(lines: Sequence[str]) -> int | None:
    for index, line in enumerate(lines[:2000]):
        words = line.split()
        # The header alone begins with blank space: a row begins with its own name.
        if words and line[:1] in ("\t", " ") and _GPU.fullmatch(words[0]):
            return index
    return None


def _split(lines: Sequence[str]) -> _Parts:
    parts = _Parts()
    head = lines[0]
    parts.titles = [title for title in _TITLES if title in head]
    for title in _TITLES:
        head = head.replace(title, " ")
    parts.header = head.split()
    for line in lines[1:]:
        _line(line, parts)
        if line.strip():
            parts.last = line
    return parts


def _line(line: str, parts: _Parts) -> None:
    words = line.split()
    legend, word = _LEGEND.match(line), _WORD.match(line)
    if legend:
        parts.legend[legend[1]] = legend[2]
    elif word:
        parts.words.append(word[1])
    elif words and words[0] in parts.header and words[0] not in parts.rows and line[0] != " ":
        cells = _cells(words[1:], len(parts.header))
        parts.rows[words[0]] = cells
        parts.tails[words[0]] = _tail(line, len(cells))


def _cells(words: Sequence[str], n_columns: int) -> list[str]:
    found: list[str] = []
    for word in words[:n_columns]:
        if not _LINK.fullmatch(word):
            break
        found.append(word)
    return found


def _tail(line: str, n_cells: int) -> list[str]:
    """What stands behind the links: affinities, of which any may be empty."""
    if "\t" in line:
        return [part.strip() for part in line.split("\t")[1 + n_cells :]]
    return line.split()[1 + n_cells :]


def _topology(parts: _Parts, *, timed_out: bool) -> Topology:
    gpus = tuple(name for name in parts.header if _GPU.fullmatch(name))
    nics = tuple(name for name in parts.header if name not in gpus)
    columns = {title: _column(parts, gpus, title) for title in parts.titles}
    cut = _why_cut(parts, gpus, nics)
    if timed_out and not cut:
        cut = "the command was ended by its time limit"
    return Topology(
        gpus=gpus,
        nics=nics,
        links=_links(parts),
        nic_names={nic: parts.legend.get(nic, nic) for nic in nics},
        cpu_affinity=columns.get("CPU Affinity"),
        numa_affinity=columns.get("NUMA Affinity"),
        gpu_numa_id=columns.get("GPU NUMA ID"),
        n_complete_rows=sum(len(parts.rows.get(gpu, ())) == len(parts.header) for gpu in gpus),
        soc_means="SYS" if "SOC" in parts.words else None,
        cut=cut,
    )


def _links(parts: _Parts) -> Mapping[tuple[str, str], str]:
    return {
        (row, column): cell
        for row, cells in parts.rows.items()
        for column, cell in zip(parts.header, cells, strict=False)
        if row != column
    }


def _column(parts: _Parts, gpus: Sequence[str], title: str) -> Mapping[str, str | None]:
    """One affinity column by GPU; None where it is empty or N/A.

    Between NUMA affinity and GPU NUMA id stands an empty cell, so the id is the last one, and
    the others are those that are not empty, in the order of the titles.
    """
    found: dict[str, str | None] = {}
    position = parts.titles.index(title)
    for gpu in gpus:
        told = [cell for cell in parts.tails.get(gpu, ()) if cell]
        value = told[position] if position < len(told) else None
        found[gpu] = None if value in (None, "N/A", "-") else value
    return found


def _why_cut(parts: _Parts, gpus: Sequence[str], nics: Sequence[str]) -> str:
    missing = [name for name in parts.header if name not in parts.rows]
    if missing:
        return f"the header names {len(gpus)} GPUs, the row of {missing[0]} is missing"
    for name, cells in parts.rows.items():
        if len(cells) != len(parts.header):
            return f"the row of {name} has {len(cells)} of {len(parts.header)} links"
    return _legend_cut(parts, nics)


def _legend_cut(parts: _Parts, nics: Sequence[str]) -> str:
    if _LAST_WORD not in parts.words:
        return "the legend under the matrix is missing or cut"
    by_number = [nic for nic in nics if re.fullmatch(r"NIC\d+", nic)]
    if not by_number:
        whole = parts.last.rstrip().endswith("NVLinks")
        return "" if whole else "the legend under the matrix is cut"
    unnamed = [nic for nic in by_number if nic not in parts.legend]
    if unnamed:
        return f"the legend of the adapters lacks {unnamed[0]}"
    whole = parts.whole_end or parts.legend[by_number[-1]][-1:].isdigit()
    return "" if whole else "the legend of the adapters is cut"


def nearest_nics(topology: Topology) -> dict[str, str]:
    """For each GPU the adapter behind the same bridge, where one is nearer than the others."""
    found: dict[str, str] = {}
    for gpu in topology.gpus:
        ranked = [
            (_NEAR[link], position, nic)
            for position, nic in enumerate(topology.nics)
            if (link := topology.links.get((gpu, nic), "")) in _NEAR
        ]
        if ranked:
            found[gpu] = min(ranked)[2]
    return found
