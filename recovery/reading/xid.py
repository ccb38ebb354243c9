"""What an Xid code means: how bad, what it concerns, what to do, who says so.

Codes 1-161 follow the catalogue that NVIDIA published in October 2025 (as carried by
leptonai/gpud), later ones gpud's own table; where monitors disagree (gpud, NVSentinel, AWS,
Azure NHC, Meta GCM, imbue) the catalogue's immediate action is taken. The wording is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Severity(IntEnum):
    """How much of the machine a code puts in doubt."""

    INFO = 0
    APP = 1
    DEGRADED = 2
    FATAL = 3


class Action(StrEnum):
    """What a code asks for. The order of `LADDER` is the order of escalation."""

    NONE = "none"
    RESTART_APP = "restart_app"
    FOLLOW_OTHER = "follow_other"
    RESET_GPU = "reset_gpu"
    REBOOT_NODE = "reboot_node"
    POWER_CYCLE = "power_cycle"
    ISOLATE = "isolate"
    UPDATE_SW = "update_sw"
    DECODE = "decode"  # NVLink 5: the rest of the line decides
    READ_ACTION = "read_action"  # 154: the line names the action


LADDER = (
    Action.RESTART_APP,
    Action.RESET_GPU,
    Action.REBOOT_NODE,
    Action.POWER_CYCLE,
    Action.ISOLATE,
)
"""From the cheapest attempt to giving up on the part; two attempts a session at most."""

WHAT_TO_DO = {
    Action.NONE: "keep running; note it and watch whether it repeats",
    Action.RESTART_APP: "restart the job; on a repeat with another program run `dcgmi diag -r 3`",
    Action.FOLLOW_OTHER: "act on the other code beside it",
    Action.RESET_GPU: "drain the node, stop what holds the GPU, `nvidia-smi --gpu-reset -i {gpu}`; "
    "if that fails reboot, then power cycle, then isolate (two attempts at most)",
    Action.REBOOT_NODE: "save nvidia-bug-report, drain and reboot; if the GPU does not come back, "
    "power cycle by the BMC, then reseat or replace it",
    Action.POWER_CYCLE: "power cycle by the BMC; if the GPU does not come back, isolate the node",
    Action.ISOLATE: "take the node out of service, keep nvidia-bug-report, ask for a replacement",
    Action.UPDATE_SW: "update driver and firmware",
    Action.DECODE: "drain; check the NVLink path named on the line, reset the GPU on a repeat",
    Action.READ_ACTION: "do what the line itself asks for",
}


@dataclass(frozen=True, slots=True)
class Xid:
    """One code of the table. ``scope`` is what it concerns: gpu, link or node."""

    code: int
    severity: Severity
    action: Action
    scope: str
    meaning: str
    note: str = ""

    @property
    def source(self) -> str:
        """Who says so."""
        if self.code <= 161:
            return "NVIDIA Xid catalogue, October 2025, as carried by leptonai/gpud"
        return "leptonai/gpud components/accelerator/nvidia/xid"

    @property
    def retired(self) -> bool:
        """Claims that today's drivers do not use the code."""
        return self.meaning == _RETIRED_MEANING


_Row = tuple[str, Severity, Action, str, str, str]
_RETIRED_MEANING = "not used by today's drivers"
_RETIRED = (
    "1-7 9 10 12 14-24 26-30 33-36 42 47 49-53 55-59 65 67 73 87 90 91 108 111-118 122-124 "
    "138 142 170"
)
_I, _A, _D, _F = Severity.INFO, Severity.APP, Severity.DEGRADED, Severity.FATAL
_NVLINK5 = "read Fatal or Nonfatal on the line; the status bits moved with driver R575"
_SM = "the same GPC/TPC/SM in different jobs means silicon: deep diagnosis, then isolate"

