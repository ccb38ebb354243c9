"""Iterations that a training log reports, resumes from a checkpoint, and how the two fit.

Source: Megatron-LM training.py (training_log), Hugging Face Trainer, DeepSpeed engine and
loss_scaler, PyTorch Lightning checkpoint_connector.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

KEPT = 5000
"""Iterations of one attempt that are kept, the last ones; all are counted."""

_MEGATRON = re.compile(r"\biteration +(?P<step>\d+)/ *(?P<total>\d+) \|(?P<rest>.*)")
_DEEPSPEED = re.compile(r"\bstep=(?P<step>\d+), skipped=(?P<skipped>\d+), lr=\[(?P<lr>[^\],]+)")
_DICT = re.compile(r"\{'(?:loss|train_loss|grad_norm|learning_rate|epoch)': .*\}")
_PAIR = re.compile(r"'(\w+)': '?(-?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf))'?")
_GENERIC = re.compile(
    r"\b(?:step|iter(?:ation)?)[ =:]+(?P<step>\d+)(?:/(?P<total>\d+))?\b.{0,200}?"
    r"\bloss[ =:]+(?P<loss>-?[\d.]+(?:[eE][-+]?\d+)?|nan|inf)"
)
_RESUMES = (
    re.compile(r"(?:successfully )?loaded checkpoint (?:from )?\S+.* at iteration (?P<step>\d+)"),
    re.compile(r"Continuing training from global step (?P<step>\d+)"),
    re.compile(r"Continuing training from checkpoint|Continuing training from epoch"),
    re.compile(r"Restor(?:ed all states|ing states) from the checkpoint.{0,8} at (?P<path>\S+)"),
    re.compile(r"(?i:resum(?:ed|ing)(?: training)? from (?:checkpoint|step|iteration)[ :]+)"
               r"(?:(?P<step>\d+)\b|(?P<path>\S+))"),
)  # fmt: skip
_SAVES = (
    re.compile(r"Saving model checkpoint to \S*checkpoint-(?P<step>\d+)"),
    re.compile(r"(?:successfully saved|saving) checkpoint (?:at|from) iteration +(?P<step>\d+)"),
)
_ENDS = re.compile(
    r"\[after training is done\]|Training completed|'train_runtime':|`Trainer\.fit` stopped|"
    r"[Tt]raining (?:finished|is done|complete)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One report of progress. None: the line does not say (a skipped iteration has no loss)."""

    step: int | None
    total: int | None = None
    loss: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    loss_scale: float | None = None
    skipped: int | None = None
    nan: int | None = None
    elapsed_ms: float | None = None


@dataclass(slots=True)
class Attempt:
    """What one start of the job reported until it ended or started again."""

    iterations: deque[Iteration] = field(default_factory=lambda: deque(maxlen=KEPT))
    n_iterations: int = 0
    since_save: int = 0
    resumed_from: int | str | None = None

    def add(self, one: Iteration) -> None:
        """Takes one iteration."""
        self.iterations.append(one)
        self.n_iterations += 1
        self.since_save += 1


