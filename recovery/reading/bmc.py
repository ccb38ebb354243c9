"""What a BMC tells: event log, sensors, power; by ``ipmitool`` or Redfish.

A BMC that cannot be asked is a value here, not an error: the text says the same for a host that is
down, a firewall and a wrong password, and none of them says that the node is off.

Source: ipmitool 1.8.18 and 1.8.19 (sel list, elist, csv; sdr; chassis), DMTF Redfish LogEntry,
ComputerSystem, Thermal, Power, Sensor and Base message registry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import tool_asked
from recovery.reading.plain import plain_lines

_UNREACHABLE = re.compile(
    r"Unable to establish (?:IPMI|LAN|session|RMCP)|Authentication type .* not supported|"
    r"insufficient resources for session|Activate Session .*(?:error|fail)|RAKP \d|"
    r"Get Session Challenge command failed|session timeout|connection timeout|"
    r"[Cc]onnection (?:refused|timed out)|No route to host|Could not resolve host|"
    r"Address lookup .* failed|password invalid|username invalid"
)
_NO_DEVICE = re.compile(r"Could not open device at /dev/ipmi|No such device|ipmi_ctx_open")
_NO_TOOL = re.compile(r"command not found|not found$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The BMC was not asked: ``kind`` is unreachable, no-device, http-error or no-tool."""

    kind: str
    said: str
    message_id: str = ""

    def facts(self) -> dict[str, Any]:
        """What is known instead of an answer."""
        if self.kind == "no-device":
            return {"device": False}
        if self.kind == "http-error":
            return {"http_error": True, "message_id": self.message_id or None}
        return {"reachable": False}


def plain(printed: Printed) -> Printed:
    """The same, freed from colours and from what launchers put before each line.

    Raises:
        ParseError: lines of several nodes are mixed.
    """
    text, error_text = ("\n".join(plain_lines(t)) for t in (printed.text, printed.error_text))
    return replace(printed, text=text, error_text=error_text)


def no_answer(printed: Printed) -> NoAnswer | None:
    """Why the BMC was not asked; None when it answered."""
    said = f"{printed.text}\n{printed.error_text}".strip()
    body = json_body(printed.text)
    if body is not None and isinstance(body.get("error"), Mapping):
        return NoAnswer("http-error", _message(body["error"]), _message_id(body["error"]))
    if printed.exit_status == 0 and _answers(printed.text):
        return None
    for kind, pattern in (
        ("no-device", _NO_DEVICE),
        ("unreachable", _UNREACHABLE),
        ("no-tool", _NO_TOOL),
    ):
        if (match := pattern.search(said)) is not None and not _answers(printed.text):
            return NoAnswer(kind, said[match.start() :].partition("\n")[0][:160])
    return None


def _answers(text: str) -> bool:
    return bool(
        re.search(r"^Chassis Power is |^System Power +:|^.{1,80}\|.*\|", text, re.MULTILINE)
    )


def json_body(text: str) -> Mapping[str, Any] | None:
    """The JSON object in a text, HTTP headers before it passed over; None when there is none."""
    start = text.find("{")
    if start < 0 or len(text) > 32 * 1024 * 1024:
        return None
    before = text[:start].strip()
    if before and not re.match(r"HTTP/\d|[\w-]+: ", before):
        return None
    try:
        body = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _extended(error: Mapping[str, Any]) -> Mapping[str, Any]:
    infos = error.get("@Message.ExtendedInfo")
    first = infos[0] if isinstance(infos, list) and infos else {}
    return first if isinstance(first, dict) else {}


def _message(error: Mapping[str, Any]) -> str:
    return str(_extended(error).get("Message") or error.get("message") or "an error")[:200]


def _message_id(error: Mapping[str, Any]) -> str:
    found = str(_extended(error).get("MessageId") or error.get("code") or "")
    return found.rpartition(".")[2]


