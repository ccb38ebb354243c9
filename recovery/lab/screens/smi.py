"""The screens of nvidia-smi.

Source: nvidia-smi of the driver branches 535 to 570 (table, -L, --query-gpu, topo -m, nvlink -s).
"""

from __future__ import annotations

from recovery.lab.hardware import BUSY_MIB, CUDA, GPU_NAME, IDLE_MIB, TOTAL_MIB, Gpu, Machine
from recovery.lab.screens.fields import query
from recovery.lab.screens.smi_q import long_listing


def render(machine: Machine) -> dict[str, str]:
    """All screens of nvidia-smi by file name; ``@NOW@`` stands for the time of asking."""
    if not machine.present:
        return {"nvidia-smi": "No devices were found\n"}
    return {
        "nvidia-smi": table(machine, used_mib=IDLE_MIB),
        "nvidia-smi-busy": table(machine, used_mib=BUSY_MIB),
        "nvidia-smi-L": listing(machine),
        "nvidia-smi-q": long_listing(machine),
        "nvidia-smi-topo-m": topology(machine),
        "nvidia-smi-nvlink-s": nvlink(machine),
        "nvidia-smi-nvlink-e": nvlink_errors(machine),
        "nvidia-smi-query": query(machine, used_mib=IDLE_MIB),
        "nvidia-smi-query-busy": query(machine, used_mib=BUSY_MIB),
    }


def listing(machine: Machine) -> str:
    """``nvidia-smi -L``."""
    rows = (f"GPU {i}: {GPU_NAME} (UUID: {g.uuid})\n" for i, g in enumerate(machine.present))
    return "".join(rows)


_BAR = "+-----------------------------------------+------------------------+----------------------+"
_LINE = (
    "+-----------------------------------------------------------------------------------------+"
)
_HEAD = f"""{_LINE}
| NVIDIA-SMI {{driver:<23}}Driver Version: {{driver:<15}}CUDA Version: {{cuda:<9}}|
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""
_FOOT = f"""
{_LINE}
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
"""
_NONE = (
    "|  No running processes found                                                             |\n"
)


def table(machine: Machine, *, used_mib: int) -> str:
    """``nvidia-smi`` without arguments; the tool fills in ``@NOW@`` and ``@PID@`` (10 wide)."""
    rows = [_table_row(i, g, used_mib) for i, g in enumerate(machine.present)]
    head = _HEAD.format(driver=machine.driver, cuda=CUDA)
    busy = "".join(_process_row(i) for i in range(len(rows))) if used_mib > IDLE_MIB else _NONE
    return f"@NOW@       \n{head}{''.join(rows)}{_FOOT}{busy}{_LINE}\n"


def _table_row(index: int, gpu: Gpu, used_mib: int) -> str:
    memory = f"{used_mib}MiB / {TOTAL_MIB:>6}MiB"
    return (
        f"|{index:>4}  {GPU_NAME:<31}On  |   {gpu.bus_id} Off |{gpu.uncorrected:>21} |\n"
        f"| N/A {gpu.temp_c:>4}C    P0 {gpu.power_w:>14.0f}W /  700W |{memory:>23} |"
        f"      0%      Default |\n"
        f"|{'':41}|{'':24}|{'Disabled':>21} |\n"
        f"{_BAR}\n"
    )


def _process_row(index: int) -> str:
    return f"|{index:>5}   N/A  N/A@PID@      C   python3{BUSY_MIB:>42}MiB |\n"


def topology(machine: Machine) -> str:
    """``nvidia-smi topo -m``, with the underlining that the tool prints even into a pipe."""
    gpus, n_nics = machine.present, len(machine.hcas)
    names = [f"GPU{i}" for i in range(len(gpus))] + [f"NIC{k}" for k in range(n_nics)]
    tail = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
    head = "\t\x1b[4m" + "\t".join((*names, *tail)) + "\x1b[0m\n"
    rows = [_gpu_row(machine, i) for i in range(len(gpus))]
    rows += [_nic_row(machine, k) for k in range(n_nics)]
    nics = "".join(f"  NIC{k}: {h.name}\n" for k, h in enumerate(machine.hcas))
    return f"{head}{''.join(rows)}\n{_LEGEND}\nNIC Legend:\n\n{nics}\n"


def _gpu_row(machine: Machine, index: int) -> str:
    gpu = machine.present[index]
    cells = [" X " if other is gpu else _link(gpu, other) for other in machine.present] + [
        _near(gpu.slot, k) for k in range(len(machine.hcas))
    ]
    cpus = "0-55,112-167" if gpu.slot < 4 else "56-111,168-223"
    row = "\t".join((f"GPU{index}", *cells, cpus, str(gpu.slot // 4)))
    return f"{row}\t\tN/A\n"


def _nic_row(machine: Machine, k: int) -> str:
    cells = [_near(g.slot, k) for g in machine.present]
    cells += [" X " if j == k else _near(j, k, same="X") for j in range(len(machine.hcas))]
    return "\t".join((f"NIC{k}", *cells)) + "\t\t\t\t\n"


def _link(one: Gpu, two: Gpu) -> str:
    links = min(one.links, two.links)
    if links:
        return f"NV{links}"
    return "NODE" if one.slot // 4 == two.slot // 4 else "SYS"


def _near(slot: int, k: int, *, same: str = "PIX") -> str:
    if slot == k:
        return same
    return "NODE" if slot // 4 == k // 4 else "SYS"


_LEGEND = """Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""  # noqa: E501 - the tool's own lines


def nvlink(machine: Machine) -> str:
    """``nvidia-smi nvlink -s``."""
    return _per_link(machine, up="26.562 GB/s", down="<inactive>")


def nvlink_errors(machine: Machine) -> str:
    """``nvidia-smi nvlink -e``: the error counters, all zero on links that are up."""
    out = []
    for index, gpu in enumerate(machine.present):
        out.append(f"GPU {index}: {GPU_NAME} (UUID: {gpu.uuid})\n")
        for link in range(18):
            if link in gpu.links_down:
                continue
            out += [f"\t Link {link}: {kind} Errors: 0\n" for kind in ("Replay", "Recovery", "CRC")]
    return "".join(out)


def _per_link(machine: Machine, *, up: str, down: str) -> str:
    out = []
    for index, gpu in enumerate(machine.present):
        out.append(f"GPU {index}: {GPU_NAME} (UUID: {gpu.uuid})\n")
        out += [f"\t Link {k}: {down if k in gpu.links_down else up}\n" for k in range(18)]
    return "".join(out)
