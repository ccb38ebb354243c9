"""``rocm-smi --showtopo``: stacked matrices of weight, hops and link type, then NUMA nodes.

Source: rocm-smi of ROCm 5 and 6. The diagonal is 0; a weight of 15 is one XGMI hop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.reading.topo_words import Topology

_BANNER = re.compile(r"^=+ *(.*?) *=+$")
_NUMA = re.compile(r"^(?:GPU|DRM)\[(\d+)\]\s*: \(Topology\) Numa Node: (-?\d+)\s*$")
_KINDS = {"weight between two gpus": "weight", "hops between two gpus": "hops"}
_TYPE = "link type between two gpus"
_REMEDY = "run rocm-smi --showtopo on the node by hand and keep the whole output"


@dataclass(slots=True)
class _Matrix:
    columns: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)

    def links(self) -> dict[tuple[str, str], str]:
        return {
            (row, column): cell
            for row, cells in self.rows.items()
            for column, cell in zip(self.columns, cells, strict=False)
            if row != column
        }

    def why_cut(self, title: str) -> str:
        for name in self.columns:
            if len(self.rows.get(name, ())) != len(self.columns):
                return f"{title}: the row of {name} is missing or cut"
        return "" if self.columns else f"{title}: no matrix"


def looks_like_rocm(lines: Sequence[str]) -> bool:
    """Claims that the lines are such an answer, or the beginning of one."""
    return any("ROCm System Management Interface" in line for line in lines[:50]) or any(
        _title(line) in (*_KINDS, _TYPE) for line in lines[:2000]
    )


def read_rocm(lines: Sequence[str]) -> Topology:
    """The topology by link type.

    Raises:
        ParseError: not one matrix in it.
    """
    matrices, numa, ended = _split(lines)
    kind = matrices.get(_TYPE) or next(iter(matrices.values()), None)
    if kind is None or not kind.columns:
        raise ParseError("rocm-smi printed no topology", remedy=_REMEDY)
    by_kind: Mapping[str, _Matrix] = {w: matrices[t] for t, w in _KINDS.items() if t in matrices}
    has_type = _TYPE in matrices
    return Topology(
        gpus=tuple(kind.columns),
        links=kind.links() if has_type else {},
        n_complete_rows=sum(len(row) == len(kind.columns) for row in kind.rows.values()),
        cut=_why_cut(matrices, ended=ended),
        is_rocm=True,
        weights=by_kind["weight"].links() if "weight" in by_kind else None,
        hops=by_kind["hops"].links() if "hops" in by_kind else None,
        numa=numa or None,
    )


def _title(line: str) -> str:
    match = _BANNER.match(line.strip())
    return match[1].lower() if match else ""


def _split(lines: Sequence[str]) -> tuple[dict[str, _Matrix], dict[str, int | None], bool]:
    matrices: dict[str, _Matrix] = {}
    numa: dict[str, int | None] = {}
    now: _Matrix | None = None
    ended = False
    for line in lines:
        title = _title(line)
        if title:
            known = title in (*_KINDS, _TYPE)
            now = matrices.setdefault(title, _Matrix()) if known else None
            ended = ended or "end of rocm smi log" in title
        elif now is not None and line.strip():
            _row(line.split(), now)
        elif match := _NUMA.match(line.strip()):
            number = int(match[2])
            numa[f"GPU{match[1]}"] = None if number < 0 else number
    return matrices, numa, ended


def _row(words: Sequence[str], matrix: _Matrix) -> None:
    if not matrix.columns:
        matrix.columns = list(words)
    elif words[0] in matrix.columns:
        matrix.rows[words[0]] = list(words[1:])


def _why_cut(matrices: Mapping[str, _Matrix], *, ended: bool) -> str:
    if _TYPE not in matrices:
        return "the matrix of link types is missing"
    for title, matrix in matrices.items():
        why = matrix.why_cut(title)
        if why:
            return why
    return "" if ended else "the text ends before rocm-smi's last line"
