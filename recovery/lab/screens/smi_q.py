"""``nvidia-smi -q``: the long listing, with the sections that health checks read.

Source: nvidia-smi -q of driver 550 on HGX H100.
"""

from __future__ import annotations

from recovery.lab.hardware import CUDA, GPU_NAME, TOTAL_MIB, Gpu, Machine

_WIDTH = 51

# indent by four a level; {words} are filled in for each GPU
_GPU = """
Product Name = {model}
Product Brand = NVIDIA
Product Architecture = Hopper
Display Mode = Enabled
Display Active = Disabled
Persistence Mode = Enabled
Addressing Mode = None
MIG Mode
    Current = Disabled
    Pending = Disabled
Serial Number = {serial}
GPU UUID = {uuid}
Minor Number = {slot}
VBIOS Version = 96.00.89.00.01
GPU Recovery Action = {action}
GSP Firmware Version = {driver}
PCI
    Bus = 0x{bus}
    Device = 0x00
    Domain = 0x0000
    Device Id = 0x233010DE
    Bus Id = {bus_id}
    Sub System Id = 0x16C110DE
    GPU Link Info
        PCIe Generation
            Max = 5
            Current = 5
            Device Current = 5
            Device Max = 5
            Host Max = 5
        Link Width
            Max = 16x
            Current = 16x
    Replays Since Reset = 0
    Replay Number Rollovers = 0
Fan Speed = N/A
Performance State = P0
Clocks Event Reasons
    Idle = Active
    Applications Clocks Setting = Not Active
    SW Power Cap = Not Active
    HW Slowdown = Not Active
        HW Thermal Slowdown = Not Active
        HW Power Brake Slowdown = Not Active
    Sync Boost = Not Active
    SW Thermal Slowdown = Not Active
    Display Clock Setting = Not Active
FB Memory Usage
    Total = {total} MiB
    Reserved = 531 MiB
    Used = 4 MiB
    Free = {free} MiB
Compute Mode = Default
Utilization
    Gpu = 0 %
    Memory = 0 %
ECC Mode
    Current = Enabled
    Pending = Enabled
ECC Errors
    Volatile
        SRAM Correctable = 0
        SRAM Uncorrectable Parity = 0
        SRAM Uncorrectable SEC-DED = 0
        DRAM Correctable = 0
        DRAM Uncorrectable = {uncorrected}
    Aggregate
        SRAM Correctable = 0
        SRAM Uncorrectable Parity = 0
        SRAM Uncorrectable SEC-DED = 0
        DRAM Correctable = 0
        DRAM Uncorrectable = {uncorrected}
        SRAM Threshold Exceeded = No
Retired Pages
    Single Bit ECC = N/A
    Double Bit ECC = N/A
    Pending Page Blacklist = N/A
Remapped Rows
    Correctable Error = 0
    Uncorrectable Error = {remapped}
    Pending = {pending}
    Remapping Failure Occurred = No
    Bank Remap Availability Histogram
        Max = {full_banks} bank(s)
        High = {remapped} bank(s)
        Partial = 0 bank(s)
        Low = 0 bank(s)
        None = 0 bank(s)
Temperature
    GPU Current Temp = {temp} C
    GPU T.Limit Temp = {tlimit} C
    GPU Shutdown T.Limit Temp = -8 C
    GPU Slowdown T.Limit Temp = -2 C
    GPU Max Operating T.Limit Temp = 0 C
    GPU Target Temperature = N/A
    Memory Current Temp = {memory_temp} C
    Memory Max Operating T.Limit Temp = 0 C
GPU Power Readings
    Power Draw = {power} W
    Current Power Limit = 700.00 W
    Requested Power Limit = 700.00 W
    Default Power Limit = 700.00 W
    Min Power Limit = 200.00 W
    Max Power Limit = 700.00 W
Clocks
    Graphics = 345 MHz
    SM = 345 MHz
    Memory = 2619 MHz
    Video = 765 MHz
Max Clocks
    Graphics = 1980 MHz
    SM = 1980 MHz
    Memory = 2619 MHz
    Video = 1545 MHz
Fabric
    State = Completed
    Status = Success
    CliqueId = 0
    ClusterUUID = 00000000-0000-0000-0000-000000000000
    Health
        Bandwidth = N/A
Processes = None
"""


def long_listing(machine: Machine) -> str:
    """``nvidia-smi -q``; ``@NOW@`` is filled in when asked."""
    head = (
        "\n==============NVSMI LOG==============\n\n"
        f"{'Timestamp':<55}: @NOW@\n"
        f"{'Driver Version':<55}: {machine.driver}\n"
        f"{'CUDA Version':<55}: {CUDA}\n\n"
        f"{'Attached GPUs':<55}: {len(machine.present)}\n"
    )
    return head + "\n".join(_gpu(machine, gpu) for gpu in machine.present) + "\n"


def _gpu(machine: Machine, gpu: Gpu) -> str:
    words = {
        "model": GPU_NAME,
        "driver": machine.driver,
        "slot": gpu.slot,
        "serial": gpu.serial,
        "uuid": gpu.uuid,
        "bus": gpu.bus,
        "bus_id": gpu.bus_id,
        "total": TOTAL_MIB,
        "free": TOTAL_MIB - 535,
        "uncorrected": gpu.uncorrected,
        "remapped": int(gpu.remap_pending),
        "pending": "Yes" if gpu.remap_pending else "No",
        "action": "Reset" if gpu.remap_pending else "None",
        "full_banks": 3072 - gpu.remap_pending,
        "temp": gpu.temp_c,
        "memory_temp": gpu.temp_c + 8,
        "tlimit": 87 - gpu.temp_c,
        "power": f"{gpu.power_w:.2f}",
    }
    lines = (_line(line, words) for line in _GPU.strip().splitlines())
    return f"GPU {gpu.bus_id}\n" + "".join(lines)


def _line(line: str, words: dict[str, object]) -> str:
    name, equals, value = line.partition(" = ")
    if not equals:
        return f"    {line}\n"
    return f"    {name:<{_WIDTH}}: {value.format_map(words)}\n"
