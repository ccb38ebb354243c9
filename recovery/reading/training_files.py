"""Training logs that are whole files: the Trainer's state, Lightning's table.

Source: transformers trainer_callback.py (TrainerState); Lightning csv_logs.py.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

from recovery.errors import ParseError
from recovery.reading.training_point import ALIASES, Point, filled, made, number

_STATE_NAMES = ("step", "loss", "learning_rate", "grad_norm")


def looks_like_trainer_state(text: str) -> bool:
    """Claims that the text is a ``trainer_state.json``, be it cut short."""
    return text.lstrip()[:1] == "{" and '"log_history"' in text


def trainer_state(text: str) -> list[Point]:
    """The iterations of ``log_history``, at full precision.

    Raises:
        ParseError: not JSON (cut short), or without a history.
    """
    try:
        history = json.loads(text)["log_history"]
    except (ValueError, KeyError, TypeError):
        raise ParseError(
            "trainer_state.json cannot be read: cut short?",
            remedy="take it from the newest whole checkpoint",
        ) from None
    rows = history if isinstance(history, list) else []
    return [p for row in rows if isinstance(row, dict) and (p := _of_state(row)) is not None]


def _of_state(row: dict[str, Any]) -> Point | None:
    found: dict[str, float] = {}
    for name in _STATE_NAMES:
        value = number(str(row[name])) if name in row else None
        if value is not None:
            found[ALIASES[name]] = value
    return made(found)


def looks_like_lightning(text: str) -> bool:
    """Claims that the text is a ``metrics.csv``: a heading with a step and a loss or a rate."""
    names = _heading(text)
    return "step" in names and any(_field(n) for n in names)


def lightning(text: str) -> list[Point]:
    """The iterations of a ``metrics.csv``; rows of one step (its loss, its rate) become one."""
    lines = text.replace("\x00", "").splitlines()
    whole = lines if text.endswith("\n") else lines[:-1]
    points: list[Point] = []
    for row in csv.DictReader(whole):
        values = dict(_cells(row))
        point = made(values)
        if point is not None and points and points[-1].iteration == point.iteration:
            points[-1] = filled(points[-1], point)
        elif point is not None:
            points.append(point)
    return points


def _heading(text: str) -> list[str]:
    first = text.lstrip().split("\n", 1)[0]
    return [n.strip() for n in first.split(",")] if "," in first else []


def _cells(row: dict[str | Any, str | Any]) -> Iterator[tuple[str, float]]:
    for name, cell in row.items():
        field = "iteration" if name == "step" else _field(str(name))
        value = number(cell) if isinstance(cell, str) else None
        if field and value is not None:
            yield field, value


def _field(name: str) -> str:
    if name.startswith("lr-"):
        return "" if "/pg" in name and not name.endswith("/pg1") else "lr"
    return ALIASES.get(name.removesuffix("_step"), "") if name != "step" else ""
