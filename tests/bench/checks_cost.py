"""What the passive checks of a node cost to read and judge: `python -m tests.bench.checks_cost`.

Each node answers with the healthy text of every check, its UUIDs changed, so that no answer is
read from the memory of another node's.
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict

from recovery.engine.bundle import bundle
from recovery.engine.comparing import compared
from recovery.engine.judging import Judged, judge_one
from recovery.model.check import CheckEffect
from recovery.model.node import Node
from recovery.model.output import Printed
from tests.checks.node_cases import cases, checks
from tests.checks.outputs import kept
from tests.checks.smi_texts import query

_KEPT = {
    "gpu.topology": ("topo", "topo-h100-nv18-raw-ansi"),
    "gpu.xid": ("klog", "klog-clean-boot-with-decoys"),
    "ib.state": ("ib", "ib-ibstat-12-devices-lexical-ok"),
    "dcgm.diag": ("dcgm", "dcgm3-json-r2-pass"),
    "bmc.sel": ("bmc", "bmc-sel-site-outage-recovered"),
    "bmc.power": ("bmc", "bmc-chassis-power-noise-then-answer"),
    "gpu.count": ("smi", "smi-list-L-with-mig"),
}
_ECC = dict.fromkeys(("SRAM Correctable", "SRAM Uncorrectable", "DRAM Uncorrectable"), "0")
_GPU = {
    "Product Name": "NVIDIA H100 80GB HBM3",
    "Persistence Mode": "Enabled",
    "MIG Mode": {"Current": "Disabled", "Pending": "Disabled"},
    "GPU UUID": "GPU-00000000-1111-2222-3333-444455556666",
    "GPU Recovery Action": "None",
    "PCI": {
        "GPU Link Info": {
            "PCIe Generation": {"Max": "5", "Current": "5"},
            "Link Width": {"Max": "16x", "Current": "16x"},
        }
    },
    "Clocks Event Reasons": {"Idle": "Active", "HW Slowdown": "Not Active"},
    "FB Memory Usage": {"Total": "81559 MiB", "Reserved": "551 MiB", "Used": "1 MiB"},
    "ECC Mode": {"Current": "Enabled", "Pending": "Enabled"},
    "ECC Errors": {"Volatile": _ECC, "Aggregate": _ECC},
    "Retired Pages": {"Single Bit ECC": "N/A", "Double Bit ECC": "N/A", "Pending": "N/A"},
    "Remapped Rows": {"Correctable Error": "0", "Pending": "No"},
    "Temperature": {"GPU Current Temp": "31 C", "GPU T.Limit Temp": "55 C"},
    "GPU Power Readings": {"Average Power Draw": "71.2 W", "Current Power Limit": "700.00 W"},
    "Fabric": {"State": "Completed", "Status": "Success"},
    "Processes": "None",
    # The tool prints about 220 lines for each GPU.
    "Other": {f"Field {i}": "N/A" for i in range(170)},
}


def answers() -> dict[str, str]:
    """A healthy text for the command of each passive check that has one."""
    passive = {c.name: c for c in checks().values() if c.effect is CheckEffect.READ}
    found = {case.check.command: case.text for case in cases() if case.name == "healthy"}
    for name, (kind, wanted) in _KEPT.items():
        text = next(case.raw.decode() for case in kept(kind) if case.id == wanted)
        found[passive[name].command] = text
    found["nvidia-smi -q"] = query(
        [{**_GPU, "GPU UUID": f"GPU-0000000{i}-1111-2222-3333-444455556666"} for i in range(8)]
    )
    return found


def of_node(number: int, texts: dict[str, str]) -> dict[str, str]:
    """The same answers with UUIDs of this node."""
    change = re.compile(r"\bGPU-[0-9a-f]{3}").sub
    return {command: change(f"GPU-{number:03x}", text) for command, text in texts.items()}


def judged_node(texts: dict[str, str]) -> list[Judged]:
    """All passive checks of one node."""
    return [
        judge_one(
            check,
            Printed(texts[check.command], exit_status=0, command=check.command),
            {"expected_gpus": 8},
        )
        for check in checks().values()
        if check.command in texts and check.effect is CheckEffect.READ
    ]


def node_seconds() -> tuple[float, float]:
    """Wall and CPU seconds of all passive commands as one round trip, run on this very machine."""
    asked = [c for c in checks().values() if c.effect is CheckEffect.READ]
    lines = {c.command: c.timeout_s for c in asked if c.name != "train.first-error"}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(["/bin/sh", "-c", bundle(lines, seed="bench")], capture_output=True, check=False)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def main(n_nodes: int = 256) -> None:
    """Prints milliseconds of CPU a node, what comparing costs, and the commands' own seconds."""
    texts, spent, parsed = answers(), [], defaultdict(dict)
    for number in range(n_nodes):
        own = of_node(number, texts)
        begin = time.process_time()
        found = judged_node(own)
        spent.append((time.process_time() - begin) * 1000)
        for one in found:
            if one.parsed is not None:
                parsed[one.check][f"n{number:03}"] = one.parsed
    nodes = {f"n{i:03}": Node(f"n{i:03}") for i in range(n_nodes)}
    begin = time.process_time()
    for check in checks().values():
        compared(check, parsed.get(check.name, {}), nodes, 2 / 3)
    compare_ms = (time.process_time() - begin) * 1000
    sys.stdout.write(
        f"{n_nodes} nodes, {len(parsed)} checks each: median {statistics.median(spent):.1f} ms a "
        f"node, 99 of 100 within {statistics.quantiles(spent, n=100)[98]:.1f} ms, "
        f"all {sum(spent) / 1000:.1f} s; compared in {compare_ms:.0f} ms\n"
    )
    wall_s, cpu_s = node_seconds()
    sys.stdout.write(f"the commands on this machine: {wall_s:.2f} s, {cpu_s:.2f} s of CPU\n")


if __name__ == "__main__":
    main()
