"""The names of values: from the paths of ``-q`` and XML and the headers of CSV to one spelling.

Source: ``nvidia-smi --help-query-gpu`` of drivers 470 to 610; ``-q`` and ``-q -x`` of the same.
"""

from __future__ import annotations

from collections.abc import Sequence

REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}
"""Clock event reasons and their bits. Source: nvml.h, nvmlClocksEventReason*."""

_REASON_WORDS = {
    "idle": "gpu_idle",
    "applications clocks setting": "applications_clocks_setting",
    "sw power cap": "sw_power_cap",
    "hw slowdown": "hw_slowdown",
    "hw thermal slowdown": "hw_thermal_slowdown",
    "hw power brake slowdown": "hw_power_brake_slowdown",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal_slowdown",
    "display clock setting": "display_clocks_setting",
}

_QUERY = {
    "product name": "name",
    "gpu uuid": "uuid",
    "serial number": "serial",
    "vbios version": "vbios_version",
    "persistence mode": "persistence_mode",
    "mig mode/current": "mig.mode.current",
    "mig mode/pending": "mig.mode.pending",
    "gpu recovery action": "gpu_recovery_action",
    "gpu reset status/reset required": "reset.required",
    "gpu reset status/drain and reset recommended": "reset.recommended",
    "pci/bus id": "pci.bus_id",
    "pci/gpu link info/pcie generation/max": "pcie.link.gen.max",
    "pci/gpu link info/pcie generation/current": "pcie.link.gen.current",
    "pci/gpu link info/pcie generation/device max": "pcie.link.gen.gpumax",
    "pci/gpu link info/pcie generation/host max": "pcie.link.gen.hostmax",
    "pci/gpu link info/link width/max": "pcie.link.width.max",
    "pci/gpu link info/link width/current": "pcie.link.width.current",
    "pci/replays since reset": "pcie.replays",
    "fan speed": "fan.speed",
    "performance state": "pstate",
    "fb memory usage/total": "memory.total",
    "fb memory usage/reserved": "memory.reserved",
    "fb memory usage/used": "memory.used",
    "fb memory usage/free": "memory.free",
    "compute mode": "compute_mode",
    "utilization/gpu": "utilization.gpu",
    "ecc mode/current": "ecc.mode.current",
    "ecc mode/pending": "ecc.mode.pending",
    "ecc errors": "ecc.errors",
    "ecc errors/channel repair pending": "repair.channel.pending",
    "ecc errors/tpc repair pending": "repair.tpc.pending",
    "ecc errors/unrepairable memory": "repair.unrepairable",
    "retired pages/single bit ecc": "retired_pages.single_bit_ecc.count",
    "retired pages/double bit ecc": "retired_pages.double_bit.count",
    "retired pages/pending page blacklist": "retired_pages.pending",
    "retired pages/pending": "retired_pages.pending",
    "remapped rows": "remapped_rows.pending",
    "remapped rows/correctable error": "remapped_rows.correctable",
    "remapped rows/uncorrectable error": "remapped_rows.uncorrectable",
    "remapped rows/pending": "remapped_rows.pending",
    "remapped rows/remapping failure occurred": "remapped_rows.failure",
    "remapped rows/bank remap availability histogram/none": "remapped_rows.histogram.none",
    "temperature/gpu current temp": "temperature.gpu",
    "temperature/gpu t.limit temp": "temperature.gpu.tlimit",
    "temperature/gpu slowdown temp": "temperature.slowdown",
    "temperature/gpu max operating temp": "temperature.max",
    "temperature/gpu slowdown t.limit temp": "temperature.tlimit.slowdown",
    "temperature/gpu max operating t.limit temp": "temperature.tlimit.max",
    "temperature/memory current temp": "temperature.memory",
    "temperature/memory max operating temp": "temperature.memory.max",
    "clocks/sm": "clocks.current.sm",
    "max clocks/sm": "clocks.max.sm",
    "fabric": "fabric.state",
    "fabric/state": "fabric.state",
    "fabric/status": "fabric.status",
    "fabric/cliqueid": "fabric.cliqueId",
    "fabric/clusteruuid": "fabric.clusterUuid",
    "fabric/health/summary": "fabric.health.summary",
    "fabric/health/bandwidth": "fabric.health.bandwidth",
    "fabric/health/route recovery in progress": "fabric.health.route_recovery_in_progress",
    "fabric/health/route unhealthy": "fabric.health.route_unhealthy",
    "fabric/health/access timeout recovery": "fabric.health.access_timeout_recovery",
    "fabric/health/incorrect configuration": "fabric.health.incorrect_configuration",
}
_POWER = {
    "average power draw": "power.draw",
    "power draw": "power.draw",
    "instantaneous power draw": "power.draw.instant",
    "current power limit": "power.limit",
    "power limit": "power.limit",
    "enforced power limit": "power.limit",
    "default power limit": "power.default_limit",
    "max power limit": "power.max_limit",
}
_ECC_LEAF = {
    "sram correctable": "corrected.{}.sram",
    "sram uncorrectable": "uncorrected.{}.sram",
    "sram uncorrectable parity": "uncorrected.{}.sram.parity",
    "sram uncorrectable sec-ded": "uncorrected.{}.sram.secded",
    "dram correctable": "corrected.{}.dram",
    "dram uncorrectable": "uncorrected.{}.dram",
    "sram threshold exceeded": "uncorrected.{}.sram.thresholdExceeded",
    # Drivers before 450: single bit = corrected, double bit = uncorrected, by structure
    "single bit/device memory": "corrected.{}.dram",
    "double bit/device memory": "uncorrected.{}.dram",
    "single bit/total": "corrected.{}.total",
    "double bit/total": "uncorrected.{}.total",
}

