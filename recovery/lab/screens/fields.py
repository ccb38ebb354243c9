"""Every field that ``nvidia-smi --query-gpu`` knows here.

Source: ``nvidia-smi --help-query-gpu`` of driver 550.
"""

from __future__ import annotations

from recovery.lab.hardware import GPU_NAME, TOTAL_MIB, Gpu, Machine

_ABSENT = "[N/A]"

# name, unit (- for none), value; {words} are filled in for each GPU
_FIELDS = """
timestamp - @NOW@
index - {index}
count - {count}
name - {model}
gpu_name - {model}
driver_version - {driver}
uuid - {uuid}
gpu_uuid - {uuid}
serial - {serial}
gpu_serial - {serial}
pci.bus_id - {bus_id}
gpu_bus_id - {bus_id}
pci.domain - 0x0000
pci.bus - 0x{bus}
pci.device - 0x00
pci.device_id - 0x233010DE
pci.sub_device_id - 0x16C110DE
vbios_version - 96.00.89.00.01
inforom.oem - 2.1
inforom.ecc - 7.16
inforom.pwr - [N/A]
inforom.img - G520.0200.00.05
inforom.image - G520.0200.00.05
pstate - P0
temperature.gpu - {temp}
temperature.memory - {memory_temp}
temperature.gpu.tlimit - {tlimit}
fan.speed % [N/A]
persistence_mode - Enabled
compute_mode - Default
display_active - Disabled
display_mode - Enabled
accounting.mode - Disabled
driver_model.current - [N/A]
addressing_mode - None
compute_cap - 9.0
pcie.link.gen.current - 5
pcie.link.gen.gpucurrent - 5
pcie.link.gen.max - 5
pcie.link.gen.gpumax - 5
pcie.link.gen.hostmax - 5
pcie.link.width.current - 16
pcie.link.width.max - 16
ecc.mode.current - Enabled
ecc.mode.pending - Enabled
mig.mode.current - Disabled
mig.mode.pending - Disabled
gsp.mode.current - Enabled
gsp.mode.default - Enabled
power.management - Enabled
remapped_rows.correctable - 0
remapped_rows.uncorrectable - {remapped}
remapped_rows.pending - {pending}
remapped_rows.failure - No
retired_pages.single_bit_ecc.count - [N/A]
retired_pages.sbe - [N/A]
retired_pages.double_bit.count - [N/A]
retired_pages.dbe - [N/A]
retired_pages.pending - [N/A]
fabric.state - Completed
fabric.status - Success
gpu_recovery_action - {action}
memory.total MiB {total}
memory.used MiB {used}
memory.free MiB {free}
memory.reserved MiB 531
utilization.gpu % 0
utilization.memory % 0
power.draw W {power}
power.draw.average W {power}
power.draw.instant W {power}
power.limit W 700.00
enforced.power.limit W 700.00
power.default_limit W 700.00
power.min_limit W 200.00
power.max_limit W 700.00
clocks.gr MHz 345
clocks.current.graphics MHz 345
clocks.sm MHz 345
clocks.current.sm MHz 345
clocks.mem MHz 2619
clocks.current.memory MHz 2619
clocks.video MHz 765
clocks.current.video MHz 765
clocks.max.gr MHz 1980
clocks.max.graphics MHz 1980
clocks.max.sm MHz 1980
clocks.max.mem MHz 2619
clocks.max.memory MHz 2619
clocks.applications.gr MHz 1980
clocks.applications.graphics MHz 1980
clocks.applications.mem MHz 2619
clocks.applications.memory MHz 2619
clocks.default_applications.gr MHz 1980
clocks.default_applications.graphics MHz 1980
clocks.default_applications.mem MHz 2619
clocks.default_applications.memory MHz 2619
"""
_COUNTED = ("device_memory", "dram", "sram", "l2_cache", "total")
_NO_COUNTER = ("l1_cache", "register_file", "texture_memory", "cbu")
_PLACES = (*_COUNTED, *_NO_COUNTER)
_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sw_thermal_slowdown",
    "sync_boost",
)


def query(machine: Machine, *, used_mib: int) -> str:
    """One field a line: name, unit or ``-``, then a value a GPU, separated by tabs."""
    columns = [fields(machine, i, used_mib=used_mib) for i in range(len(machine.present))]
    return "".join(
        "\t".join((name, unit, *(column[name][1] for column in columns))) + "\n"
        for name, (unit, _) in columns[0].items()
    )


def fields(machine: Machine, index: int, *, used_mib: int) -> dict[str, tuple[str, str]]:
    """One GPU's fields: name -> (unit, value)."""
    gpu = machine.present[index]
    words = {
        "index": index,
        "count": len(machine.present),
        "model": GPU_NAME,
        "driver": machine.driver,
        "total": TOTAL_MIB,
        "used": used_mib,
        "free": TOTAL_MIB - used_mib - 531,
        **_gpu_words(gpu),
    }
    known = {}
    for line in _FIELDS.strip().splitlines():
        name, unit, value = line.split(" ", 2)
        known[name] = (unit, value.format_map(words))
    return {**known, **_ecc_fields(gpu), **_reason_fields()}


def _gpu_words(gpu: Gpu) -> dict[str, object]:
    return {
        "uuid": gpu.uuid,
        "serial": gpu.serial,
        "bus": gpu.bus,
        "bus_id": gpu.bus_id,
        "temp": gpu.temp_c,
        "memory_temp": gpu.temp_c + 8,
        "tlimit": 87 - gpu.temp_c,
        "power": f"{gpu.power_w:.2f}",
        "remapped": int(gpu.remap_pending),
        "pending": "Yes" if gpu.remap_pending else "No",
        "action": "Reset" if gpu.remap_pending else "None",
    }


def _ecc_fields(gpu: Gpu) -> dict[str, tuple[str, str]]:
    out = {}
    for kind in ("corrected", "uncorrected"):
        hit = gpu.uncorrected if kind == "uncorrected" else 0
        for span in ("volatile", "aggregate"):
            for place in _PLACES:
                count = hit if place in ("device_memory", "dram", "total") else 0
                value = _ABSENT if place in _NO_COUNTER else str(count)
                out[f"ecc.errors.{kind}.{span}.{place}"] = ("-", value)
    return out


def _reason_fields() -> dict[str, tuple[str, str]]:
    out = {}
    for family in ("clocks_event_reasons", "clocks_throttle_reasons"):
        out[f"{family}.active"] = ("-", "0x0000000000000001")
        out[f"{family}.supported"] = ("-", "0x00000000000001FF")
        for reason in _REASONS:
            out[f"{family}.{reason}"] = ("-", "Active" if reason == "gpu_idle" else "Not Active")
    return out
