"""Answers of several small commands in one text, each under a mark, and a mark at the end.

The end mark tells a whole answer from a cut one where the tools' own output has no end
(``/proc/mounts``, ``df``). A captured text without marks is read as one named section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.plain import ends_with_newline, plain_lines, short_lines

END = "end"
_NO_TOOL = 127
_MARK = re.compile(r"## (\S[^\n]{0,200})")
_PAIR = re.compile(r"\s*([\w()./ -]{1,60}?)\s*[:=]\s*(.*)")


def asking(parts: Mapping[str, str], *, needs: str = "") -> str:
    """The command line that answers each named part in turn and marks the end.

    Without the tool ``needs`` it exits with 127, as the shell does.
    """
    lines = [f"echo {quote(f'## {name}')}; {line}" for name, line in parts.items()]
    whole = "; ".join([*lines, f"echo {quote(f'## {END}')}"])
    if not needs:
        return whole
    missing = f"{{ echo {quote(f'{needs}: not found')} >&2; exit 127; }}"
    return f"command -v {needs} >/dev/null 2>&1 || {missing}; {whole}"


def looping(over: str, line: str, *, needs: str = "") -> str:
    """The command line that asks ``line`` of each ``$d`` that the shell words ``over`` give."""
    loop = f'for d in {over}; do echo "## $d"; {line}; done; echo {quote(f"## {END}")}'
    if not needs:
        return loop
    missing = f"{{ echo {quote(f'{needs}: not found')} >&2; exit 127; }}"
    return f"command -v {needs} >/dev/null 2>&1 || {missing}; {loop}"


def ended(line: str) -> str:
    """The command line that runs ``line``, marks its end and keeps its exit status."""
    return f"{line}; s=$?; echo {quote(f'## {END}')}; exit $s"


def without_end(printed: Printed) -> Printed:
    """The same answer without its end mark.

    Raises:
        ParseError: the command marks the end, and the mark is missing.
    """
    lines = plain_lines(printed.text)
    marks = [i for i, line in enumerate(lines) if line.strip() == f"## {END}"]
    if marks:
        whole = "".join(f"{line}\n" for line in lines[: marks[0]])
        return replace(printed, text=whole)
    if f"## {END}" in printed.command and printed.text.strip() and printed.exit_status != _NO_TOOL:
        raise ParseError("cut short: the end mark is missing", remedy="run the check again")
    return printed


def read_sections(printed: Printed, *, bare: str = "") -> Mapping[str, tuple[str, ...]]:
    """The lines of each section without blank ones, in the order printed.

    A text without any mark is the section ``bare``, where that is given and its last line is whole.

    Raises:
        ParseError: nothing was printed, the end mark is missing, or a mark stands twice.
    """
    lines = short_lines(plain_lines(printed.text))
    if not any(line.strip() for line in lines):
        said = printed.error_text.strip()[:120]
        raise ParseError(
            f"no answer{f': {said!r}' if said else ''}; silence is not health",
            remedy="run the check's command by hand on the node",
        )
    marks = [m[1].strip() if (m := _MARK.fullmatch(line.strip())) else None for line in lines]
    if not any(marks):
        return _bare(printed, lines, bare)
    if END not in marks:
        raise ParseError("cut short: the end mark is missing", remedy="run the check again")
    return _split(lines, marks)


def _bare(printed: Printed, lines: Sequence[str], bare: str) -> Mapping[str, tuple[str, ...]]:
    if not bare or "## end" in printed.command:
        raise ParseError(
            f"the marks of the command are missing: {lines[0].strip()[:60]!r}",
            remedy="keep the whole output of the check's command",
        )
    if not ends_with_newline(printed.text):
        raise ParseError("cut short: the last line is not whole", remedy="capture it again")
    return {bare: tuple(line for line in lines if line.strip())}


def _split(lines: Sequence[str], marks: Sequence[str | None]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    into: list[str] = []
    for line, mark in zip(lines, marks, strict=True):
        if mark == END:
            return {name: tuple(rest) for name, rest in found.items()}
        if mark is not None:
            if mark in found:
                raise ParseError(f"{mark!r} is answered twice", remedy="run the check again")
            into = found.setdefault(mark, [])
        elif line.strip():
            into.append(line)
    raise ParseError("cut short: the end mark is missing", remedy="run the check again")


def pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``name: value`` and ``name=value`` lines, names in lower case with single blanks."""
    for line in lines:
        if match := _PAIR.fullmatch(line):
            yield " ".join(match[1].lower().split()), match[2].strip()


def first_line(sections: Mapping[str, Sequence[str]], name: str) -> str | None:
    """The first line of a section without blanks around it; None where it is empty or absent."""
    lines = sections.get(name) or ()
    return lines[0].strip() or None if lines else None
