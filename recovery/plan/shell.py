"""Values inside a shell line: what may stand there bare, and where a quoted one may stand.

A value from outside can turn one command into two. So a value with a character that means
something to a shell must go through ``| q``; and a quoted value must stand where its quotes count,
not inside other quotes, where they would close those and set the value free.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from recovery.errors import TemplateError

MARK = "\x00"
"""Stands around a quoted value while a line is rendered; a command cannot contain it."""

_BARE = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<)")


class Quoted(str):
    """Text that a shell reads as exactly one word (or one word for each item of a list)."""

    __slots__ = ()


class Line(str):
    """Text that the operator calls a shell line of its own, by ``| line``."""

    __slots__ = ()


class Shown(str):
    """Text that stands for a value not known yet: shown to people, never run."""

    __slots__ = ()


def quote(value: object) -> Quoted:
    """The value as one shell word; a list becomes one word for each item.

    Raises:
        TemplateError: no value, a NUL, or a mapping.
    """
    if isinstance(value, Quoted):
        return value
    if isinstance(value, (list, tuple)):
        return Quoted(" ".join(quote(item) for item in value))
    if value is None or isinstance(value, dict):
        raise _refused(value, "a mapping" if value else "no value", "give it a text or a number")
    text = str(value)
    if MARK in text:
        raise TemplateError("a NUL cannot stand in a command", remedy="take it out of the value")
    return Quoted(shlex.quote(text))


def as_line(value: object) -> Line:
    """The value as a part of a shell line, taken as it stands: for whole commands in variables.

    Raises:
        TemplateError: no text, or an empty one.
    """
    if not isinstance(value, str) or not value.strip() or MARK in value:
        raise _refused(value, "not a shell line", "give it a command as text")
    return Line(value)


def in_line(value: object) -> str:
    """What a value becomes where a template puts it into a shell line.

    Raises:
        TemplateError: it would not stay one plain word.
    """
    if isinstance(value, Quoted):
        return f"{MARK}{value}{MARK}"
    if isinstance(value, (Line, Shown)):
        return value
    if value is None:
        raise _refused(None, "no value", "set the variable, with -e NAME=VALUE for one run")
    if isinstance(value, (list, tuple, dict)):
        raise _refused(value, "a list, not a word", "write {{ name | q }} for one word an item")
    text = str(value)
    if not text:
        raise _refused(text, "empty", "give it a value, or write {{ name | q }} for an empty word")
    if not _BARE.fullmatch(text):
        raise _refused(
            text, "not one plain word for a shell", "write {{ name | q }} to quote the value"
        )
    return text


def _refused(value: object, why: str, remedy: str) -> TemplateError:
    shown = "" if value is None else f" {str(value)[:60]!r}"
    return TemplateError(f"the value{shown} in a command is {why}", remedy=remedy)


def settle(line: str) -> str:
    """The rendered line without its marks.

    Raises:
        TemplateError: a quoted value stands where its quotes do not count.
    """
    _Scan(line).refuse_places()
    return line.replace(MARK, "")


_NAMES = {
    "'": "single quotes",
    '"': "double quotes",
    "`": "or after backticks (write $(...) in their place)",
    "#": "a comment",
    "$((": "an arithmetic expression",
    "${": "a parameter expansion",
    "$'": "or after $'...', which shells read differently",
}
_OPENS = ("$((", "$(", "${", "(", "'", '"', "`")
_ENDS = {"$((": "))", "$(": ")", "(": ")", "${": "}", "'": "'", '"': '"', "#": "\n"}


@dataclass(slots=True)
class _Scan:
    """Follows the quotes of a shell line; ``open`` is what stands open, outermost first."""

    line: str
    at: int = 0
    open: list[str] = field(default_factory=list)

    def refuse_places(self) -> None:
        while self.at < len(self.line):
            if self.line[self.at] == MARK:
                self.refuse_here()
                self.at = self.line.index(MARK, self.at + 1) + 1
            else:
                self.at += self.step()

    def refuse_here(self) -> None:
        before = self.line[: self.at]
        remedy = "write {{ name | q }} as a word of its own, without quotes around it"
        for opened in self.open:
            if opened in _NAMES:
                raise TemplateError(
                    f"a value quoted by | q stands inside {_NAMES[opened]}", remedy=remedy
                )
        if before.endswith(("\\", "$")):
            raise TemplateError(f"a value quoted by | q stands after {before[-1]!r}", remedy=remedy)
        if _HERE_DOCUMENT.search(before):
            raise TemplateError(
                "a value stands in or after a here-document, where quotes do not count",
                remedy="pass it by env: and use its name there",
            )

    def step(self) -> int:
        """Takes in what stands here; returns how many characters it was."""
        top = self.open[-1] if self.open else ""
        rest = self.line[self.at :]
        end = _ENDS.get(top, "")
        if end and rest.startswith(end):
            self.open.pop()
            return len(end)
        if top in ("'", "#", "$'", "`"):  # the last two: shells differ on where they end
            return 1
        if rest[0] == "\\":
            return 1 if rest[1:2] == MARK else 2
        return self.opening(rest, top)

    def opening(self, rest: str, top: str) -> int:
        before = self.line[self.at - 1] if self.at else "\n"
        if rest[0] == "#" and top != '"' and before in " \t\n;&|()`":
            self.open.append("#")
            return 1
        opened = next((word for word in _OPENS if rest.startswith(word)), "")
        if not opened or (top == '"' and opened in ("(", "'")):
            return 1
        self.open.append("$'" if opened == "'" and before == "$" else opened)
        return len(opened)