_ROWS: tuple[_Row, ...] = (
    ("8", _A, Action.RESTART_APP, "gpu", "a channel waited past its limit: the kernel hangs", ""),
    ("11", _A, Action.RESTART_APP, "gpu", "a malformed command reached the GPU", "check CUDA"),
    ("13", _A, Action.RESTART_APP, "gpu", "illegal address or instruction in a GPU kernel", _SM),
    ("25", _A, Action.RESTART_APP, "gpu", "an illegal command reached the GPU", ""),
    ("31", _A, Action.RESTART_APP, "gpu", "page fault: the address is not mapped", _SM),
    ("32", _A, Action.RESTART_APP, "gpu", "commands arrived damaged", "on a repeat check PCIe"),
    ("37", _I, Action.NONE, "gpu", "firmware refused a method it does not know", ""),
    ("38", _D, Action.NONE, "gpu", "the firmware watchdog ran out", "escalate when it repeats"),
    ("39-41 70-72 75-77 85 127-135", _A, Action.RESTART_APP, "gpu", "copy engine fault", ""),
    ("43", _A, Action.NONE, "gpu", "a faulty program was stopped; the GPU is usable", "find the "
     "fault before it"),
    ("44", _D, Action.NONE, "gpu", "fault while switching contexts", ""),
    ("45", _A, Action.FOLLOW_OTHER, "gpu", "channels were torn down after an earlier fault or an "
     "abort", "never act on it beside another code; alone: restart fabric manager"),
    ("46", _F, Action.RESET_GPU, "gpu", "the GPU no longer answers the driver", ""),
    ("48", _F, Action.RESET_GPU, "gpu", "uncorrectable memory error", "63, 64, 94, 95, 171 or 172 "
     "beside it say whether the row was replaced and whether data was kept apart"),
    ("54", _F, Action.ISOLATE, "node", "auxiliary power is missing at the board", "needs hands"),
    ("60", _A, Action.RESTART_APP, "gpu", "video engine fault", ""),
    ("61", _D, Action.RESET_GPU, "gpu", "power controller stopped at a breakpoint", "old drivers"),
    ("62", _F, Action.RESET_GPU, "gpu", "power controller halted", "reboot when the reset fails"),
    ("63", _D, Action.NONE, "gpu", "a bad memory row is noted for replacement", "replaced at the "
     "next GPU reset: plan one"),
    ("64", _F, Action.RESET_GPU, "gpu", "a bad memory row could not be replaced", "isolate when "
     "remapped_rows.failure is set after the reset"),
    ("66", _I, Action.NONE, "gpu", "the driver touched a forbidden register", ""),
    ("68 83 84 88 89 96-98", _A, Action.RESTART_APP, "gpu", "video decoder fault", ""),
    ("69", _A, Action.RESTART_APP, "gpu", "compute class error: methods out of order", ""),
    ("74", _F, Action.RESET_GPU, "link", "NVLink error (Hopper and older)", "with an SXid or on "
     "several GPUs at once: the NVSwitch or baseboard, not the GPUs"),
    ("78", _I, Action.UPDATE_SW, "gpu", "a vGPU did not start", ""),
    ("79", _F, Action.REBOOT_NODE, "node", "the GPU vanished from PCIe", "power cycle when it does "
     "not come back, then isolate"),
    ("80", _A, Action.RESTART_APP, "gpu", "checksum mismatch on the way to the GPU", "on a repeat "
     "check PCIe"),
    ("81", _I, Action.NONE, "gpu", "VGA path error (obsolete)", ""),
    ("82 99-105", _A, Action.RESTART_APP, "gpu", "JPEG engine fault", ""),
    ("86 139", _A, Action.RESTART_APP, "gpu", "optical flow engine fault", ""),
    ("92", _D, Action.NONE, "gpu", "many corrected memory errors in a short time", "a rising rate "
     "comes before row replacement"),
    ("93", _I, Action.NONE, "gpu", "InfoROM is near its write limit", ""),
    ("94", _A, Action.RESTART_APP, "gpu", "uncorrectable memory error, kept to one program",
     "reset the GPU in the next gap when a row replacement is pending"),
    ("95", _F, Action.RESET_GPU, "gpu", "uncorrectable memory error, NOT kept to one program",
     "distrust what was saved after it: go back to the checkpoint before"),
    ("106 107", _I, Action.NONE, "gpu", "test message of the management bus", ""),
    ("109", _F, Action.RESET_GPU, "gpu", "a context switch did not end in time", "often a hung "
     "kernel"),
    ("110", _F, Action.RESET_GPU, "gpu", "security fault", ""),
    ("119", _F, Action.RESET_GPU, "gpu", "the GPU system processor did not answer in time",
     "nvidia-smi may hang: give every command a limit; reboot when the reset hangs"),
    ("120", _F, Action.RESET_GPU, "gpu", "the GPU system processor failed", ""),
    ("121", _D, Action.NONE, "link", "error on the CPU-GPU link (Grace)", ""),
    ("125", _D, Action.NONE, "gpu", "InfoROM file system error", "isolate when it is corrupt"),
    ("126", _A, Action.RESTART_APP, "gpu", "copy engine fault (high engine numbers)", ""),
    ("136", _F, Action.RESET_GPU, "link", "NVLink training failed at start", "check cables"),
    ("137", _A, Action.FOLLOW_OTHER, "link", "NVLink access fault, mostly the peer's", ""),
    ("140", _F, Action.RESET_GPU, "gpu", "ECC error that was not recovered", ""),
    ("141", _I, Action.NONE, "gpu", "CUDA fast path error", ""),
    ("143", _F, Action.RESET_GPU, "gpu", "the GPU did not initialise", "reboot, then isolate"),
    ("144", _D, Action.DECODE, "link", "NVLink 5 fault in the SAW unit", _NVLINK5),
    ("145", _D, Action.DECODE, "link", "NVLink 5 fault in the RLW unit", _NVLINK5),
    ("146", _D, Action.DECODE, "link", "NVLink 5 fault in the TLW unit", _NVLINK5),
    ("147", _D, Action.DECODE, "link", "NVLink 5 fault in the TREX unit", _NVLINK5),
    ("148", _D, Action.DECODE, "link", "NVLink 5 fault in the NVLPW unit", _NVLINK5),
    ("149", _D, Action.DECODE, "link", "NVLink 5 link or module event (NETIR unit)", _NVLINK5),
    ("150", _D, Action.DECODE, "link", "NVLink 5 fault in the MSE unit", _NVLINK5),
    ("151", _F, Action.REBOOT_NODE, "node", "key rotation failed (confidential computing)", ""),
    ("152 153", _I, Action.NONE, "gpu", "DLA engine error (not on data centre GPUs)", ""),
    ("154", _I, Action.READ_ACTION, "gpu", "the driver says which recovery the GPU needs now",
     "from R570 on its words win over every table"),
    ("155", _F, Action.RESET_GPU, "link", "NVLink error raised by software", ""),
    ("156", _D, Action.RESET_GPU, "gpu", "a part of the GPU was retired", "at the next reset"),
    ("157", _D, Action.ISOLATE, "gpu", "retiring a part of the GPU failed", ""),
    ("158", _F, Action.RESET_GPU, "gpu", "fatal timeout in the GPU", ""),
    ("159", _D, Action.FOLLOW_OTHER, "gpu", "error on the coherent interface (Grace)", "act when "
     "unified memory is in use"),
    ("160", _D, Action.NONE, "gpu", "a memory channel was retired", ""),
    ("161", _D, Action.ISOLATE, "gpu", "retiring a memory channel failed", ""),
    ("162", _I, Action.NONE, "gpu", "power smoothing is on again", "cancels a 163 before it"),
    ("163", _D, Action.NONE, "gpu", "power smoothing went off", "reset later when no 162 follows"),
    ("164", _I, Action.NONE, "gpu", "power smoothing is near the end of its life", ""),
    ("165", _D, Action.NONE, "gpu", "power smoothing is worn out", "plan the replacement"),
    ("166", _D, Action.RESET_GPU, "link", "traffic on an encrypted link before set-up ended", ""),
    ("167", _F, Action.REBOOT_NODE, "gpu", "fatal PCIe timeout", ""),
    ("168", _D, Action.REBOOT_NODE, "gpu", "usable memory shrank: errors in its protected part",
     ""),
    ("169", _F, Action.RESET_GPU, "gpu", "the security controller halted", ""),
    ("171", _I, Action.FOLLOW_OTHER, "gpu", "detail of a 48: the error was in DRAM", ""),
    ("172", _D, Action.FOLLOW_OTHER, "gpu", "detail of a 48: the error was in SRAM", "SRAM has no "
     "spare rows: isolate on a repeat"),
    ("173", _D, Action.NONE, "gpu", "listed by gpud without a meaning", "ask the vendor"),
)  # fmt: skip


def _codes(text: str) -> list[int]:
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _table() -> dict[int, Xid]:
    rows: list[_Row] = [
        *_ROWS,
        (_RETIRED, _I, Action.NONE, "gpu", _RETIRED_MEANING, "ask the vendor when it appears"),
    ]
    found = {code: Xid(code, *row[1:]) for row in rows for code in _codes(row[0])}
    return dict(sorted(found.items()))


XIDS = _table()
"""All 173 codes, by number."""
