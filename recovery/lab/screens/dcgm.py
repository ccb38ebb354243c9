"""The screens of dcgmi.

Source: dcgmi 3.3.9 (diag -r N, discovery -l).
"""

from __future__ import annotations

import json
import re
from typing import Any

from recovery.lab.hardware import GPU_NAME, Machine

_DEPLOYMENT = (
    "Denylist",
    "NVML Library",
    "CUDA Main Library",
    "Permissions and OS Blocks",
    "Persistence Mode",
    "Environment Variables",
    "Page Retirement/Row Remap",
    "Graphics Processes",
    "Inforom",
)
_LEVELS = {
    "Integration": ("PCIe",),
    "Hardware": ("GPU Memory", "Diagnostic"),
    "Stress": ("Targeted Stress", "Targeted Power", "Memory Bandwidth"),
}


def render(machine: Machine) -> dict[str, str]:
    """All screens by file name."""
    levels = ((1, ()), (2, ("Integration",)), (3, ("Integration", "Hardware", "Stress")))
    out = {f"dcgmi-diag-r{level}": _diag(machine, groups) for level, groups in levels}
    as_json = {f"{name}-json": _as_json(text) for name, text in out.items()}
    return {**out, **as_json, "dcgmi-discovery": _discovery(machine)}


def _as_json(text: str) -> str:
    """The same diagnostic as ``-j`` gives it: categories, tests, results (DCGM 3)."""
    categories: list[dict[str, Any]] = []
    for line in text.splitlines():
        title = re.match(r"[|+]-----  (.+?)  -", line)
        row = re.match(r"\| (.+?) +\| (.+?) +\|$", line)
        if title:
            categories.append({"category": title[1], "tests": []})
        elif row and categories:
            result = {"status": row[2].split(" ")[0]}
            categories[-1]["tests"].append({"name": row[1], "results": [result]})
    version, driver = (t["results"][0]["status"] for t in categories[0]["tests"][:2])
    document = {
        "DCGM GPU Diagnostic": {"test_categories": categories[1:]},
        "Driver Version Detected": driver,
        "version": version,
    }
    return json.dumps(document, indent="\t", separators=(",", " : ")) + "\n"


def _diag(machine: Machine, groups: tuple[str, ...]) -> str:
    pending = any(g.remap_pending for g in machine.present)
    ids = ",".join("2330" for _ in machine.present)
    rows = [
        "Successfully ran diagnostic for group.",
        _BAR,
        _row("Diagnostic", "Result"),
        "+===========================+================================================+",
        "|-----  Metadata  ----------+------------------------------------------------|",
        _row("DCGM Version", "3.3.9"),
        _row("Driver Version Detected", machine.driver),
        _row("GPU Device IDs Detected", ids),
        _title("Deployment", "|"),
    ]
    for name in _DEPLOYMENT:
        failed = pending and name == "Page Retirement/Row Remap"
        rows.append(_row(name, "Fail" if failed else "Pass"))
    for group in groups:
        rows.append(_title(group, "+"))
        rows += [_row(test, f"Pass - {_all(machine)}") for test in _LEVELS[group]]
    return "\n".join((*rows, _BAR)) + "\n"


_BAR = "+---------------------------+------------------------------------------------+"


def _all(machine: Machine) -> str:
    return "All" if machine.present else "None"


def _title(name: str, edge: str) -> str:
    return f"{edge}{f'-----  {name}  ':-<27}+{'':-<48}{edge}"


def _row(name: str, value: str) -> str:
    return f"| {name:<25} | {value:<46} |"


def _discovery(machine: Machine) -> str:
    rule = "+--------+----------------------------------------------------------------------+"
    rows = [f"{len(machine.present)} GPUs found.", rule,
            f"| GPU ID | {'Device Information':<68} |", rule]  # fmt: skip
    for index, gpu in enumerate(machine.present):
        for text in (f"Name: {GPU_NAME}", f"PCI Bus ID: {gpu.bus_id}", f"Device UUID: {gpu.uuid}"):
            rows.append(f"| {index if text.startswith('Name') else '':<6} | {text:<68} |")
        rows.append(rule)
    return "\n".join(rows) + "\n"
