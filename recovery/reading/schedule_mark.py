"""The line by which a schedule of ours is found again among the files of a system."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

from recovery.model.schedule import Schedule

MARK = "# recover-schedule: "


def mark_of(schedule: Schedule) -> str:
    """One comment line that holds the whole schedule."""
    return MARK + json.dumps(dataclasses.asdict(schedule), sort_keys=True)


def read_marks(text: str) -> Iterator[Schedule]:
    """The schedules whose lines stand in a text; lines that somebody broke are left out."""
    for line in text.splitlines():
        schedule = read_mark(line)
        if schedule is not None:
            yield schedule


def read_mark(line: str) -> Schedule | None:
    """The schedule of one line, if it is one of ours."""
    if not line.startswith(MARK):
        return None
    try:
        values = json.loads(line.removeprefix(MARK))
        return Schedule(**{**values, "argv": tuple(values["argv"])})
    except (ValueError, KeyError, TypeError):
        return None