_CSV = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_serial": "serial",
    "gpu_bus_id": "pci.bus_id",
    "clocks.sm": "clocks.current.sm",
    "pcie.link.gen.gpucurrent": "pcie.link.gen.current",
    "power.draw.average": "power.draw",
    "enforced.power.limit": "power.limit",
    "kmd_version": "driver_version",
    "ecc.errors.corrected.volatile.device_memory": "ecc.errors.corrected.volatile.dram",
    "ecc.errors.corrected.aggregate.device_memory": "ecc.errors.corrected.aggregate.dram",
    "ecc.errors.uncorrected.volatile.device_memory": "ecc.errors.uncorrected.volatile.dram",
    "ecc.errors.uncorrected.aggregate.device_memory": "ecc.errors.uncorrected.aggregate.dram",
}

_XML = {
    "product_name": "name",
    "uuid": "uuid",
    "serial": "serial",
    "vbios_version": "vbios_version",
    "persistence_mode": "persistence_mode",
    "mig_mode/current_mig": "mig.mode.current",
    "mig_mode/pending_mig": "mig.mode.pending",
    "gpu_recovery_action": "gpu_recovery_action",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "pcie.link.gen.max",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "pcie.link.gen.current",
    "pci/pci_gpu_link_info/pcie_gen/max_device_link_gen": "pcie.link.gen.gpumax",
    "pci/pci_gpu_link_info/pcie_gen/max_host_link_gen": "pcie.link.gen.hostmax",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "pcie.link.width.max",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "pcie.link.width.current",
    "pci/replay_counter": "pcie.replays",
    "fan_speed": "fan.speed",
    "performance_state": "pstate",
    "fb_memory_usage/total": "memory.total",
    "fb_memory_usage/reserved": "memory.reserved",
    "fb_memory_usage/used": "memory.used",
    "fb_memory_usage/free": "memory.free",
    "compute_mode": "compute_mode",
    "utilization/gpu_util": "utilization.gpu",
    "ecc_mode/current_ecc": "ecc.mode.current",
    "ecc_mode/pending_ecc": "ecc.mode.pending",
    "ecc_errors": "ecc.errors",
    "ecc_errors/channel_repair_pending": "repair.channel.pending",
    "ecc_errors/tpc_repair_pending": "repair.tpc.pending",
    "ecc_errors/unrepairable_memory": "repair.unrepairable",
    "retired_pages/multiple_single_bit_retirement/retired_count": (
        "retired_pages.single_bit_ecc.count"
    ),
    "retired_pages/double_bit_retirement/retired_count": "retired_pages.double_bit.count",
    "retired_pages/pending_blacklist": "retired_pages.pending",
    "retired_pages/pending_retirement": "retired_pages.pending",
    "remapped_rows": "remapped_rows.pending",
    "remapped_rows/remapped_row_corr": "remapped_rows.correctable",
    "remapped_rows/remapped_row_unc": "remapped_rows.uncorrectable",
    "remapped_rows/remapped_row_pending": "remapped_rows.pending",
    "remapped_rows/remapped_row_failure": "remapped_rows.failure",
    "remapped_rows/row_remapper_histogram/row_remapper_histogram_none": (
        "remapped_rows.histogram.none"
    ),
    "temperature/gpu_temp": "temperature.gpu",
    "temperature/gpu_temp_tlimit": "temperature.gpu.tlimit",
    "temperature/gpu_temp_slow_threshold": "temperature.slowdown",
    "temperature/gpu_temp_max_gpu_threshold": "temperature.max",
    "temperature/gpu_temp_slow_tlimit_threshold": "temperature.tlimit.slowdown",
    "temperature/gpu_temp_max_gpu_tlimit_threshold": "temperature.tlimit.max",
    "temperature/memory_temp": "temperature.memory",
    "temperature/gpu_temp_max_mem_threshold": "temperature.memory.max",
    "clocks/sm_clock": "clocks.current.sm",
    "max_clocks/sm_clock": "clocks.max.sm",
    "fabric/state": "fabric.state",
    "fabric/status": "fabric.status",
    "fabric/cliqueid": "fabric.cliqueId",
    "fabric/clique_id": "fabric.cliqueId",
    "fabric/clusteruuid": "fabric.clusterUuid",
    "fabric/cluster_uuid": "fabric.clusterUuid",
    "fabric/health/summary": "fabric.health.summary",
    "fabric/health/bandwidth": "fabric.health.bandwidth",
    "fabric/health/route_recovery_in_progress": "fabric.health.route_recovery_in_progress",
    "fabric/health/route_unhealthy": "fabric.health.route_unhealthy",
    "fabric/health/access_timeout_recovery": "fabric.health.access_timeout_recovery",
    "fabric/health/incorrect_configuration": "fabric.health.incorrect_configuration",
}
_XML_POWER = {
    "power_draw": "power.draw",
    "average_power_draw": "power.draw",
    "instant_power_draw": "power.draw.instant",
    "power_limit": "power.limit",
    "enforced_power_limit": "power.limit",
    "current_power_limit": "power.limit",
    "default_power_limit": "power.default_limit",
    "max_power_limit": "power.max_limit",
}


