"""The text layouts of nccl-tests v2.0 to v2.19, with what launchers put around them.

Columns are found by the header, since they changed: ``error`` (a maximal difference, where a
small number is correct) became ``#wrong`` (a count), and ``root`` was added.

Source: NVIDIA/nccl-tests ``src/common.cu`` of tags v2.0.0, v2.16.0, v2.17, v2.19.6;
prefixes as printed by Open MPI 4.1.4 with ``--tag-output --timestamp-output``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recovery.reading.nccl_row import Body, Device, Row, count_groups

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# "Sun Nov 29 04:20:10 2026[1,0]<stdout>:text", and "[job@1,0]<stdout>: text" of Open MPI 5
_TAG = re.compile(r"^[^\[\]<>]{0,40}\[[^\]\s]*\d+,\d+\]<std\w+>: ?")
# srun --label; pods of kubectl logs --prefix; stamps of kubectl logs --timestamps
_COATS = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\s*\d+: ",
        r"^\[(?:pod/)?[\w.-]{1,80}/[\w.-]{1,80}\] ?",
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ?",
    )
)
_RANK = re.compile(
    r"^#\s+Rank\s+(?P<rank>\d+)\s+(?:Group\s+(?P<group>\d+)\s+)?Pid\s+\d+\s+on\s+(?P<host>\S+)"
    r"\s+device\s+(?P<device>\d+)\s+\[[^\]]*\]\s*(?P<model>.*)$"
)
_ROW_START = re.compile(r"^\s*(?P<size>\d+)\s+(?P<count>\d+)\s+[a-z]\w+\s+[a-z]\w+(?=\s|$)")
_STARTING = re.compile(r"^# Collective test starting: (\w+?)_perf")
_BOUNDS = re.compile(r"^# Out of bounds values : (\d+)")
_MEAN = re.compile(r"^# Avg bus bandwidth\s*: ([-+.\deEnaif]+)")
_REDUCED = re.compile(r"^# Reducing maxBytes to (\d+)")
_TEST_FAILED = re.compile(r"(?:^|-1)(?P<host>[^\s:]+): Test (?:\w+ failure|timeout)\b")
_OLD_LAYOUT = ("size", "count", "type", "redop", *("time", "algbw", "busbw", "error") * 2)
_NEW_LAYOUT = (
    "size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "#wrong") * 2
)  # fmt: skip


def plain_lines(text: str) -> tuple[str, ...]:
    """Lines without colour, carriage returns, and the prefixes of mpirun, srun and kubectl."""
    lines = [_TAG.sub("", line) for line in _ANSI.sub("", text).replace("\r", "").split("\n")]
    for coat in _COATS:
        filled = [line for line in lines if line.strip()]
        if filled and all(coat.match(line) for line in filled):
            lines = [coat.sub("", line) for line in lines]
    return tuple(lines)


def failed_hosts(lines: Iterable[str]) -> tuple[str, ...]:
    """Nodes that reported a failed test, in the order they did."""
    found = (_TEST_FAILED.search(line) for line in lines)
    return tuple(dict.fromkeys(match["host"] for match in found if match))


def count_warnings(lines: Iterable[str]) -> int:
    """Lines in which NCCL itself warned."""
    return sum(1 for line in lines if " NCCL WARN " in line)


@dataclass
class _Reading:
    """What has been read so far; folded into a `Body` at the end."""

    layout: tuple[str, ...] = ()
    headers: int = 0
    collective: str = ""
    devices: list[Device] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    started_size_bytes: int | None = None
    bounds: list[int] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    n_further: int = 0  # runs that began after another had ended
    reduced_max_bytes: int | None = None

    def take(self, line: str) -> None:
        """Reads one line."""
        if line.startswith("#"):
            self._take_comment(line)
        elif start := _ROW_START.match(line):
            row = _row(line.split(), self.layout)
            if row is None:
                self.started_size_bytes = int(start["size"])
            else:
                self.rows.append(row)

    def _take_comment(self, line: str) -> None:
        if line.startswith("# nThread"):
            self.headers += 1
            self.n_further += bool(self.means)
        elif match := _RANK.match(line):
            self.devices.append(
                Device(
                    int(match["rank"]),
                    match["host"],
                    int(match["device"]),
                    match["model"],
                    int(match["group"] or 0),
                )
            )
        elif {"size", "count", "algbw"} <= set(line.split()):
            self.layout = tuple(line[1:].split())
        else:
            self._take_summary(line)

    def _take_summary(self, line: str) -> None:
        if match := _BOUNDS.match(line):
            self.bounds.append(int(match.group(1)))
        elif match := _MEAN.match(line):
            self.means.append(float(match.group(1)))
        elif match := _REDUCED.match(line):
            self.reduced_max_bytes = int(match.group(1))
        elif match := _STARTING.match(line):
            self.collective = match.group(1)


def read_body(lines: Sequence[str]) -> Body:
    """The report in these lines; of several copies, the rows of one."""
    reading = _Reading()
    for line in lines:
        reading.take(line)
    zeros = sum(1 for device in reading.devices if device.rank == 0)
    copies, n_groups = max(zeros, 1), count_groups(reading.devices)
    return Body(
        started=bool(reading.headers or reading.devices or reading.rows or reading.layout),
        collective=reading.collective,
        devices=tuple(reading.devices),
        n_ranks=len({device.rank for device in reading.devices}) // n_groups or None,
        copies=copies,
        n_runs=1 + reading.n_further,
        rows=_one_copy(reading.rows, copies),
        started_size_bytes=reading.started_size_bytes,
        out_of_bounds=max(reading.bounds, default=None),
        mean_busbw_gb_per_s=min(reading.means, default=None),
        reduced_max_bytes=reading.reduced_max_bytes,
        complete=len(reading.bounds) >= copies and len(reading.means) >= copies,
    )


def _one_copy(rows: list[Row], copies: int) -> tuple[Row, ...]:
    if copies == 1:
        return tuple(rows)
    return tuple({row.size_bytes: row for row in reversed(rows)}.values())[::-1]


def _row(cells: list[str], layout: tuple[str, ...]) -> Row | None:
    layout = layout or (_OLD_LAYOUT if len(cells) == len(_OLD_LAYOUT) else _NEW_LAYOUT)
    columns: dict[str, list[str]] = {}
    for name, cell in zip(layout, cells, strict=False):
        columns.setdefault(name, []).append(cell)
    if len(cells) < len(layout):
        return None
    try:
        return _row_of(columns)
    except (KeyError, ValueError):
        return None


def _row_of(columns: dict[str, list[str]]) -> Row:
    wrong = [_count(cell) for cell in columns.get("#wrong", [])]
    errors = [_count(cell) for cell in columns.get("error", [])]
    in_place = columns["busbw"][1:]
    return Row(
        size_bytes=int(columns["size"][0]),
        time_us=float(columns["time"][0]),
        algbw_gb_per_s=float(columns["algbw"][0]),
        busbw_gb_per_s=float(columns["busbw"][0]),
        wrong=wrong[0] if wrong else None,
        in_place_busbw_gb_per_s=float(in_place[0]) if in_place else None,
        in_place_wrong=wrong[1] if len(wrong) > 1 else None,
        max_error=max((e for e in errors if e is not None), default=None),
    )


def _count(cell: str) -> float | None:
    return None if cell == "N/A" else float(cell)
