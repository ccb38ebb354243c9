"""One logged training iteration, and the numbers and spellings that its line may use."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What a log says of one iteration. None: it does not say.

    ``loss`` may be the mean over a log interval; ``skipped`` and ``nan_iterations`` are counts
    within it. ``consumed_samples`` counts from the start of the training. An unreadable or
    missing number is None, a written ``nan`` is NaN.
    """

    iteration: int
    loss: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    consumed_samples: int | None = None
    skipped: int | None = None
    nan_iterations: int | None = None
    loss_scale: float | None = None
    global_batch: int | None = None
    ms_per_iteration: float | None = None

    @property
    def says_anything(self) -> bool:
        """Claims that the line is a report of progress: it has a loss, a rate or a norm."""
        return not self.loss is self.lr is self.grad_norm is None


ALIASES: Mapping[str, str] = {
    "global_step": "iteration",
    "global step": "iteration",
    "step": "iteration",
    "steps": "iteration",
    "num_updates": "iteration",
    "iteration": "iteration",
    "iter": "iteration",
    "loss": "loss",
    "lm loss": "loss",
    "train_loss": "loss",
    "train/loss": "loss",
    "train loss": "loss",
    "reduced_train_loss": "loss",
    "total_loss": "loss",
    "lr": "lr",
    "learning_rate": "lr",
    "learning rate": "lr",
    "train/learning_rate": "lr",
    "train/lr": "lr",
    "grad_norm": "grad_norm",
    "grad norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "train/grad_norm": "grad_norm",
    "gnorm": "grad_norm",
    "consumed_samples": "consumed_samples",
    "consumed samples": "consumed_samples",
    "consumed": "consumed_samples",
    "skipped": "skipped",
    "number of skipped iterations": "skipped",
    "nan_iterations": "nan_iterations",
    "number of nan iterations": "nan_iterations",
    "loss_scale": "loss_scale",
    "loss scale": "loss_scale",
    "global_batch_size": "global_batch",
    "global batch size": "global_batch",
    "ms": "ms_per_iteration",
    "ms_per_iteration": "ms_per_iteration",
    "elapsed time per iteration (ms)": "ms_per_iteration",
}
"""Spellings in logs -> fields of `Point`; where a line has several, the first listed counts."""

_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_NO_NUMBER = re.compile(r"[-+]?(?:nan\(\w*\)|1\.#\w+)", re.IGNORECASE)  # C libraries' spellings
_WHOLE = frozenset({"iteration", "consumed_samples", "skipped", "nan_iterations", "global_batch"})


def number(text: str) -> float | None:
    """The number written, NaN and infinities included; None for anything else."""
    try:
        return float(text.replace(",", "") if _THOUSANDS.fullmatch(text) else text)
    except ValueError:
        return math.nan if _NO_NUMBER.fullmatch(text) else None


def point_of(said: Mapping[str, str]) -> Point | None:
    """The point of a line's keys and values; None without iteration, loss, rate and norm."""
    values: dict[str, float] = {}
    for spelling, name in ALIASES.items():
        value = number(said[spelling]) if spelling in said else None
        if value is not None:
            values.setdefault(name, value)
    return made(values)


def made(values: Mapping[str, float]) -> Point | None:
    """A point of numbers by field; None without iteration, or with nothing beside it."""
    if not math.isfinite(values.get("iteration", math.nan)):
        return None
    whole = {n: int(v) for n, v in values.items() if n in _WHOLE and math.isfinite(v)}
    real = {n: v for n, v in values.items() if n not in _WHOLE}
    point = Point(**whole, **real)  # type: ignore[arg-type]  # names and kinds are those of Point
    return point if point.says_anything else None


def filled(one: Point, other: Point) -> Point:
    """The first point, with what only the second says (two lines about one iteration)."""
    missing = {
        f.name: getattr(other, f.name) for f in fields(Point) if getattr(one, f.name) is None
    }
    return replace(one, **missing)
