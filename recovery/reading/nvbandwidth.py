"""What NVIDIA's nvbandwidth measured: a matrix of GB/s for each test case.

Source: NVIDIA/nvbandwidth v0.4 to v0.8, plain output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.plain import ends_with_newline, plain_lines, short_lines

_RUNNING = re.compile(r"Running (\w{3,80})\.")
_ROW = re.compile(r"\s*(\d{1,4})((?:\s+(?:\d{1,8}\.\d+|N/A))+)\s*")
_SUM = re.compile(r"SUM (\w{3,80}) (\d{1,9}(?:\.\d+)?)")
_WAIVED = re.compile(r"(?:WAIVED|Waived)[: ]*(.*)")
_ERROR = re.compile(r"(?i).*(\[?error\]?|CUDA_ERROR|failed|insufficient).*")


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """GB/s by test case and GPU (the matrix's column; of a GPU's several values the least).

    ``whole`` are the cases whose closing sum was printed; ``troubles`` lines of errors.
    """

    cases: Mapping[str, Mapping[str, float]]
    whole: frozenset[str]
    troubles: tuple[str, ...]


def read_nvbandwidth(printed: Printed) -> Bandwidths:
    """The measured cases.

    Raises:
        ParseError: no case was run.
    """
    cases: dict[str, dict[str, float]] = {}
    whole: set[str] = set()
    troubles = []
    now = ""
    for line in short_lines(plain_lines(f"{printed.text}\n{printed.error_text}")):
        if match := _RUNNING.fullmatch(line.strip()):
            now = match[1]
            cases.setdefault(now, {})
        elif now and (match := _ROW.fullmatch(line)):
            _take(cases[now], match[2].split())
        elif match := _SUM.fullmatch(line.strip()):
            whole.add(match[1])
        elif _ERROR.match(line) or _WAIVED.match(line.strip()):
            troubles.append(line.strip()[:120])
    if not cases and not troubles:
        said = printed.text.strip()[:60]
        remedy = "run nvbandwidth by hand on the node with idle GPUs"
        raise ParseError(f"no test of nvbandwidth: {said!r}", remedy=remedy)
    if not ends_with_newline(printed.text):
        whole.discard(now)
    return Bandwidths(cases, frozenset(whole), tuple(troubles))


def _take(into: dict[str, float], cells: list[str]) -> None:
    for column, cell in enumerate(cells):
        if cell != "N/A":
            name = f"GPU{column}"
            into[name] = min(into.get(name, float("inf")), float(cell))
