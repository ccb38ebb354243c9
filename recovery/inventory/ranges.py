"""A host pattern -> names: Ansible ranges ``node[001:128]`` and hostlists ``node[001-128,200]``."""

from __future__ import annotations

import re
from itertools import product
from string import ascii_letters

from recovery.errors import InputError

MOST_NAMES = 1_000_000

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ADDRESS = re.compile(r"(?=.*:.*:)[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")  # IPv6 has two colons or more
_PORT = re.compile(r"(?P<rest>(?:[^\[\]:]|\[[^\[\]]*\])+):(?P<port>[0-9]{1,5})")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_N = "[0-9]{1,12}"
_COLONS = re.compile(rf"(?P<first>(?:{_N})?|[A-Za-z]):(?P<last>{_N}|[A-Za-z])(?::(?P<step>{_N}))?")
_DASHES = re.compile(rf"(?P<first>{_N})(?:-(?P<last>{_N})(?:/(?P<step>{_N}))?)?")


class PatternError(InputError):
    """A host pattern that means nothing; whoever reads the text adds the place."""


def split_port(pattern: str) -> tuple[str, int | None]:
    """The pattern without a ``:2222`` at its end, and that port."""
    found = _PORT.fullmatch(pattern) if ":" in pattern else None
    return (found["rest"], int(found["port"])) if found else (pattern, None)


def expand_pattern(pattern: str) -> tuple[str, ...]:
    """The names that a pattern means, in the order written, each once.

    Raises:
        PatternError: a range that is reversed, empty, unevenly padded or huge, an open bracket,
            or a name that cannot be a node's.
    """
    if _NAME.fullmatch(pattern):
        return (pattern,)
    parts = _BRACKETS.split(pattern)  # text, inside, text, inside, ..., text
    if any("[" in text or "]" in text for text in parts[::2]):
        raise PatternError(f"bracket not closed in {pattern!r}", remedy="write node[001-128]")
    outside = "0".join(parts[::2])
    if not _NAME.fullmatch(outside) and not _ADDRESS.fullmatch(outside):
        raise PatternError(
            f"{pattern[:60]!r} cannot be a node's name",
            remedy="use letters, digits, '.', '_' and '-', a letter or digit first",
        )
    if len(parts) == 1:
        return (pattern,)
    choices = [_inside(part, pattern) if i % 2 else [part] for i, part in enumerate(parts)]
    _refuse_too_many(choices, pattern)
    return tuple(dict.fromkeys(map("".join, product(*choices))))


def _inside(body: str, pattern: str) -> list[str]:
    if not body.strip():
        raise PatternError(f"empty range in {pattern!r}", remedy="write node[001-128]")
    if ":" in body:
        return _span(_COLONS.fullmatch(body), body, pattern)
    names: list[str] = []
    for part in body.split(","):
        names.extend(_span(_DASHES.fullmatch(part.strip()), part, pattern))
    return names


def _span(found: re.Match[str] | None, part: str, pattern: str) -> list[str]:
    if found is None:
        raise PatternError(
            f"{part[:60]!r} in {pattern[:60]!r} is not a range",
            remedy="write [001-128], [1,3,5-9], [001:128] or [a:f]",
        )
    first = found["first"] or "0"
    last = found["last"] or first
    step = int(found["step"] or 1)
    if step == 0:
        raise PatternError(f"step 0 in {pattern!r}", remedy="leave the step out")
    if first.isdigit() != last.isdigit():
        raise PatternError(
            f"{part!r} in {pattern!r} goes from a letter to a number",
            remedy="write [1:9] or [a:f]",
        )
    return _numbers(first, last, step, pattern) if first.isdigit() else _letters(found, step)


def _numbers(first: str, last: str, step: int, pattern: str) -> list[str]:
    padded = any(len(end) > 1 and end[0] == "0" for end in (first, last))
    if padded and len(first) != len(last):
        width = max(len(first), len(last))
        raise PatternError(
            f"uneven padding {first}-{last} in {pattern!r}",
            remedy=f"write both ends with {width} digits: {first.zfill(width)}-{last.zfill(width)}",
        )
    span = range(int(first), int(last) + 1, step)
    if not span:
        raise _reversed(first, last, pattern)
    _refuse_too_many([span], pattern)
    width = len(first) if padded else 0
    return [str(number).zfill(width) for number in span]


def _letters(found: re.Match[str], step: int) -> list[str]:
    first, last = ascii_letters.index(found["first"]), ascii_letters.index(found["last"])
    if first > last:
        raise _reversed(found["first"], found["last"], f"[{found[0]}]")
    return list(ascii_letters[first : last + 1 : step])


def _reversed(first: str, last: str, pattern: str) -> PatternError:
    return PatternError(
        f"range {first}-{last} in {pattern!r} is reversed", remedy=f"write {last}-{first}"
    )


def _refuse_too_many(choices: list[list[str]] | list[range], pattern: str) -> None:
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_NAMES:
        raise PatternError(
            f"{pattern!r} means {count:,} nodes", remedy=f"name at most {MOST_NAMES:,}"
        )
