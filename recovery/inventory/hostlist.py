"""Names for people: many names folded into a hostlist, and a hostlist opened again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recovery.errors import SelectionError
from recovery.inventory.ranges import PatternError, expand_pattern

# What ClusterShell reads as plain text and not as an operator, a group or a range.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LAST_NUMBER = re.compile(r"(.*?)(\d*)(\D*)", re.DOTALL)
_BETWEEN = re.compile(r"[,\s]+(?![^\[\]]*\])")  # commas and blanks outside brackets


def fold(names: Iterable[str]) -> str:
    """The names as one hostlist (``node[001-128],head``), or sorted with commas if it must be.

    What comes back always opens to the same names: folding is checked by opening it again.
    """
    wanted = sorted(set(names))
    plain = ",".join(wanted)
    if len(wanted) < 2 or not all(map(_PLAIN.fullmatch, wanted)):
        return plain
    folded = _folded(wanted)
    try:
        same = list(expand(folded)) == wanted
    except SelectionError:
        same = False
    return folded if same else plain


def _folded(names: list[str]) -> str:
    # Late: this import costs 30 ms that `recover --help` must not pay.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet(",".join(_by_last_number(names)), resolver=RESOLVER_NOGROUP))


def _by_last_number(names: list[str]) -> list[str]:
    """Names that differ in their last number as one pattern: 10,000 names cost one parse."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for name in names:
        before, number, after = _LAST_NUMBER.fullmatch(name).groups()  # type: ignore[union-attr]  # matches any text
        numbers.setdefault((before, after), []).append(number or "")
    return [
        f"{before}[{','.join(found)}]{after}" if found[1:] else f"{before}{found[0]}{after}"
        for (before, after), found in numbers.items()
    ]


def expand(text: str) -> tuple[str, ...]:
    """The names of a hostlist, sorted, each once; commas or blanks stand between its parts.

    Raises:
        SelectionError: a part that is not a name or a range.
    """
    found: set[str] = set()
    for part in filter(None, _BETWEEN.split(text)):
        found.update(_names(part, text))
    return tuple(sorted(found))


def _names(part: str, text: str) -> tuple[str, ...]:
    try:
        return expand_pattern(part)
    except PatternError as error:
        shown = f" in {text[:80]!r}" if text != part else ""
        raise SelectionError(f"{error.message}{shown}", remedy=error.remedy) from error
