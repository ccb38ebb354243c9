"""Does every GPU answer, and does the driver ask for a reset, a drain or a reboot?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading import cell
from recovery.reading.smi import claims_any, read_smi
from recovery.reading.smi_errors import status_trouble
from recovery.reading.smi_findings import cut_short, of_trouble, where
from recovery.reading.smi_words import Form, Gpu, Snapshot

_RESET = (
    "save nvidia-bug-report.sh, read the kernel log for Xid of this GPU,"
    " then nvidia-smi --gpu-reset -i {bus}; reboot if that fails"
)
_ACTIONS = (
    ("reboot", "drain the node and reboot it"),
    ("drain and reset", "drain the node, then nvidia-smi --gpu-reset -i {bus}"),
    ("drain p2p", "drain the node: peers must stop using this GPU; then reset it"),
    ("reset", "nvidia-smi --gpu-reset -i {bus}; reboot if that fails"),
    ("", "read nvidia-smi -q on the node and do what it asks"),
)
_BUSY_PERCENT = 50


def _nothing(raw: Mapping[str, Any]) -> None:
    return None


def _parse(printed: Printed) -> Snapshot:
    return read_smi(printed)


def _judge(seen: Snapshot, expected: None) -> Verdict:
    found = [of_trouble(trouble) for trouble in seen.troubles]
    found += cut_short(seen)
    for gpu in seen.gpus:
        found += _failed_readings(seen, gpu)
        found += _action(seen, gpu)
    status = status_trouble(seen.exit_status)
    if status is not None and not any(f.level.blocks for f in found):
        found.append(of_trouble(status))
    n_gpus = f"{len(seen.gpus)} GPUs answer"
    spoken = any(gpu.text("gpu_recovery_action") for gpu in seen.gpus)
    asks = "the driver asks for nothing" if spoken else "recovery actions are not in this answer"
    return verdict(found, otherwise=f"{n_gpus}; {asks}")


def _failed_readings(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    names = gpu.failed
    if not names:
        return []
    listed = ", ".join(gpu.printed.get(name, name) for name in names[:6])
    place = where(seen, gpu.label)
    words = f"{place}: the driver cannot read {listed}"
    bus = gpu.text("pci.bus_id") or gpu.label
    lost = any(cell.is_lost(gpu.values[name]) for name in names)
    if lost or len(names) > 1 or _wedged(seen, gpu):
        code = "gpu.state.lost" if lost else "gpu.state.sick"
        remedy = _RESET.format(bus=bus)
        return [failed(words, remedy=remedy, component=gpu.label, code=code)]
    remedy = "ask again in a few seconds; only a repeated failure is a fault"
    code = "gpu.state.reading-failed"
    return [warned(words, remedy=remedy, component=gpu.label, code=code)]


def _wedged(seen: Snapshot, gpu: Gpu) -> bool:
    """Busy with no process on it: with a failed reading, a GPU that hangs in dead work."""
    if seen.processes is None or any(p.gpu == gpu.label for p in seen.processes):
        return False
    return (gpu.number("utilization.gpu") or 0.0) >= _BUSY_PERCENT


def _action(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    asked = _asked(gpu)
    if asked is None:
        return []
    bus = gpu.text("pci.bus_id") or gpu.label
    remedy = next(words for key, words in _ACTIONS if key in asked.lower()).format(bus=bus)
    words = f"{where(seen, gpu.label)}: the driver asks for {asked!r}"
    return [failed(words, remedy=remedy, component=gpu.label, code="gpu.state.recovery-action")]


def _asked(gpu: Gpu) -> str | None:
    action = gpu.text("gpu_recovery_action")
    if action is not None and action.lower() != "none":
        return action
    if gpu.says("reset.required", "yes"):
        return "Reset"
    return "Drain and Reset" if gpu.says("reset.recommended", "yes") else None


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    found: dict[str, Any] = {"gpus": seen.n_gpus}
    for trouble in seen.troubles:
        named = {"bad_bus": trouble.bus, "reason": trouble.reason, "bad_field": trouble.field}
        found.update({key: value for key, value in named.items() if value and key not in found})
    if seen.nvml is not None:
        found["nvml_version"] = seen.nvml
    found.update(_failed_facts(seen))
    if seen.form is Form.TABLE and seen.processes is not None:
        found["processes"] = len(seen.processes)
    if any(gpu.has("gpu_recovery_action") for gpu in seen.gpus):
        found["recovery_action"] = {g.label: a for g in seen.gpus if (a := _asked(g))}
    return found


def _failed_facts(seen: Snapshot) -> dict[str, Any]:
    """By GPU; for the table the fields of a single bad GPU are one list, as people say it."""
    by_gpu = {g.label: [g.printed.get(n, n) for n in g.failed] for g in seen.gpus if g.failed}
    if seen.form is Form.CSV:
        absent = {g.label: [g.printed.get(n, n) for n in g.absent] for g in seen.gpus if g.absent}
        return {"absent": absent, "error": by_gpu} if absent or by_gpu else {}
    if not by_gpu:
        return {}
    fields = next(iter(by_gpu.values())) if len(by_gpu) == 1 else by_gpu
    return {"err_gpus": list(by_gpu), "err_fields": fields}


GPU_STATE = Check(
    name="gpu.state",
    question="Does every GPU answer, and does the driver ask for a reset or a reboot?",
    command="nvidia-smi -q",
    parse=_parse,
    expect=_nothing,
    judge=_judge,
    facts=_facts,
    recognises=claims_any,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    timeout_s=90.0,
)