def iteration_in(text: str) -> Iteration | None:
    """The iteration that one line reports; None if none."""
    if not ("step" in text or "iter" in text or "{'" in text):
        return None
    if match := _MEGATRON.search(text):
        return _megatron(match)
    if match := _DEEPSPEED.search(text):
        skipped = int(match["skipped"][:15])
        return Iteration(step=int(match["step"][:15]), skipped=skipped, lr=_number(match["lr"]))
    if match := _DICT.search(text):
        return _hugging_face(match[0])
    if (match := _GENERIC.search(text)) is not None and "rror" not in text:
        total = match["total"]
        return Iteration(
            step=int(match["step"][:15]),
            total=int(total[:15]) if total else None,
            loss=_number(match["loss"]),
        )
    return None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _count(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None or not math.isfinite(number) else int(number)


def _megatron(match: re.Match[str]) -> Iteration:
    said: dict[str, str] = {}
    for part in match["rest"].split("|"):
        key, colon, value = part.rpartition(":")
        if colon:
            said[key.strip()] = value.strip()
    skipped = _count(said.get("number of skipped iterations"))
    loss, lr = _number(said.get("lm loss")), _number(said.get("learning rate"))
    if loss == 0.0 and skipped and (lr == 0.0 or "grad norm" not in said):
        loss = None  # newer versions print 0 where no iteration of the interval counted
    return Iteration(
        step=int(match["step"][:15]),
        total=int(match["total"][:15]),
        loss=loss,
        lr=lr,
        grad_norm=_number(said.get("grad norm")),
        loss_scale=_number(said.get("loss scale")),
        skipped=skipped,
        nan=_count(said.get("number of nan iterations")),
        elapsed_ms=_number(said.get("elapsed time per iteration (ms)")),
    )


def _hugging_face(text: str) -> Iteration | None:
    said = dict(_PAIR.findall(text))
    if not {"loss", "train_loss"} & set(said) or "train_runtime" in said:
        return None
    return Iteration(
        step=_count(said.get("step")),
        loss=_number(said.get("loss") or said.get("train_loss")),
        lr=_number(said.get("learning_rate")),
        grad_norm=_number(said.get("grad_norm")),
    )


def resume_in(text: str) -> int | str | None:
    """The step or path that the job says it resumes from; ``""`` when it names none."""
    for pattern in _RESUMES:
        if (match := pattern.search(text)) is not None:
            found = match.groupdict()
            if found.get("step"):
                return int(found["step"][:15])
            return (found.get("path") or "").rstrip(".,")
    return None


def save_in(text: str) -> int | None:
    """The step that a checkpoint was saved at; None if the line is about something else."""
    match = next((m for pattern in _SAVES if (m := pattern.search(text))), None)
    return int(match["step"][:15]) if match else None


def is_end(text: str) -> bool:
    """Claims that the job says that it is done."""
    return bool(_ENDS.search(text))


def compared(before: Attempt, after: Attempt) -> dict[str, Any]:
    """What the resume repeated and whether loss and learning rate go on as they were."""
    old: dict[int | None, Iteration] = {i.step: i for i in before.iterations if i.step is not None}
    again = [i for i in after.iterations if i.step in old]
    differences = [
        abs(i.loss - o.loss)
        for i in again
        if (o := old.get(i.step)) and o.loss is not None and i.loss is not None
    ]
    losses = [i.loss for i in before.iterations if i.loss is not None]
    new = [i.loss for i in after.iterations if i.loss is not None]
    times = [i.elapsed_ms for i in after.iterations if i.elapsed_ms is not None]
    return {
        "repeated": [i.step for i in again],
        "max_loss_diff_on_repeat": max(differences) if differences else None,
        "loss_before": losses[-1] if losses else None,
        "loss_after_mean": sum(new) / len(new) if new else None,
        "first_step_ms_after": times[0] if times else None,
        "lr_continuous": _lr_continuous(before, after),
    }


def _lr_continuous(before: Attempt, after: Attempt) -> bool | None:
    """Whether the first learning rate after the resume is the one that stood there before."""
    first = next((i for i in after.iterations if i.lr is not None), None)
    rates = [i for i in before.iterations if i.lr is not None]
    if first is None or not rates or first.lr is None:
        return None
    same = [i for i in rates if i.step is not None and i.step == first.step]
    if not same and first.step is None and 0 < before.since_save <= len(rates):
        same = [rates[-before.since_save]]
    reference = (same or rates)[-1].lr or 0.0
    tolerance = 0.001 if same else 0.1
    return abs(first.lr - reference) <= tolerance * max(abs(reference), 1e-12)


def losses(attempts: Iterable[Attempt]) -> list[float | None]:
    """The loss of each kept iteration, attempts in order."""
    return [i.loss for attempt in attempts for i in attempt.iterations]