def words_of(value: Any) -> str:
    """A Redfish enumeration: a string in one firmware, ``[{"Member": "..."}]`` in another."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return words_of(value.get("Member"))
    if isinstance(value, Sequence):
        return " ".join(filter(None, (words_of(item) for item in value)))
    return ""


def is_asked(printed: Printed, words: str, content: re.Pattern[str]) -> bool:
    """Claims that the command asks a BMC for this, or that no tool is named and the text has it.

    ``words`` is a pattern for the command's own words (``sel|event``).
    """
    asked = tool_asked(printed.command)
    if asked in ("ipmi", "redfish"):
        if re.search(words, printed.command, re.IGNORECASE):
            return True
        return _asks_nothing_known(printed.command) and bool(content.search(printed.text[:65536]))
    if asked:
        return False
    try:
        printed = plain(printed)
    except ParseError:
        return False
    said = f"{printed.text[:65536]}\n{printed.error_text[:65536]}"
    return bool(content.search(said))


def _asks_nothing_known(command: str) -> bool:
    known = r"\bsel\b|/Logs?/|LogServices|sdr|sensor|/Thermal|/Power\b|chassis|power|/Systems/"
    return not re.search(known, command, re.IGNORECASE)


def unanswered(printed: Printed, what: str) -> ParseError:
    """The error for a text that is no answer about ``what``."""
    said = (printed.text.strip() or printed.error_text.strip())[:80]
    status = f" (status {printed.exit_status})" if printed.exit_status not in (0, None) else ""
    return ParseError(
        f"not {what} of a BMC{status}: {said!r}",
        remedy="run the command by hand against one BMC that is known to work",
    )


@dataclass(frozen=True, slots=True)
class Power:
    """Whether the node is on, and why it is not. None: the text does not say."""

    power: str | None = None
    restore_policy: str | None = None
    last_event: str | None = None
    faults: tuple[str, ...] = ()
    whole: bool = True
    refused: NoAnswer | None = None


_POWER_WORD = re.compile(r"^(?:Chassis Power is|System Power +:) *(on|off)\b", re.MULTILINE)
_FAULT_KEYS = (
    "Power Overload",
    "Main Power Fault",
    "Power Control Fault",
    "Drive Fault",
    "Cooling/Fan Fault",
)
_LAST_KEY = "Cooling/Fan Fault"


def parse_power(printed: Printed) -> Power:
    """The answer of ``chassis status``, ``chassis power status`` or a Redfish system.

    Raises:
        ParseError: it is none of them.
    """
    printed = plain(printed)
    refused = no_answer(printed)
    if refused is not None:
        return Power(refused=refused)
    body = json_body(printed.text)
    if body is not None and isinstance(body.get("PowerState"), str):
        return _redfish_power(body)
    word = _POWER_WORD.search(printed.text)
    if word is None:
        raise unanswered(printed, "the power state")
    said = {
        key.strip(): value.strip()
        for key, colon, value in (line.partition(":") for line in printed.text.split("\n"))
        if colon
    }
    status = "System Power" in said
    return Power(
        power=word[1],
        restore_policy=said.get("Power Restore Policy"),
        last_event=said.get("Last Power Event") or None,
        faults=tuple(key for key in _FAULT_KEYS if said.get(key) == "true"),
        whole=not status or said.get(_LAST_KEY) in ("true", "false"),
    )


def _redfish_power(body: Mapping[str, Any]) -> Power:
    state = str(body["PowerState"]).lower()
    status = body.get("Status")
    health = status.get("Health") if isinstance(status, Mapping) else None
    policy = body.get("PowerRestorePolicy")
    return Power(
        power=state,
        restore_policy=str(policy) if isinstance(policy, str) else None,
        faults=() if health in (None, "OK") else (f"system health {health}",),
    )


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor. ``status`` is ok, nc (warn), cr, nr (beyond repair) or ns (no reading)."""

    name: str
    status: str
    value: float | None = None
    unit: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Sensors:
    """All sensors in the order printed."""

    sensors: tuple[Sensor, ...] = ()
    cut: bool = False
    refused: NoAnswer | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
