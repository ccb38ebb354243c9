"""Writes what the tools of a node print, whenever its state has changed."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from recovery.lab.fault import Fault
from recovery.lab.hardware import Machine, healthy
from recovery.lab.layout import Layout
from recovery.lab.screens import bmc, dcgm, fabric, klog, smi
from recovery.lab.state import Happening, NodeState
from recovery.registry import collect

_COUNTERS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_remote_physical_errors",
    "VL15_dropped",
    "port_xmit_wait",
)


@functools.cache
def shelf() -> Mapping[str, Fault]:
    """All faults by name."""
    return collect("recovery.lab.faults", Fault)


def machine_of(state: NodeState) -> Machine:
    """The hardware with this node's faults in it."""
    machine = healthy(state.name, state.index, state.leaf)
    for name, value in state.faults.items():
        machine = shelf()[name].change(machine, value)
    return machine


def write_node(layout: Layout, state: NodeState) -> None:
    """Writes state, screens, logs and replaced tools of one node."""
    machine = machine_of(state)
    etc = layout.node(state.name) / "etc"
    _write(layout.state(state.name), state.to_json())
    _write(etc / "booted", str(int(state.booted_at)))
    _flag(etc / "disk_full", on="disk-full" in state.faults)
    _write_files(etc / "screens", _screens(state, machine))
    _write_tools(layout.node(state.name) / "bin", state)
    _write_own_tree(layout.node(state.name) / "root", state, machine)
    _write_infiniband(layout, state, machine)


def write_fabric(layout: Layout, states: Iterable[NodeState]) -> None:
    """Writes what the bandwidth tools need to know of all nodes."""
    _write(layout.fabric, json.dumps({s.name: _fabric_row(s) for s in states}))


def _fabric_row(state: NodeState) -> dict[str, object]:
    machine = machine_of(state)
    return {
        "answers": state.power and "silent" not in state.faults,
        "leaf": state.leaf,
        "gpus": len(machine.present),
        "links": min((g.links for g in machine.present), default=0),
        "rates": [h.rate_gbit for h in machine.hcas],
        "slow_peers": list(machine.slow_peers),
        "hang": [w for w in state.faults.get("hang", "").split(",") if w],
    }


def _screens(state: NodeState, machine: Machine) -> dict[str, str]:
    boots = [h for h in state.happenings if h.what == "boot"]
    last = boots[-2] if len(boots) > 1 else None
    this_boot = _boot_log(state, machine, boots[-1])
    last_boot = _boot_log(state, machine, last, until=boots[-1].at) if last else ()
    booted = (boots[-1].at, last.at if last else 0.0)
    kernel = [tuple(x for x in lines if klog.is_kernel(x[1])) for lines in (this_boot, last_boot)]
    logs = klog.render(kernel[0], last_boot, booted, state.name)
    logs["syslog"] = klog.syslog(last_boot, booted[1], state.name) + klog.syslog(
        this_boot, booted[0], state.name
    )
    screens = (smi.render(machine), fabric.render(machine), dcgm.render(machine))
    return {**logs, **bmc.render(state.happenings), **screens[0], **screens[1], **screens[2]}


def _boot_log(
    state: NodeState, machine: Machine, boot: Happening, *, until: float = float("inf")
) -> tuple[klog.Line, ...]:
    """The kernel lines from this boot to ``until``: the boot's own, then those of the faults.

    A fault that was there before the boot shows itself again as the driver loads.
    """
    end = [h.at for h in state.happenings if h.what == "ac-lost" and boot.at < h.at <= until]
    lines = [*klog.boot_lines(machine), *klog.routine((end or [0.0])[-1] - boot.at)]
    struck = {h.what: h.at for h in state.happenings if h.what in state.faults}
    for name, at in struck.items():
        if at >= until:
            continue
        fault = shelf()[name]
        words = fault.words(machine, state.faults[name])
        start = max(at - boot.at, 0.6)
        lines += [(start + after, text) for after, text in klog.filled(fault.log, words)]
    return tuple(sorted(lines, key=lambda line: line[0]))


def _write_tools(folder: Path, state: NodeState) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, value in state.faults.items():
        for tool, script in shelf()[name].tools(value).items():
            _write(folder / tool, script)
            (folder / tool).chmod(0o755)


def _write_own_tree(root: Path, state: NodeState, machine: Machine) -> None:
    """Files of the kernel that are the node's own; the stand-in ``cat`` looks here first."""
    _write_files(
        root / "proc",
        {
            "uptime": "",
            "sys/kernel/random/boot_id": f"{state.boot_id}\n",
            "sys/kernel/hostname": f"{state.name}\n",
            "driver/nvidia/version": (
                f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {machine.driver}  "
                "Release Build  (dvs-builder@U16-I3-C03-10-4)\n"
                "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
            ),
        },
    )
    _write_files(root / "sys", {"module/nvidia/version": f"{machine.driver}\n"})
    _write_files(root / "etc", {"hostname": f"{state.name}\n"})


def _write_infiniband(layout: Layout, state: NodeState, machine: Machine) -> None:
    """``/sys/class/infiniband`` of the node: most nodes share the tree of the healthy machine."""
    link = layout.node(state.name) / "root" / "sys" / "class" / "infiniband"
    well = all(h.active and h.rate_gbit == 400 for h in machine.hcas)
    tree = layout.root / "infiniband" / ("well" if well else state.name)
    if not well or not tree.exists():
        _write_files(tree, _infiniband(machine))
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.readlink() != tree:
        link.unlink(missing_ok=True)
        link.symlink_to(tree)


def _infiniband(machine: Machine) -> dict[str, str]:
    return {
        f"{h.name}/ports/1/{file}": text
        for h in machine.hcas
        for file, text in (
            ("state", "4: ACTIVE\n" if h.active else "1: DOWN\n"),
            ("phys_state", "5: LinkUp\n" if h.active else "2: Polling\n"),
            ("rate", f"{h.rate_gbit} Gb/sec ({fabric.SPEEDS.get(h.rate_gbit, '4X')})\n"),
            *((f"counters/{name}", "0\n") for name in _COUNTERS),
        )
    }


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    """Writes what has changed, whole or not at all: a tool may be reading it this moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    if path.exists() and path.read_bytes() == content:
        return
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(content)
    draft.replace(path)


def _flag(path: Path, *, on: bool) -> None:
    if on:
        path.touch()
    else:
        path.unlink(missing_ok=True)
