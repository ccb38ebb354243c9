"""Whatever ``dcgmi diag`` printed, as one `Diagnosis`: tables and JSON of DCGM 3 and 4, errors.

Source: NVIDIA/DCGM dcgmi/Command.cpp and Diag.cpp; errors go to standard output, and the exit
status is the return code below 0, modulo 256 (-21: no host engine, -39: a run is under way).
"""

from __future__ import annotations

import re
from dataclasses import replace

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import tool_asked
from recovery.reading.dcgm_json import looks_like_json, read_json
from recovery.reading.dcgm_text import looks_like_table, read_table
from recovery.reading.dcgm_words import Diagnosis
from recovery.reading.plain import plain_lines, short_lines

_NO_ENGINE = re.compile(
    r"unable to (?:establish a connection|connect) to (?:the specified host|host engine)"
    r"|host engine connection invalid|Failed to connect|hostengine is not running",
    re.IGNORECASE,
)
_RETURN = re.compile(r"\bReturn: \((-\d+)\)|\breturn(?:ed)? (?:code )?(-\d+)\b", re.IGNORECASE)
_ERROR = re.compile(r"^(?:Error|Failed)\b.{0,400}", re.IGNORECASE)
_NO_CONNECTION = -21


def looks_like_dcgm(printed: Printed) -> bool:
    """Claims that the command asked dcgmi or, without one, that the text is its answer."""
    if re.search(r"\bdcgmi\s+diag\b", printed.command):
        return True
    if printed.command and tool_asked(printed.command) not in ("", "dcgm"):
        return False
    try:
        lines = plain_lines(printed.text)
    except ParseError:
        return False
    if looks_like_json("\n".join(lines)) or looks_like_table(short_lines(lines)):
        return True
    about = any("host engine" in line.lower() or "dcgm" in line.lower() for line in lines)
    return about and len(lines) <= 12 and any(_ERROR.match(line.strip()) for line in lines)


def read_dcgm(printed: Printed) -> Diagnosis:
    """One run, or why there was none.

    Raises:
        ParseError: neither a table nor JSON nor one of dcgmi's own errors.
    """
    lines = plain_lines(printed.text)
    text = "\n".join(lines)
    if looks_like_json(text):
        found = read_json(text)
    elif looks_like_table(short_lines(lines)):
        found = read_table(short_lines(lines))
    else:
        found = _error((*lines, *plain_lines(printed.error_text)), printed.exit_status)
    code = found.dcgm_return if found.dcgm_return is not None else _code(printed.exit_status)
    return replace(found, dcgm_return=code, exit_status=printed.exit_status)


def _code(exit_status: int | None) -> int | None:
    """-21 from 235: the shell keeps the return code's last eight bits."""
    return exit_status - 256 if exit_status is not None and 193 <= exit_status <= 255 else None


def _error(lines: tuple[str, ...], exit_status: int | None) -> Diagnosis:
    told = [line.strip() for line in lines if line.strip()]
    if not told:
        raise ParseError(
            "dcgmi printed nothing; silence is not health",
            remedy="run dcgmi diag -r 1 on the node by hand",
        )
    errors = [line for line in told if _ERROR.match(line)]
    unreached = next((line for line in told if _NO_ENGINE.search(line)), "")
    if not errors and not unreached:
        raise ParseError(
            f"this is no answer of dcgmi diag: {told[0][:60]!r}",
            remedy="run dcgmi diag -r 1 on the node by hand",
        )
    code = _RETURN.search("\n".join(told))
    number = int(code[1] or code[2]) if code else None
    if number is None and unreached and _code(exit_status) is None:
        number = _NO_CONNECTION
    trouble = (errors or [unreached])[0]
    return Diagnosis(trouble=trouble[:200], connected=not unreached, dcgm_return=number)
