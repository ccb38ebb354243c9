"""Whose answer a text is: by the command that printed it, else by how it begins."""

from __future__ import annotations

import re
from collections.abc import Callable

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.plain import plain_lines

_HEAD = 8192  # characters
_FIRST_LINES = 12


def told_by(asks: str, *, begins: str) -> Callable[[Printed], bool]:
    """A check's ``recognises``: the command fits or, where none is known, a line does.

    ``asks`` is a pattern in the command, ``begins`` one at the beginning of a first filled line.
    """
    asking, beginning = re.compile(asks), re.compile(begins)

    def recognises(printed: Printed) -> bool:
        if printed.command:
            return asking.search(printed.command) is not None
        return any(beginning.match(line) for line in first_lines(printed.text))

    return recognises


def first_lines(text: str) -> tuple[str, ...]:
    """The first filled lines without launcher prefixes; none where nodes are mixed in it."""
    try:
        lines = plain_lines(text[:_HEAD])
    except ParseError:
        return ()
    return tuple(line for line in lines if line.strip())[:_FIRST_LINES]
