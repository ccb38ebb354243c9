"""The resume argument of each framework, and launch lines that start anew without a word."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

from recovery.model.verdict import Finding, warned


def resume_argument(framework: str, path: str, step: int) -> str:
    """What to add to the training's line so that it loads this step; nothing where we know none.

    ``path`` is the checkpoint's own folder or file.

    Source: Megatron-LM arguments.py; TrainingArguments of transformers; examples of accelerate;
    LightningCLI; CheckpointManager of torchtitan. DeepSpeed, torchtune, NeMo and Orbax leave the
    name to the training script or to a file.
    """
    make = _ARGUMENTS.get(framework)
    return shlex.join(make(path, step)) if make and path else ""


def _megatron(path: str, step: int) -> tuple[str, ...]:
    folder = path.rstrip("/").rpartition("/")[0] or "."
    return ("--load", folder, "--ckpt-step", str(step), "--exit-on-missing-checkpoint")


_ARGUMENTS: dict[str, Callable[[str, int], tuple[str, ...]]] = {
    "megatron-legacy": _megatron,
    "megatron-dist": _megatron,
    "hf-trainer": lambda path, step: ("--resume_from_checkpoint", path),
    "accelerate": lambda path, step: ("--resume_from_checkpoint", path),
    "lightning": lambda path, step: ("--ckpt_path", path),
    "torchtitan": lambda path, step: ("--checkpoint.load_step", str(step)),
}

_SCRIPT = re.compile(r"\S+\.py\b")  # only where the line names the training itself can we tell
_MEGATRON = re.compile(r"pretrain_\w+\.py\b|megatron", re.IGNORECASE)
_RESUMES = re.compile(r"RESUME_|resume_from_checkpoint")


def pitfalls(line: str, framework: str, components: Iterable[str]) -> tuple[Finding, ...]:
    """What in this launch line, or in the checkpoint, starts the training anew without an error.

    ``components`` are those of the chosen checkpoint.
    """
    found: list[Finding] = []
    plain = bool(_SCRIPT.search(line)) and "RESUME_ARGUMENT" not in line
    if plain and (framework.startswith("megatron") or _MEGATRON.search(line)):
        found += _megatron_pitfalls(line)
    if framework == "hf-trainer":
        found += _trainer_pitfalls(line, frozenset(components), plain=plain)
    return tuple(found)


def _megatron_pitfalls(line: str) -> Iterable[Finding]:
    if "--exit-on-missing-checkpoint" not in line:
        yield _warned(
            "Megatron starts from random weights where it finds no checkpoint",
            "add --exit-on-missing-checkpoint (it then ends, with exit status 0) and keep `verify`",
        )


def _trainer_pitfalls(line: str, components: frozenset[str], *, plain: bool) -> Iterable[Finding]:
    if plain and not _RESUMES.search(line):
        yield _warned(
            "HF Trainer starts anew unless it is told to resume",
            "add --resume_from_checkpoint PATH, or $RESUME_ARGUMENT",
        )
    absent = sorted({"optimizer", "scheduler"} - components)
    if absent:
        yield _warned(
            f"HF Trainer loads neither optimizer nor scheduler, without a word: no {absent[0]} "
            "in this checkpoint",
            "choose one that has both: `require: [model, optimizer, scheduler]`",
        )


def _warned(words: str, remedy: str) -> Finding:
    return warned(words, remedy=remedy, code="launch.pitfall")
