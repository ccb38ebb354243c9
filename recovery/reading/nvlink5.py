"""What an NVLink 5 Xid (144-150) asks for: its unit, cause and error status taken apart.

Source: NVIDIA's Xid catalogue, sheet "XID 144-150 Decode" (as of October 2025). The first register
on the line, intrInfo, holds a cause in bits 25:20 and the unit in its low bits; where in them, and
how, changed with driver R575, so a register is read by the branch that wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.reading.xid import Action

R575 = 575
_V1_MASK, _V2_MASK = 0x3FF, 0x7F
_V1_PROMOTED, _V2_PROMOTED = 1 << 10, 1 << 7  # an error that the driver was told to make fatal
_FOLLOW_154 = "the driver's own word (Xid 154) decides; without one restart the job"

_RESET, _IGNORE, _EVAL = Action.RESET_GPU, Action.NONE, Action.RESTART_APP


@dataclass(frozen=True, slots=True)
class _Unit:
    """One unit: its numbers in both layouts, and error statuses that ask for more than a note.

    ``reset_if_promoted`` are those that ask for a reset only where the promoted bit is set.
    """

    v1: int
    v2: int
    reset: frozenset[int] = frozenset()
    follow_154: frozenset[int] = frozenset()
    reset_if_promoted: frozenset[int] = frozenset()
    known: frozenset[int] = frozenset()


def _unit(v1: int, v2: int, ignore: tuple[int, ...], **more: tuple[int, ...]) -> _Unit:
    sets = {name: frozenset(values) for name, values in more.items()}
    known = frozenset(ignore).union(*sets.values())
    return _Unit(v1, v2, known=known, **sets)


_SOFT = 0x80000000
_TLW = {"ignore": (1, 2, _SOFT), "reset": (4,)}
_UNITS: Mapping[str, tuple[_Unit, ...]] = {
    "SAW_MVB": (_unit(0x021, 0x01, (1, 4, 8, 0x20), reset=(2, 0x10)),),
    "RLW_CTRL": (_unit(0x062, 0x03, (_SOFT,)),),
    "RLW_REMAP": (
        _unit(
            0x082,
            0x04,
            (0x100, 0x200, _SOFT),
            reset=(0x40, 0x80),
            follow_154=(1, 2, 4, 8, 0x10, 0x20),
        ),
    ),
    "RLW_RSPCOL": (_unit(0x0A2, 0x05, (1, _SOFT), reset=(2,)),),
    "RLW_RXPIPE": (_unit(0x0C2, 0x06, (1, 2, 4, 8, _SOFT), reset_if_promoted=(1, 2, 4)),),
    "RLW_SRC_TRACK": (_unit(0x0E2, 0x07, (2, _SOFT), reset=(1, 0x10, 0x20), follow_154=(4, 8)),),
    "RLW_TAGSTATE": (_unit(0x102, 0x08, (1, 0x10000, _SOFT), reset=(2, 0x20000, 0x100000)),),
    "TLW_CTRL": (_unit(0x123, 0x09, **_TLW),),
    "TLW_RX": (_unit(0x143, 0x0A, **_TLW), _unit(0x143, 0x0B, **_TLW)),
    "TLW_TX": (_unit(0x163, 0x0C, **_TLW), _unit(0x163, 0x0D, **_TLW)),
    "TREX": (_unit(0x184, 0x0E, (1, _SOFT)),),
    "NVLPW": (_unit(0x005, 0x0F, (_SOFT,)),),
    "NETIR_BER": (_unit(0x226, 0x13, (0, 1, 2, 3)),),
    "NETIR_MFDE": (_unit(0x246, 0x14, (3,), reset=(1, 4, 5, 7)),),
}
_LINK_EVENT, _INTERNAL = _Unit(0x1C6, 0x11), _Unit(0x006, 0x18)
_SIGNAL = "look at the link's signal: telemetry of port, cable and module"
_USER = "somebody or something switched it off: look for who did"
_PEER = "the other end of the link went down first: look there"
_CAUSES: Mapping[int, tuple[Action, str]] = {
    0x00: (_RESET, "follows from another error: look for that first"),
    0x01: (_RESET, "report it when it comes more than once a day"),
    0x02: (_RESET, _SIGNAL),
    0x04: (_RESET, _SIGNAL),
    0x0A: (_RESET, _SIGNAL),
    0x0F: (_RESET, _USER),
    0x10: (_RESET, f"{_USER}; else {_SIGNAL}"),
    0x11: (_RESET, _USER),
    0x12: (_RESET, f"{_USER}; else {_SIGNAL}"),
    0x15: (_RESET, _PEER),
    0x16: (_RESET, _USER),
    **dict.fromkeys(range(0x20, 0x26), (_RESET, _PEER)),
    0x26: (_IGNORE, _USER),
    0x28: (_IGNORE, "follows from something on the host: read its other logs"),
    0x2A: (_RESET, f"{_SIGNAL}, then seating and temperature"),
    0x2B: (_RESET, f"{_SIGNAL}, then seating and temperature"),
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one line asks for at once, and what to look into; ``layout`` is V1 or V2."""

    action: Action
    words: str
    layout: str


def decode(values: Mapping[str, Any], driver: str = "") -> Decoded | None:
    """Takes the registers of one line apart; None where table and line do not agree.

    ``values`` are ``unit``, ``intr_info``, ``error_status`` of the line; ``driver`` is the version
    that wrote it (``570.148.08``), else the layout that fits the named unit is taken.
    """
    name = str(values.get("unit", ""))
    if name.startswith("MSE"):
        return Decoded(_RESET, "the GPU's management engine stopped", "")
    try:
        intr, status = int(values["intr_info"], 16), int(values["error_status"], 16)
    except (KeyError, ValueError):
        return None
    for layout in _layouts(driver):
        found = _by(layout, name, intr, status)
        if found is not None:
            return found
    return None


def _layouts(driver: str) -> tuple[str, ...]:
    branch = driver.partition(".")[0]
    if not branch.isdecimal():
        return ("V2", "V1")  # no unit has a number that fits both
    return ("V2",) if int(branch) >= R575 else ("V1",)


def _is(unit: _Unit, layout: str, intr: int) -> bool:
    return intr & _V1_MASK == unit.v1 if layout == "V1" else intr & _V2_MASK == unit.v2


def _by(layout: str, name: str, intr: int, status: int) -> Decoded | None:
    if name.startswith("NETIR_LINK") and _is(_LINK_EVENT, layout, intr):
        known = _CAUSES.get(intr >> 20 & 0x3F)
        return Decoded(*known, layout) if known else None
    if name in ("NETIR", "NETIR_INT") and _is(_INTERNAL, layout, intr):
        return Decoded(_RESET, "follows from another error: look for that first", layout)
    of_name = (units for key, units in _UNITS.items() if name.startswith(key))
    unit = next((u for units in of_name for u in units if _is(u, layout, intr)), None)
    if unit is None or status not in unit.known or intr >> 20 & 0x3F:
        return None
    return _of_status(unit, layout, intr, status)


def _of_status(unit: _Unit, layout: str, intr: int, status: int) -> Decoded:
    promoted = intr & (_V1_PROMOTED if layout == "V1" else _V2_PROMOTED)
    if status in unit.reset or (promoted and status in unit.reset_if_promoted):
        return Decoded(_RESET, "the GPU needs a reset", layout)
    if status in unit.follow_154:
        return Decoded(_EVAL, _FOLLOW_154, layout)
    if unit.v2 == 0x13:
        return Decoded(_IGNORE, _SIGNAL, layout)
    return Decoded(_IGNORE, "nothing to do now; report it when it comes back", layout)
