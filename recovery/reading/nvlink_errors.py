"""The error counters of each NVLink, as ``nvidia-smi nvlink -e`` prints them.

Source: nvidia-smi of drivers 470 to 550 (replay, recovery, CRC) and 570 and newer on Blackwell
(packets, recovery events, bit error rates).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.content import first_lines
from recovery.reading.plain import ends_with_newline, plain_lines, short_lines
from recovery.reading.sections import without_end

_GPU = re.compile(r"GPU (\d+): .*")
_LINK = re.compile(r"\s*Link (\d+): (.*?): *(\S+)\s*")
_WORDS_OF_NONE = ("N/A", "[N/A]", "<not supported>", "Not")
_QUIET = re.compile(
    r".*(?:not supported|unable to retrieve|no NVLink|does not support|inactive)", re.IGNORECASE
)
_COUNTER = re.compile(r"\s+Link \d+: [\w ]*(?:errors|events|packets)\b[\w ]*: *\S", re.IGNORECASE)
_ASKS = re.compile(r"nvidia-smi nvlink\b.* (?:-e\w*|--errorcounters)\b")


@dataclass(frozen=True, slots=True)
class LinkErrors:
    """Counters by (GPU, link) and name in lower case; ``gpus`` lists all that were named.

    ``torn`` says why the text cannot be whole.
    """

    gpus: tuple[str, ...] = ()
    counts: Mapping[tuple[str, int], Mapping[str, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    torn: str = ""


def is_nvlink_errors(printed: Printed) -> bool:
    """Claims that these are counters of errors: by the command, else by the lines of the links."""
    if printed.command:
        return _ASKS.search(printed.command) is not None
    return any(_COUNTER.match(line) for line in first_lines(printed.text))


def read_nvlink_errors(printed: Printed) -> LinkErrors:
    """The counters; a value that the driver does not give is left out.

    Raises:
        ParseError: no GPU is named.
    """
    printed = without_end(printed)
    gpus: list[str] = []
    counts: dict[tuple[str, int], dict[str, int]] = {}
    notes, odd = [], []
    for line in short_lines(plain_lines(printed.text)):
        if gpus and (match := _LINK.fullmatch(line)):
            of_link = counts.setdefault((gpus[-1], int(match[1][:6])), {})
            if match[3].isdecimal():
                of_link[" ".join(match[2].lower().split())] = int(match[3][:24])
        elif match := _GPU.fullmatch(line.strip()):
            gpus.append(f"GPU{int(match[1][:6])}")
        elif _QUIET.match(line):
            notes.append(line.strip()[:120])
        elif line.strip():
            odd.append(line.strip()[:60])
    if not gpus:
        said = (odd or notes or [printed.error_text.strip()[:80] or "nothing"])[0]
        remedy = "run nvidia-smi nvlink -e by hand on the node"
        raise ParseError(f"no counters of NVLink: {said!r}", remedy=remedy)
    return LinkErrors(tuple(gpus), counts, tuple(notes), _torn(printed, gpus, counts, odd))


def _torn(
    printed: Printed,
    gpus: list[str],
    counts: Mapping[tuple[str, int], Mapping[str, int]],
    odd: list[str],
) -> str:
    if odd:
        return f"a line that is no counter: {odd[0]!r}"
    if not ends_with_newline(printed.text):
        return "the last line is not whole"
    shapes = {gpu: [(k[1], *sorted(v)) for k, v in counts.items() if k[0] == gpu] for gpu in gpus}
    first, last = shapes[gpus[0]], shapes[gpus[-1]]
    if first and len(last) < len(first):
        return f"{gpus[-1]} has {len(last)} links here, {gpus[0]} {len(first)}"
    if first and last and len(last[-1]) < len(first[-1]):
        return f"the last link of {gpus[-1]} has fewer counters"
    return ""
