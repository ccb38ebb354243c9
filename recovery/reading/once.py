"""One answer is read once, however many checks ask for the same text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from recovery.errors import ParseError
from recovery.model.output import Printed

T = TypeVar("T")
_MOST_KEPT = 2_000_000  # characters of one text that are kept to know it again


def once(read: Callable[[Printed], T]) -> Callable[[Printed], T]:
    """The same parser, which remembers its last answers and why it had none."""

    @lru_cache(maxsize=32)
    def remembered(printed: Printed) -> T | ParseError:
        try:
            return read(printed)
        except ParseError as error:
            return error

    @wraps(read)
    def parse(printed: Printed) -> T:
        if len(printed.text) > _MOST_KEPT:
            return read(printed)
        found = remembered(printed)
        if isinstance(found, ParseError):
            raise ParseError(found.message, remedy=found.remedy)
        return found

    return parse