def of_query(path: Sequence[str]) -> str | None:
    """Our name for a path of ``-q``, lower case; None for what no check reads."""
    section, leaf = path[0], path[-1]
    if section in ("clocks event reasons", "clocks throttle reasons"):
        reason = _REASON_WORDS.get(leaf)
        return f"clocks_event_reasons.{reason}" if reason else None
    if section in ("power readings", "gpu power readings") and len(path) == 2:
        return _POWER.get(leaf)
    if section == "ecc errors" and len(path) > 2:
        name = _ECC_LEAF.get("/".join(path[2:]))
        return f"ecc.errors.{name.format(path[1])}" if name else None
    return _QUERY.get("/".join(path))


def of_xml(path: Sequence[str]) -> str | None:
    """Our name for a path of tags below ``<gpu>``; None for what no check reads."""
    section, leaf = path[0], path[-1]
    for prefix in ("clocks_event_reason_", "clocks_throttle_reason_"):
        if leaf.startswith(prefix) and len(path) == 2:
            return f"clocks_event_reasons.{leaf.removeprefix(prefix)}"
    if section in ("power_readings", "gpu_power_readings") and len(path) == 2:
        return _XML_POWER.get(leaf)
    if section == "ecc_errors" and len(path) > 2:
        words = "/".join(path[2:]).replace("secded", "sec-ded").replace("_", " ")
        name = _ECC_LEAF.get(words)
        return f"ecc.errors.{name.format(path[1])}" if name else None
    return _XML.get("/".join(path))


def of_csv(header: str) -> str:
    """Our name for a CSV column: without its unit, in the newer spelling."""
    name = header.partition(" [")[0].strip().strip('"')
    name = name.replace("clocks_throttle_reasons", "clocks_event_reasons")
    return _CSV.get(name, name)
