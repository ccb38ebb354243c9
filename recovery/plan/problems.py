"""What is wrong with a runbook: each problem with its place and remedy, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recovery.errors import RecoveryError, RunbookError
from recovery.model.runbook import Place


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong, where, and what to do about it."""

    file: str
    line: int
    column: int
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


def problem(place: Place, message: str, remedy: str) -> Problem:
    """A problem at a place."""
    return Problem(place.file, place.line, place.column, message, remedy)


def problem_of(error: RecoveryError, place: Place) -> Problem:
    """An error of another part, with its place before its message."""
    return problem(place, error.message, error.remedy)


def dotted(path: Iterable[str | int]) -> str:
    """``steps.0.retry``: a path as messages write it."""
    return ".".join(str(part) for part in path)


def refuse(problems: Sequence[Problem]) -> None:
    """Raises all problems as one error, in the order of their places; with none, nothing.

    Raises:
        RunbookError: there is a problem.
    """
    found = sorted(set(problems))
    if not found:
        return
    if len(found) == 1:
        raise RunbookError(str(found[0]), remedy=found[0].remedy)
    lines = [f"{one}\n    {one.remedy}" for one in found]
    raise RunbookError("\n".join(lines), remedy=f"mend the {len(found)} places named")
