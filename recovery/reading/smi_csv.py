"""``nvidia-smi --query-gpu=... --format=csv`` and its sisters, read by their headers.

Source: ``nvidia-smi --help-query-gpu``. Drivers from 535 answer the old ``clocks_throttle_reasons``
names with headers of the new names, so columns are never looked up by the name that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recovery.errors import ParseError
from recovery.reading import cell
from recovery.reading.smi_names import of_csv
from recovery.reading.smi_words import Form, Gpu, Process, Snapshot

_QUERY = re.compile(r"--query-(gpu|compute-apps|remapped-rows)[= ]([\w.,]+)")
_HEADER = re.compile(
    r"^\"?[a-z][\w.]*(?: \[[\w%]+\])?\"?(?:, ?\"?[a-z][\w.]*(?: \[[\w%]+\])?\"?)*$"
)
_KNOWN = re.compile(
    r"^(index|name|count|uuid|serial|timestamp|driver_version|pstate|pid|process_name|gpu_\w+"
    r"|used_gpu_memory|used_memory|compute_mode|persistence_mode|vbios_version|kmd_version"
    r"|(pci|pcie|temperature|power|memory|utilization|ecc|remapped_rows|retired_pages|fabric|mig"
    r"|clocks\w*|fan|inforom|enforced|module|platform|driver_model|accounting)[._].*)$"
)
_NOISE = 20  # lines that a login or a wrapper may print before the table


def looks_like_csv(lines: Sequence[str], command: str = "") -> bool:
    """Claims that the lines are such a table, or that the command asked for one."""
    first = [line.strip() for line in lines[:_NOISE] if line.strip()]
    headed = any(_is_header(line) for line in first)
    return headed or ("noheader" in command and _QUERY.search(command) is not None)


def read_csv(lines: Sequence[str], *, command: str = "", whole_end: bool = True) -> Snapshot:
    """One snapshot of a GPU query, or of the processes of a compute-apps query.

    Raises:
        ParseError: no header and no command that tells the columns, or not one row of GPUs.
    """
    full = [line.strip() for line in lines if line.strip()]
    headers, rows = _table(full, command)
    names = [of_csv(header) for header in headers]
    cells = [_cells(row, len(headers)) for row in rows]
    cut = _why_cut(cells, len(headers), whole_end=whole_end)
    good = [row for row in cells if len(row) == len(headers)]
    if "pid" in names:
        return Snapshot(form=Form.APPS, processes=_apps(names, good), cut=cut)
    if not good:
        raise ParseError(
            "the query's answer has no row: no GPU is described",
            remedy="run nvidia-smi -L on the node; nothing printed is not zero GPUs",
        )
    gpus = tuple(_gpu(position, headers, names, row) for position, row in enumerate(good))
    return Snapshot(form=Form.CSV, gpus=gpus, driver=_driver(gpus), cut=cut)


def _is_header(line: str) -> bool:
    if not _HEADER.match(line):
        return False
    words = [header.partition(" [")[0].strip(' "') for header in line.split(",")]
    if len(words) == 1 and not {"_", "."} & set(words[0]):
        return False
    return any(_KNOWN.match(word) for word in words) and all(not w.isdigit() for w in words)


def _table(full: list[str], command: str) -> tuple[list[str], list[str]]:
    for index, line in enumerate(full[:_NOISE]):
        if _is_header(line):
            return [header.strip() for header in line.split(",")], full[index + 1 :]
    asked = _QUERY.search(command)
    if asked is None:
        raise ParseError(
            "values without a header line cannot be told apart",
            remedy="leave out noheader, or name the command that printed them",
        )
    return asked[2].strip(",").split(","), full


def _cells(row: str, n_columns: int) -> list[str]:
    """The row's cells; a decimal comma has no blank after it, a separator has."""
    for separator in (", ", ","):
        found = [part.strip() for part in f"{row} ".split(separator)]
        if len(found) == n_columns:
            return found
    return [part.strip() for part in row.split(",")]


def _why_cut(cells: list[list[str]], n_columns: int, *, whole_end: bool) -> str:
    odd = [row for row in cells if len(row) != n_columns]
    if odd:
        return f"a row has {len(odd[0])} of {n_columns} columns: {', '.join(odd[0])[:60]!r}"
    if whole_end or not cells:
        return "" if whole_end else "the text ends within its header"
    last, peers = cells[-1][-1], {row[-1] for row in cells[:-1]}
    if last and (
        last in peers or cell.is_absent(last) or last in {"Active", "Not Active", "Success"}
    ):
        return ""
    return f"the text ends within a line: {last[:60]!r}"


def _gpu(position: int, headers: Sequence[str], names: Sequence[str], row: Sequence[str]) -> Gpu:
    values: dict[str, str] = {}
    printed: dict[str, str] = {}
    for header, name, value in zip(headers, names, row, strict=True):
        values.setdefault(name, value)
        printed.setdefault(name, header.partition(" [")[0].strip())
    index = values.get("index", "").strip()
    return Gpu(f"GPU{index if index.isdigit() else position}", values, printed)


def _driver(gpus: Sequence[Gpu]) -> str | None:
    return next((v for gpu in gpus if (v := gpu.text("driver_version"))), None)


def _apps(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Process, ...]:
    found = []
    for row in rows:
        value = dict(zip(names, row, strict=True))
        memory = value.get("used_gpu_memory", value.get("used_memory", ""))
        gpu = value.get("pci.bus_id", value.get("uuid", ""))
        name = value.get("process_name", value.get("name", ""))
        found.append(Process(gpu, cell.whole(value["pid"]), name, cell.whole(memory)))
    return tuple(found)
