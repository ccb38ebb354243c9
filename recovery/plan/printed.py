"""`parse`: what a command printed -> the names that `expect`, `agree` and `save` see."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from recovery.errors import ParseError

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def parse_output(kind: str, stdout: str) -> Mapping[str, object]:
    """The names that a way to parse gives: lines, json, rows (csv), kv, match (regex).

    Colour codes and carriage returns are taken out first. Nothing at all is never an answer.

    Raises:
        ParseError: standard output is not of this kind, or is empty.
    """
    text = _COLOUR.sub("", stdout).replace("\r\n", "\n")
    if not text.strip():
        raise _unread("it printed nothing", stdout)
    if kind.startswith("regex:"):
        return {"match": _match(kind.removeprefix("regex:"), text)}
    name, parse = _KINDS[kind]
    return {name: parse(text)}


def _unread(why: str, text: str) -> ParseError:
    shown = f": {text.strip()[:80]!r}" if text.strip() else ""
    return ParseError(f"{why}{shown}", remedy="run the command by hand and compare with `parse`")


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _unread(f"not JSON ({error})", text) from error


def _rows(text: str) -> list[dict[str, str]]:
    try:
        rows = [r for r in csv.reader(_lines(text), skipinitialspace=True, strict=True) if r]
    except csv.Error as error:
        raise _unread(f"not CSV ({error})", text) from error
    header, *body = [[cell.strip() for cell in row] for row in rows]
    if len(set(header)) < len(header):
        raise _unread("two columns of one name", text)
    if not body:
        raise _unread("a header and no row", text)
    for row in body:
        if len(row) != len(header):
            raise _unread(f"{len(header)} columns, and a row of {len(row)}", ", ".join(row))
    return [dict(zip(header, row, strict=True)) for row in body]


def _pairs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _lines(text):
        cut = re.match(r"\s*([^=:]+?)\s*[=:]\s*(.*)", line)
        if cut is None:
            raise _unread("a line that is not KEY=VALUE or KEY: VALUE", line)
        value = cut[2].strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        if found.setdefault(cut[1], value) != value:
            raise _unread("a key with two values", line)
    return found


def _match(pattern: str, text: str) -> dict[str, str | None]:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise _unread(f"nothing matches {pattern!r}", text)
    numbered = {f"g{i}": group for i, group in enumerate(found.groups(), 1)}
    return {"text": found[0], **numbered, **found.groupdict()}


_KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "lines": ("lines", _lines),
    "json": ("json", _json),
    "csv": ("rows", _rows),
    "kv": ("kv", _pairs),
}
