"""The lines of a training log, freed from launcher prefixes and progress bars.

Ranks write into one file: a line says who wrote it by ``[rank12]:`` (global), ``[default4]:``
(local), a launcher's tag or a node's name, and errors start in the middle of a progress bar.

Source: torch 2.0 to 2.7 (c10d, elastic), tqdm 4.66, Open MPI, Slurm, kubectl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from recovery.reading.klog_lines import wall_seconds

MAX_LINE = 16384
"""Characters of a line that are read; the longest known error line has about 1,500."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|[@-Z\\-_])")
_ISO = r"\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_COATS = (
    re.compile(r"(?:[^\[\n]{0,40})?\[\d+,(?P<rank>\d+)\](?:\[[^\]\n]{1,80}\])?<std(?:out|err)>: ?"),
    re.compile(r"\[default(?P<local>\d+)\]: ?"),
    re.compile(r"\[[Rr]ank ?(?P<rank>\d+)\]: ?"),
    re.compile(rf"(?P<stamp>{_ISO}(?:Z|[+-]\d\d:\d\d)) (?:std(?:out|err) [FP] )?"),
    re.compile(
        r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>[\w.-]{1,64}) [\w./@-]{1,64}"
        r"(?:\[\d+\])?: "
    ),
    re.compile(r"\(\w{1,40} pid=\d+(?:, ip=(?P<host>[\w.:-]+))?\) ?"),
    re.compile(r"(?P<host>[\w.-]{1,64}):\d+:\d+ \[(?P<local>\d+)\] (?=.{0,80}NCCL )"),
    re.compile(r"(?P<label>\d{1,5}): (?=\S)"),
    re.compile(r"(?P<host>[a-z][a-z0-9-]{0,40}\d{1,5}[a-z0-9.-]{0,20}): (?=\S)"),
)
_BAR = re.compile(
    r"[^|\n]{0,200}\|[^|\n]{0,200}\| *(?P<step>\d+)/(?P<total>\d+|\?) \[[^\]\n]{0,300}\]"
)
_STAMPS = (
    re.compile(rf"\[?(?P<iso>{_ISO})(?:Z|[+-]\d\d:\d\d)?\]?"),
    re.compile(r"\[?[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)(?P<part>\.\d+)?"),
    re.compile(rf"(?:\[\w+\|[\w.:]+\] |time +: |.{{0,120}}CANCELLED AT )(?P<iso>{_ISO})"),
)
_MAX_COATS = 5


@dataclass(frozen=True, slots=True)
class Said:
    """What one process said in one line. ``seconds`` compares within one log of one year."""

    text: str
    number: int
    rank: int | None = None
    local_rank: int | None = None
    host: str = ""
    seconds: float | None = None
    bar_step: int | None = None
    bar_total: int | None = None
    bar: str = ""


def said_lines(
    lines: Iterable[str], *, offsets: Mapping[str, float] | None = None, host: str = ""
) -> Iterator[Said]:
    """Every line in order; carriage returns separate, and what follows a bar is its own line.

    ``offsets`` are seconds that a node's clock is ahead; ``host`` wrote lines that name none.
    """
    shift = offsets or {}
    number = 0
    for raw in lines:
        for piece in raw.rstrip("\r\n").split("\r"):
            number += 1
            text = _ESCAPE.sub("", piece[:MAX_LINE])
            if text.strip():
                yield from _of_piece(text, number, host, shift)


def _of_piece(text: str, number: int, host: str, shift: Mapping[str, float]) -> Iterator[Said]:
    rank = local = None
    wall = ""
    for _ in range(_MAX_COATS):
        match = next((m for coat in _COATS if (m := coat.match(text))), None)
        if match is None:
            break
        found = match.groupdict()
        rank = _whole(found.get("rank"), rank)
        local = _whole(found.get("local"), local)
        host = found.get("host") or host
        wall = found.get("stamp") or wall
        text = text[match.end() :]
    if (bar := _BAR.match(text)) is not None:
        total = int(bar["total"]) if bar["total"].isdecimal() else None
        yield Said("", number, rank, local, host, None, int(bar["step"][:15]), total, bar[0])
        text = text[bar.end() :]
        if not text.strip():
            return
    seconds = in_year(_seconds(text) if not wall else wall_seconds(wall.replace("_", " ")))
    if seconds is not None:
        seconds -= shift.get(host, 0.0)
    yield Said(text, number, rank, local, host, seconds)


def _whole(text: str | None, otherwise: int | None) -> int | None:
    return int(text[:9]) if text else otherwise


def _seconds(text: str) -> float | None:
    for pattern in _STAMPS:
        match = pattern.match(text.lstrip())
        if match is None:
            continue
        found = match.groupdict()
        if found.get("iso"):
            return wall_seconds(found["iso"].replace("_", " "))
        stamp = f"2024-{found['month']}-{found['day']} {found['clock']}{found['part'] or ''}"
        return wall_seconds(stamp)
    return None


_EPOCH_2024 = 1704067200.0  # a leap year, so that every date of every year exists in it


def in_year(seconds: float | None) -> float | None:
    """Seconds since the beginning of the year: half of the stamps have none."""
    if seconds is None:
        return None
    at = datetime.fromtimestamp(min(max(seconds, 0.0), 4e9), tz=UTC)
    return at.replace(year=2024).timestamp() - _EPOCH_2024
