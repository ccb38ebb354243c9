"""The lines by which nvidia-smi says that it cannot answer, and what each of them means.

Source: nvidia-smi(1), "RETURN VALUE"; NVML's nvmlReturn_t; wordings from public issue threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from recovery.model.verdict import Level

_RESET = "save nvidia-bug-report.sh, look for Xid in the kernel log, then reset the GPU or reboot"
_COLD = (
    "save the kernel log and nvidia-bug-report.sh, then power-cycle the node (cold);"
    " query the other GPUs meanwhile with nvidia-smi -i <bus id>"
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One error line. ``bus`` and ``reason`` as printed; ``nvml`` is the library's version."""

    code: str
    level: Level
    line: str
    meaning: str
    remedy: str
    bus: str = ""
    reason: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    code: str
    level: Level
    meaning: str
    remedy: str


def _rule(pattern: str, code: str, level: Level, meaning: str, remedy: str) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), code, level, meaning, remedy)


_RULES = (
    _rule(
        r"unable to determine the device handle for gpu ?(?P<bus>[0-9a-f:.]*[0-9a-f])?"
        r"(?: ?: ?(?P<reason>[^.:]+))?",
        "gpu.state.unreachable",
        Level.FAIL,
        "the driver cannot reach the GPU (usually Xid 79, fallen off the bus)",
        _COLD,
    ),
    _rule(
        r"(?<!\[)(?P<reason>gpu is lost)",
        "gpu.state.lost",
        Level.FAIL,
        "a GPU fell off the bus",
        _COLD,
    ),
    _rule(
        r"(?<!\[)(?P<reason>gpu requires reset)",
        "gpu.state.reset-required",
        Level.FAIL,
        "a GPU needs a reset before it answers again",
        _RESET,
    ),
    _rule(
        r"no devices were found",
        "gpu.count.none",
        Level.FAIL,
        "the driver is loaded and finds no GPU",
        "lspci -d 10de: and dmesg for probe failures; in a container check the device request",
    ),
    _rule(
        r"driver/library version mismatch",
        "driver.match.nvml",
        Level.FAIL,
        "the driver's user-space library was upgraded under a loaded kernel module",
        "reload the nvidia modules when idle, or reboot; pin the driver packages",
    ),
    _rule(
        r"couldn't communicate with the nvidia driver|driver not loaded|no supported gpus? w",
        "gpu.state.driver-not-loaded",
        Level.FAIL,
        "the NVIDIA kernel module is not loaded",
        "modprobe nvidia and read dmesg; after a kernel update rebuild the module (dkms status)",
    ),
    _rule(
        r"couldn't find libnvidia-ml",
        "gpu.state.library-missing",
        Level.UNKNOWN,
        "the driver's library is not installed, or not visible here",
        "install the driver's user-space package; in a container check the NVIDIA runtime",
    ),
    _rule(
        r"failed to initialize nvml: (?P<reason>insufficient permissions|gpu access blocked.*)",
        "gpu.state.no-permission",
        Level.UNKNOWN,
        "this user may not ask the driver",
        "ask as a user with access to /dev/nvidia*, or with sudo",
    ),
    _rule(
        r"failed to initialize nvml(?:: (?P<reason>.+))?",
        "gpu.state.nvml",
        Level.UNKNOWN,
        "the driver's library cannot start",
        "run nvidia-smi on the node itself, outside containers; read dmesg",
    ),
    _rule(
        r"infoROM is corrupted(?: at gpu (?P<bus>[0-9a-f:.]+))?",
        "gpu.state.inforom",
        Level.FAIL,
        "the GPU's own configuration store is damaged",
        "reset the GPU; if the warning stays, isolate the node and ask for an RMA",
    ),
    _rule(
        r'field "(?P<field>[^"]+)" is not a valid field to query',
        "gpu.query.field",
        Level.UNKNOWN,
        "this driver does not know a field of the query, so it answered nothing at all",
        "leave the field out, or use its older name (clocks_throttle_reasons.*)",
    ),
    _rule(
        r"invalid combination of input arguments|option \"?.+\"? is not recognized",
        "gpu.query.option",
        Level.UNKNOWN,
        "this nvidia-smi does not know an option of the command",
        "compare the command with nvidia-smi --help on the node",
    ),
    _rule(
        r"nvidia-smi: (?:command )?not found|no such file or directory.*nvidia-smi"
        r"|nvidia-smi: no such file",
        "gpu.state.no-tool",
        Level.UNKNOWN,
        "nvidia-smi is not on this node",
        "install the NVIDIA driver's user-space package (nvidia-utils), or mend PATH",
    ),
)

