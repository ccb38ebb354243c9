"""The ``-J`` file of nccl-tests, whole or cut short by a crash.

Quirks of the writer: booleans are strings, ``devices`` lists only the first GPU of each process,
``env`` holds the whole environment, and the file is closed only at the very end of a good run.

Source: NVIDIA/nccl-tests v2.19.6 ``src/util.cu``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from recovery.errors import ParseError
from recovery.reading.nccl_row import Body, Device, Row, count_groups

_DECODER = json.JSONDecoder()
_COLLECTIVE = re.compile(r"(\w+)_perf\b")


def looks_like_json(text: str) -> bool:
    """Claims that the text is such a file, or the beginning of one."""
    start = text.lstrip("\ufeff \t\r\n")[:4096]
    return start.startswith("{") and '"args"' in start


def read_body(text: str) -> Body:
    """The report in the file; a file that ends too early gives its finished rows, not complete.

    Raises:
        ParseError: JSON of another tool.
    """
    try:
        whole = json.loads(text)
    except ValueError:
        return _cut_short(text)
    if not isinstance(whole, dict) or "results" not in whole:
        raise ParseError(
            "JSON, but not of nccl-tests: it has no results", remedy="give the file that -J wrote"
        )
    bounds = whole.get("out_of_bounds") or {}
    mean = (whole.get("average_bus_bandwidth") or {}).get("bandwidth")
    return _body(
        whole,
        [row for row in whole["results"] if isinstance(row, dict)],
        out_of_bounds=_whole_number(bounds.get("count")),
        mean_busbw_gb_per_s=_number(mean),
        complete="out_of_bounds" in whole and bool(whole.get("end_time")),
    )


def preferred(body: Body, lines: Iterable[str]) -> Body:
    """The report of the text, with the numbers of a whole ``-J`` file that was printed below it.

    Ranks and devices stay those of the text: the file names only the first GPU of each process.
    """
    for line in lines:
        if line.startswith("{") and looks_like_json(line):
            try:
                found = read_body(line)
            except ParseError:
                continue
            if found.complete:
                return _joined(body, found) if body.devices else found
    return body


def _joined(body: Body, found: Body) -> Body:
    return replace(
        body,
        collective=found.collective or body.collective,
        rows=found.rows,
        out_of_bounds=found.out_of_bounds,
        mean_busbw_gb_per_s=found.mean_busbw_gb_per_s,
        complete=True,
        has_environment=found.has_environment,
        is_json=True,
    )


def _cut_short(text: str) -> Body:
    found = {key: _value_after(text, key) for key in ("args", "config")}
    return _body({**found, "env": '"env"' in text}, list(_finished_rows(text)), complete=False)


def _value_after(text: str, key: str) -> Any:
    at = text.find(f'"{key}":')
    if at < 0:
        return None
    try:
        return _DECODER.raw_decode(text, at + len(key) + 3)[0]
    except ValueError:
        return None


def _finished_rows(text: str) -> Iterator[Mapping[str, Any]]:
    at = text.find('"results":[')
    at = text.find("{", at) if at >= 0 else -1
    while 0 <= at < len(text) and text[at] == "{":
        try:
            row, end = _DECODER.raw_decode(text, at)
        except ValueError:
            return
        yield row
        at = end + 1 if text[end : end + 1] == "," else len(text)


def _body(whole: Mapping[str, Any], rows: list[Mapping[str, Any]], **changes: Any) -> Body:
    config = whole.get("config") or {}
    devices = tuple(_device(item) for item in config.get("devices") or ())
    each = (_whole_number(config.get("ngpus")) or 1) * (_whole_number(config.get("nthreads")) or 1)
    return Body(
        started=True,
        is_json=True,
        collective=_collective(whole.get("args") or ()),
        devices=devices,
        n_ranks=each * len(devices) // count_groups(devices) or None,
        rows=tuple(_row(row) for row in rows),
        has_environment=bool(whole.get("env")),
        **changes,
    )


def _collective(args: Any) -> str:
    found = _COLLECTIVE.search(" ".join(map(str, args)))
    return found.group(1) if found else ""


def _device(item: Mapping[str, Any]) -> Device:
    rank, device = _whole_number(item.get("rank")), _whole_number(item.get("device"))
    return Device(
        rank or 0,
        str(item.get("hostname", "")),
        device or 0,
        str(item.get("device_info", "")),
        _whole_number(item.get("group")) or 0,
    )


def _row(row: Mapping[str, Any]) -> Row:
    out, inside = row.get("out_of_place") or {}, row.get("in_place") or {}
    try:
        return Row(
            size_bytes=int(row["size"]),
            time_us=float(out["time"]),
            algbw_gb_per_s=float(out["alg_bw"]),
            busbw_gb_per_s=float(out["bus_bw"]),
            wrong=_number(out.get("nwrong")),
            in_place_busbw_gb_per_s=_number(inside.get("bus_bw")),
            in_place_wrong=_number(inside.get("nwrong")),
        )
    except (KeyError, TypeError, ValueError):
        raise ParseError(
            f"a result row of nccl-tests lacks a number: {str(row)[:60]!r}",
            remedy="run the test again with -J to a new file",
        ) from None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _whole_number(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and isfinite(number) else None
