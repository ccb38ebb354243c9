"""Faults of GPUs.

Source of the kernel lines: NVIDIA's Xid catalogue and published kernel logs of driver 550.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recovery.lab.fault import Fault
from recovery.lab.hardware import Gpu, Machine


def _with_gpu(machine: Machine, slot: int, changed: Gpu) -> Machine:
    gpus = tuple(changed if g.slot == slot else g for g in machine.gpus)
    return replace(machine, gpus=gpus)


def _lose(machine: Machine, value: str) -> Machine:
    slot = int(value)
    return _with_gpu(machine, slot, replace(machine.gpus[slot], lost=True))


def _strike(machine: Machine, value: str) -> Machine:
    slot = int(value)
    hit = replace(machine.gpus[slot], uncorrected=3, remap_pending=True)
    return _with_gpu(machine, slot, hit)


def _cut_links(machine: Machine, value: str) -> Machine:
    slot, links = _links(value)
    return _with_gpu(machine, slot, replace(machine.gpus[slot], links_down=links))


def _links(value: str) -> tuple[int, tuple[int, ...]]:
    slot, _, links = value.partition(":")
    return int(slot), tuple(int(k) for k in links.split(","))


def _address(machine: Machine, value: str) -> Mapping[str, object]:
    gpu = machine.gpus[int(value.partition(":")[0])]
    links = _links(value)[1] if ":" in value else (0,)
    return {"bus": gpu.bus.lower(), "uuid": gpu.uuid, "serial": gpu.serial, "link": links[0]}


GPU_LOST = Fault(
    name="gpu-lost",
    about="a GPU has fallen off the bus (Xid 79): missing in every tool",
    default="5",
    value_help="GPU slot, 0 to 7",
    change=_lose,
    words=_address,
    log="""
0.000000 pcieport 0000:{bus}:01.0: AER: Uncorrected (Fatal) error received: 0000:{bus}:01.0
0.000019 pcieport 0000:{bus}:01.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)
0.102142 NVRM: GPU at PCI:0000:{bus}:00: {uuid}
0.102161 NVRM: GPU Board Serial Number: {serial}
0.102168 NVRM: Xid (PCI:0000:{bus}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
0.102179 NVRM: GPU 0000:{bus}:00.0: GPU has fallen off the bus.
0.102183 NVRM: GPU 0000:{bus}:00.0: GPU serial number is {serial}.
0.102231 NVRM: A GPU crash dump has been created. If possible, please run
0.102231 NVRM: nvidia-bug-report.sh as root to collect this data before
0.102231 NVRM: the NVIDIA kernel module is unloaded.
""",  # noqa: E501 - the kernel's own lines
)

ECC = Fault(
    name="ecc",
    about="uncorrectable memory errors (Xid 48, 63); a row remap waits for a reset",
    default="2",
    value_help="GPU slot, 0 to 7",
    change=_strike,
    until_reset=True,
    words=_address,
    log="""
0.000000 NVRM: GPU at PCI:0000:{bus}:00: {uuid}
0.000017 NVRM: GPU Board Serial Number: {serial}
0.000022 NVRM: Xid (PCI:0000:{bus}:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x2a7f31c80 partition 9, subpartition 1.
0.000214 NVRM: Xid (PCI:0000:{bus}:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x00000002a7f31c80) marked for remapping, reset gpu to activate.
0.000391 NVRM: Xid (PCI:0000:{bus}:00): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No
""",  # noqa: E501 - the kernel's own lines
)

NVLINK_DOWN = Fault(
    name="nvlink-down",
    about="some NVLinks of a GPU are inactive (Xid 74)",
    default="2:4,5",
    value_help="GPU slot, then the links: 2:4,5",
    change=_cut_links,
    words=_address,
    log="""
0.000000 NVRM: Xid (PCI:0000:{bus}:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link {link}(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
""",  # noqa: E501 - the kernel's own line
)
