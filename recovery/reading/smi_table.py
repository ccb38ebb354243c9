"""The table that plain ``nvidia-smi`` prints, narrow (before 525) and wide.

Source: tables of drivers 418 to 610; ``ERR!`` may touch the border, the process list ends it all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recovery.errors import ParseError
from recovery.reading import cell
from recovery.reading.smi_words import Form, Gpu, Process, Snapshot

_TITLE = re.compile(
    r"NVIDIA-SMI (?P<smi>[\d.]+)\s+(?:Driver|KMD) Version: ?(?P<driver>\S+)"
    r"(?:\s+CUDA(?: UMD)? Version: ?(?P<cuda>\S+))?"
)
_FIRST = re.compile(r"^\s*(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A|ERR!)\s*$")
_BUS = re.compile(r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+(\S+)")
_SECOND = re.compile(r"^\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*/\s*(\S+)\s*$")
_PROCESS = re.compile(
    r"^\s*(\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+([A-Z+]+)\s+(.*?)\s+(\S+)\s*$"
)
_BORDER = re.compile(r"^\+[-=+]+\+\s*$")
SHORT = {
    "fan.speed": "fan",
    "temperature.gpu": "temp",
    "pstate": "perf",
    "power.draw": "power",
    "power.limit": "power_cap",
    "memory.used": "memory",
    "ecc.errors.uncorrected.volatile.total": "ecc",
    "utilization.gpu": "util",
    "persistence_mode": "persistence",
}
"""The table's cells by the short names that people use for them."""


def looks_like_table(lines: Sequence[str]) -> bool:
    """Claims that the lines are nvidia-smi's table, or the beginning of one."""
    return any(_TITLE.search(line) for line in lines[:200])


def read_table(lines: Sequence[str]) -> Snapshot:
    """One snapshot, labelled by the table's own indexes.

    Raises:
        ParseError: the title is there and no GPU.
    """
    title = next((m for line in lines if (m := _TITLE.search(line))), None)
    gpus = _gpus(lines)
    if title is None or not gpus:
        raise ParseError(
            "the table names no GPU: it is cut short",
            remedy="run nvidia-smi on the node by hand; it may hang with a sick GPU",
        )
    processes, closed = _processes(lines)
    half = [gpu.label for gpu in gpus if "temperature.gpu" not in gpu.values]
    cut = "" if closed else "the table ends before its last border"
    if half:
        cut = f"the table ends within {half[0]}"
    return Snapshot(
        form=Form.TABLE,
        gpus=gpus,
        driver=title["driver"],
        cuda=None if cell.is_absent(title["cuda"] or "") else title["cuda"],
        processes=processes,
        cut=cut,
    )


def _gpus(lines: Sequence[str]) -> tuple[Gpu, ...]:
    found: list[dict[str, str]] = []
    rows_left = 0
    for line in lines:
        if re.search(r"\|\s*(Processes|MIG devices):", line):
            break
        cells = line.strip().strip("|").split("|")
        if len(cells) != 3:
            continue
        first, bus = _FIRST.match(cells[0]), _BUS.search(cells[1])
        if first and bus:
            found.append(_head_row(first, bus, cells[2]))
            rows_left = 2
        elif found and rows_left:
            rows_left -= 1
            found[-1].update(_body_row(cells, is_second=rows_left == 1))
    return tuple(_gpu(values) for values in found)


def _gpu(values: dict[str, str]) -> Gpu:
    """In the order of the table's titles, whichever line a value stood in."""
    ordered = {name: values[name] for name in (*SHORT, *values) if name in values}
    return Gpu(f"GPU{values['index']}", ordered, {n: SHORT.get(n, n) for n in ordered})


def _head_row(first: re.Match[str], bus: re.Match[str], ecc: str) -> dict[str, str]:
    values = {
        "index": first[1],
        "name": first[2],
        "persistence_mode": {"On": "Enabled", "Off": "Disabled"}.get(first[3], first[3]),
        "pci.bus_id": cell.bus_id(bus[1]),
    }
    word = ecc.strip()
    # "Off": ECC is off. "On": MIG is on, and the counts stand with the MIG devices.
    if word == "Off":
        values["ecc.mode.current"] = "Disabled"
    elif word != "On":
        values["ecc.errors.uncorrected.volatile.total"] = word
    return values


def _body_row(cells: Sequence[str], *, is_second: bool) -> dict[str, str]:
    if not is_second:
        word = cells[2].strip()
        return {"mig.mode.current": word.rstrip("*")} if word else {}
    match = _SECOND.match(cells[0])
    if match is None:
        return {}
    used, _, total = cells[1].partition("/")
    utilization = cells[2].split()
    names = ("fan.speed", "temperature.gpu", "pstate", "power.draw", "power.limit")
    return {
        **dict(zip(names, match.groups(), strict=True)),
        "memory.used": used.strip(),
        "memory.total": total.strip(),
        "utilization.gpu": utilization[0] if utilization else "",
    }


def _processes(lines: Sequence[str]) -> tuple[tuple[Process, ...] | None, bool]:
    """The processes, and whether the list is closed by its border; None without such a list."""
    start = next((i for i, line in enumerate(lines) if re.search(r"\|\s*Processes:", line)), None)
    if start is None:
        return None, False
    found: list[Process] = []
    ruled = False
    for line in lines[start + 1 :]:
        if re.match(r"^\|=+\|\s*$", line):
            ruled = True
        elif ruled and _BORDER.match(line):
            return tuple(found), True
        elif ruled and (match := _PROCESS.match(line.strip().strip("|"))):
            found.append(Process(f"GPU{match[1]}", int(match[2]), match[4], cell.whole(match[5])))
    return tuple(found), False
