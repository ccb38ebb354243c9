"""Whatever nvidia-smi printed, as one `Snapshot`: table, ``-q``, XML, CSV, lists, error lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import is_filtered, tool_asked
from recovery.reading.nvlink_errors import is_nvlink_errors
from recovery.reading.once import once
from recovery.reading.plain import ends_with_newline, plain_lines, short_lines
from recovery.reading.smi_csv import looks_like_csv, read_csv
from recovery.reading.smi_errors import Trouble, find_troubles, nvml_version, status_trouble
from recovery.reading.smi_list import looks_like_list, read_list
from recovery.reading.smi_query import looks_like_query, read_query
from recovery.reading.smi_table import looks_like_table, read_table
from recovery.reading.smi_words import Form, Snapshot
from recovery.reading.smi_xml import looks_like_xml, read_xml

_LONGEST_ERROR = 12
_PICKS = re.compile(r"\s(?:-i|--id)[ =]")
_OTHER = re.compile(
    r"nvidia-smi\s+(topo|dmon|pmon|mig|vgpu|drain|c2c|clocks|nvlink\s+(-e|--errorcounters))\b"
)


def is_smi_command(command: str) -> bool:
    """Claims that the command line asks nvidia-smi for readings of GPUs."""
    return "nvidia-smi" in command and not _OTHER.search(command)


@once
def read_smi(printed: Printed) -> Snapshot:
    """One snapshot of what was printed.

    Raises:
        ParseError: nothing was printed, or what was printed is no answer of nvidia-smi.
    """
    lines = plain_lines(printed.text)
    # A tool that is missing says so on standard error, before or instead of any answer.
    troubles = find_troubles((*plain_lines(printed.error_text), *lines))
    body = _body(printed, lines, troubles)
    if body is None:
        by_status = status_trouble(printed.exit_status)
        if not troubles and by_status is None:
            raise _unreadable(lines)
        if not troubles and by_status is not None:
            if any(line.strip() for line in lines):
                raise _unreadable(lines)
            troubles = (by_status,)
        body = Snapshot(form=Form.ERROR)
    # The status of a pipeline is its last command's, which says nothing of nvidia-smi.
    status = None if "|" in printed.command else printed.exit_status
    return replace(
        body,
        troubles=troubles,
        nvml=nvml_version(lines),
        exit_status=status,
        picked=_PICKS.search(printed.command) is not None or is_filtered(printed.command),
    )


def _body(
    printed: Printed, lines: tuple[str, ...], troubles: tuple[Trouble, ...]
) -> Snapshot | None:
    whole_end = ends_with_newline(printed.text)
    text = "\n".join(lines)
    said = {trouble.line for trouble in troubles}
    kept = tuple(line for line in lines if line.strip()[:200] not in said) if said else lines
    short = short_lines(kept)
    if looks_like_xml(text):
        return read_xml(text)
    if looks_like_table(short):
        return read_table(short)
    if looks_like_list(short):
        is_nvlink = "nvlink" in printed.command
        return read_list(short, whole_end=whole_end, nvlink=is_nvlink)
    if any(line.strip() for line in kept) and looks_like_csv(kept, printed.command):
        return read_csv(kept, command=printed.command, whole_end=whole_end)
    if looks_like_query(short):
        return read_query(short, command=printed.command, whole_end=whole_end)
    return None


def _unreadable(lines: tuple[str, ...]) -> ParseError:
    first = next((line.strip() for line in lines if line.strip()), "")
    if not first:
        return ParseError(
            "nvidia-smi printed nothing; silence is not health",
            remedy="run it by hand on the node; a hanging driver needs a reboot",
        )
    return ParseError(
        f"this is no answer of nvidia-smi: {first[:60]!r}",
        remedy="look at the evidence; run nvidia-smi by hand on the node",
    )


def reader_of(*prefixes: str, what: str) -> Callable[[Printed], Snapshot]:
    """A parser for a check: the snapshot, if it speaks of values with these names.

    The parser raises `ParseError` for a text without any of them.
    """

    def parse(printed: Printed) -> Snapshot:
        snapshot = read_smi(printed)
        if snapshot.speaks_of(prefixes):
            return snapshot
        trouble = next(iter(snapshot.troubles), None)
        if trouble is not None:
            raise ParseError(
                f"nvidia-smi gives no readings: {trouble.line!r}", remedy=trouble.remedy
            )
        raise ParseError(
            f"the answer says nothing of {what}",
            remedy="ask with nvidia-smi -q and keep the whole output",
        )

    return parse


def _may_be_smi(printed: Printed) -> bool:
    asked = tool_asked(printed.command) in ("", "smi", "bug-report")
    return asked and not _OTHER.search(printed.command) and not is_nvlink_errors(printed)


def claims(*prefixes: str) -> Callable[[Printed], bool]:
    """A check's ``recognises``: the text is nvidia-smi's and speaks of values with these names."""

    def recognises(printed: Printed) -> bool:
        if not _may_be_smi(printed):
            return False
        try:
            return read_smi(printed).speaks_of(prefixes)
        except ParseError:
            return False

    return recognises


def claims_any(printed: Printed) -> bool:
    """``recognises`` of the checks that judge every answer of nvidia-smi, and its absence."""
    if not _may_be_smi(printed):
        return False
    try:
        snapshot = read_smi(printed)
    except ParseError:
        return is_smi_command(printed.command) or _begins_like_smi(printed.text)
    if snapshot.form is Form.APPS:
        return False
    if snapshot.form is not Form.ERROR or is_smi_command(printed.command):
        return True
    # Without a command, a long text that merely quotes an error line is a log, not an answer.
    return not printed.command and printed.text.count("\n") <= _LONGEST_ERROR


def _begins_like_smi(text: str) -> bool:
    """Claims that a text that cannot be read was meant to be an answer of nvidia-smi."""
    try:
        lines = plain_lines(text)
    except ParseError:
        return False
    beginning = looks_like_xml(text) or looks_like_table(lines) or looks_like_csv(lines)
    return beginning or any("NVSMI LOG" in line for line in lines[:20])
