"""Links and their optics as ``mlxlink -m -c`` tells them, as text or as JSON.

Source: NVIDIA MFT 4.20 to 4.34, mlxlink; mstflint ``mstlink`` prints the same. An error ratio of
``15E-255`` is the tool's word for zero, and a range in brackets is the module's own limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.sections import read_sections

_RATIO = re.compile(r"(\d{1,3})(?:\.\d+)?E-(\d{1,3})\b")
_RANGE = re.compile(r"(?P<values>[-\d.,]+) \[(?P<low>-?[\d.]+)\.\.(?P<high>-?[\d.]+)\]")
_FIELD = re.compile(r"\s*(\w[^:\n]{0,60}?)\s*: ?(.*)")
_REFUSED = re.compile(r"-E- (.*)")
_ZERO_BELOW = 200  # powers of ten
_MEASURED = {
    "temperature": "Temperature [C]",
    "voltage": "Voltage [mV]",
    "bias current": "Bias Current [mA]",
    "receive power": "Rx Power Current [dBm]",
    "transmit power": "Tx Power Current [dBm]",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One value a lane of an optic, and the module's own limits for it."""

    values: tuple[float, ...]
    low: float
    high: float

    @property
    def beyond(self) -> float | None:
        """The first value outside of the limits; None where all are within."""
        return next((v for v in self.values if not self.low <= v <= self.high), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optic:
    """One port. Ratios are bit errors a bit; None where the tool does not tell (no link, no DDM).

    ``seen`` is what reaches programs: the symbol error ratio, on links that have none the effective
    one; ``raw`` is before correction. ``trouble`` is what the tool said instead of an answer.
    """

    device: str
    active: bool | None = None
    speed: str = ""
    advice: str = ""
    seen: float | None = None
    effective: float | None = None
    raw: float | None = None
    minutes: float | None = None
    link_down: int | None = None
    part: str = ""
    serial: str = ""
    firmware: str = ""
    measured: Mapping[str, Reading] = field(default_factory=dict)
    trouble: str = ""


def read_optics(printed: Printed) -> tuple[Optic, ...]:
    """The ports in the order asked.

    Raises:
        ParseError: no answer, a cut one, or not mlxlink's.
    """
    if printed.text.lstrip().startswith("{"):
        return (_optic("the port", _from_json(printed.text)),)
    sections = read_sections(printed, bare="the port")
    found = tuple(
        _optic(name.rpartition("/")[2], dict(_fields(lines)), lines)
        for name, lines in sections.items()
        if "*" not in name  # a pattern that fits nothing stays itself
    )
    if not any(one.active is not None or one.trouble for one in found) and found:
        raise ParseError("not the answer of mlxlink", remedy="run mlxlink -d mlx5_0 -m -c")
    return found


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if match := _FIELD.fullmatch(line):
            yield match[1].strip(), match[2].strip()


def _from_json(text: str) -> dict[str, str]:
    try:
        body = json.loads(text)
        parts = body["result"]["output"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParseError(
            "the JSON of mlxlink cannot be read", remedy="run it again without --json"
        ) from None
    return {
        str(name): _as_text(value)
        for part in (parts.values() if isinstance(parts, Mapping) else ())
        if isinstance(part, Mapping)
        for name, value in part.items()
    }


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return _as_text(value.get("values", ""))
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def _optic(device: str, told: Mapping[str, str], lines: Sequence[str] = ()) -> Optic:
    state = told.get("State", "")
    if not state:
        said = next((m[1] for line in lines if (m := _REFUSED.search(line))), "")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no answer")
        return Optic(device=device, trouble=(said or last)[:120])
    effective, symbol = (_ratio(told.get(f"{n} BER", "")) for n in ("Effective Physical", "Symbol"))
    return Optic(
        device=device,
        active=state.lower() in ("active", "linkup", "up"),
        speed=told.get("Speed", ""),
        advice=told.get("Recommendation", ""),
        seen=effective if symbol is None else symbol,
        effective=effective,
        raw=_ratio(told.get("Raw Physical BER", "")),
        minutes=_number(told.get("Time Since Last Clear [Min]", "")),
        link_down=_whole(told.get("Link Down Counter", "")),
        part=_known(told.get("Vendor Part Number", "")),
        serial=_known(told.get("Vendor Serial Number", "")),
        firmware=_known(told.get("FW Version", "")),
        measured=dict(_measured(told)),
    )


def _measured(told: Mapping[str, str]) -> Iterator[tuple[str, Reading]]:
    for name, key in _MEASURED.items():
        match = _RANGE.match(told.get(key, ""))
        numbers = [_number(part) for part in match["values"].split(",")] if match else []
        low, high = (_number(match[k]) if match else None for k in ("low", "high"))
        values = tuple(n for n in numbers if n is not None)
        if values and low is not None and high is not None and low < high:
            yield name, Reading(values, low, high)


def _ratio(text: str) -> float | None:
    match = _RATIO.match(text)
    if match is None:
        return None
    return 0.0 if int(match[2]) >= _ZERO_BELOW else float(f"{match[1]}e-{match[2]}")


def _number(text: str) -> float | None:
    try:
        return float(text[:20])
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    return int(text[:18]) if text.isdecimal() else None


def _known(text: str) -> str:
    return "" if text in ("N/A", "Other") else text