_STATUS: dict[int, tuple[Level, str]] = {
    2: (Level.UNKNOWN, "an argument was refused"),
    3: (Level.UNKNOWN, "the operation is not available on this device"),
    4: (Level.UNKNOWN, "this user may not ask"),
    6: (Level.UNKNOWN, "the object asked for was not found"),
    8: (Level.FAIL, "a GPU's external power cables are not attached"),
    9: (Level.FAIL, "the NVIDIA driver is not loaded"),
    10: (Level.FAIL, "the kernel sees an interrupt problem with a GPU"),
    12: (Level.UNKNOWN, "the driver's library was not found"),
    13: (Level.UNKNOWN, "the installed library is too old for this nvidia-smi"),
    14: (Level.FAIL, "a GPU's infoROM is damaged"),
    15: (Level.FAIL, "a GPU fell off the bus or cannot be reached"),
    18: (Level.FAIL, "driver and library versions do not match"),
    124: (Level.UNKNOWN, "the command was ended by its time limit"),
    127: (Level.UNKNOWN, "nvidia-smi is not on this node"),
    137: (Level.UNKNOWN, "the command was killed"),
    143: (Level.UNKNOWN, "the command was ended from outside"),
}


def find_troubles(lines: Iterable[str]) -> tuple[Trouble, ...]:
    """The error lines of a text, each by its first rule, in order and without repetition."""
    found: dict[Trouble, None] = {}
    for line in lines:
        if " : " in line:  # a value of a reading, as nearly all lines of nvidia-smi -q
            continue
        trouble = _read(line.strip()[:600])
        if trouble is not None:
            found[trouble] = None
    return tuple(found)


def _read(line: str) -> Trouble | None:
    # A value of a reading ("Temperature : GPU is lost") is the reading's business.
    if not line or line.startswith(("|", "+")) or _VALUE.search(line) or "," in line[:3]:
        return None
    for rule in _RULES:
        match = rule.pattern.search(line)
        if match is not None:
            parts = match.groupdict()
            return Trouble(
                rule.code,
                rule.level,
                line[:200],
                rule.meaning,
                rule.remedy,
                bus=(parts.get("bus") or "").rstrip(".:"),
                reason=(parts.get("reason") or "").strip(),
                field=parts.get("field") or "",
            )
    return None


def status_trouble(exit_status: int | None) -> Trouble | None:
    """What a status other than 0 says by itself; None for 0 and for a status nobody knows."""
    if exit_status in (None, 0):
        return None
    level, meaning = _STATUS.get(exit_status or 0, (Level.UNKNOWN, "the command failed"))
    remedy = _COLD if exit_status == 15 else "run the command by hand on the node and read dmesg"
    line = f"exit status {exit_status}"
    return Trouble(f"gpu.state.exit-{exit_status}", level, line, meaning, remedy)


_NVML = re.compile(r"\s*NVML library version\s*: ?([\d.]+)\s*$", re.IGNORECASE)
_VALUE = re.compile(r"\s: ")


def nvml_version(lines: Iterable[str]) -> str | None:
    """The user-space library's version, where the mismatch message of newer drivers names it."""
    for line in lines:
        if "ersion" in line and (match := _NVML.match(line)):
            return match[1]
    return None
