"""One line of a training log -> the iteration it reports, for each framework that logs by line.

Source: Megatron-LM training.py (training_log); NeMo 2 progress printer; Hugging Face Trainer 4
and 5 (printed dictionaries); DeepSpeed engine.py (_report_progress); TorchTitan metrics.py;
torchtune recipes; lines of key=value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from recovery.errors import InputError
from recovery.reading.training_point import ALIASES, Point, number, point_of

LineReader = Callable[[str], Point | None]

_NUMBER = (
    r"[-+]?(?:1\.#[A-Z]+|\d{1,3}(?:,\d{3})+(?:\.\d*)?(?![\d,])|"
    r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF(?:INITY)?)(?![\w#])"
)
_WRAPPED = r"(?:tensor\(|(?:np|numpy)\.float\d\d\()?"  # how Python prints what is no plain number
_MEGATRON = re.compile(r"\biteration +(\d{1,15})/ *\d+ *\|(.*)")
_NEMO = re.compile(r"Training epoch \d+, iteration (\d{1,15})/\d+ *\|(.*)")
_DEEPSPEED = re.compile(
    r"\bstep=(\d{1,15}), skipped=(\d{1,15}), lr=\[(?:np\.float\d\d\()?([^\],)]+)"
)
_TORCHTUNE = re.compile(r"\bStep (\d{1,15}) \|(.*)")
_HF = re.compile(r"\{(['\"])(?:loss|train_loss|grad_norm|learning_rate|epoch)\1: .*?\}")
_HF_PAIR = re.compile(rf"['\"](\w+)['\"]: ['\"]?({_NUMBER})")
_HF_NAMES = {**ALIASES, "epoch": "epoch"}
_TUNE_BAR = re.compile(r"\d+\|(\d{1,15})\|Loss: *([^: |]+)")
_EPOCH_BAR = re.compile(r"Epoch +(\d{1,6})\b")
_PLAIN_KEYS = sorted((k for k in ALIASES if "(" not in k), key=len, reverse=True)
_NOT_EVALUATION = r"(?<!val )(?<!eval )(?<!valid )(?<!validation )(?<!test )(?<![\w/.-])"
_PLAIN = re.compile(
    rf"{_NOT_EVALUATION}({'|'.join(map(re.escape, _PLAIN_KEYS))})['\"]?[ =:]{{1,6}}['\"]?"
    rf"{_WRAPPED}({_NUMBER})",
    re.IGNORECASE,
)
_EVALUATION = re.compile(r"(?i)\b(?:validat\w*|eval\w*|test) (?:step|iter)")


def megatron(text: str) -> Point | None:
    """A Megatron-LM line; a loss of exactly 0 where all iterations were skipped is none."""
    match = _MEGATRON.search(text)
    if match is None or "Training epoch" in text:
        return None
    said = {"iteration": match[1], **_by_bars(match[2])}
    point = point_of({"lm loss": "0", **said})
    if point is None or not {"lm loss", "learning rate", "loss scale"} & set(said):
        return None
    idle = point.loss == 0.0 and point.skipped and "grad norm" not in said
    return replace(point, loss=None) if idle or "lm loss" not in said else point


def nemo(text: str) -> Point | None:
    """A NeMo 2 line; iterations count from 0."""
    match = _NEMO.search(text)
    if match is None:
        return None
    said = _by_bars(match[2])
    return point_of({**said, "global_step": said.get("global_step", match[1])})


def deepspeed(text: str) -> Point | None:
    """A DeepSpeed engine line: no loss; the first parameter group's rate."""
    match = _DEEPSPEED.search(text)
    return (
        point_of({"step": match[1], "skipped": match[2], "lr": match[3].strip()}) if match else None
    )


def torchtune(text: str) -> Point | None:
    """A torchtune disk logger line, or its progress bar."""
    if (bar := _TUNE_BAR.match(text)) is not None:
        return point_of({"step": bar[1], "loss": bar[2]})
    match = _TORCHTUNE.search(text)
    return point_of({"step": match[1], **dict(_PLAIN.findall(match[2]))}) if match else None


def plain(text: str) -> Point | None:
    """``step=1200 loss=2.34 lr=2.9e-04``, also with ``:`` or blanks, JSON lines, TorchTitan."""
    if _EVALUATION.search(text):
        return None
    said: dict[str, str] = {}
    for key, value in _PLAIN.findall(text):
        said.setdefault(key.lower(), value)
    return point_of(said)


def progress_bar(text: str, step: int, total: int | None) -> Point | None:
    """What a progress bar says beside itself, as Lightning's and NeMo 1's do.

    A bar that begins anew with each epoch counts on from the epochs before.
    """
    said = {key.lower(): value for key, value in _PLAIN.findall(text[text.rfind("[") :])}
    epoch = _EPOCH_BAR.search(text)
    passed = int(epoch[1]) * total if epoch and total else 0
    return point_of({"iteration": str(passed + step), **said})


def hugging_face(text: str) -> Mapping[str, float] | None:
    """The numbers of a dictionary that the Trainer prints, ``epoch`` among them."""
    match = _HF.search(text)
    said = dict(_HF_PAIR.findall(match[0])) if match else {}
    if not {"loss", "train_loss"} & set(said) or {"train_runtime", "step"} & set(said):
        return None
    found = {_HF_NAMES[k]: number(v) for k, v in said.items() if k in _HF_NAMES}
    return {name: value for name, value in found.items() if value is not None}


BY_LINE: Mapping[str, LineReader] = {
    "nemo": nemo,
    "megatron": megatron,
    "deepspeed": deepspeed,
    "torchtune": torchtune,
    "plain": plain,
}
"""Readers of formats that name the iteration in the line, the most particular first."""


def by_regex(pattern: str) -> LineReader:
    """A reader for lines that the user describes, by groups named as the fields of `Point`.

    Raises:
        InputError: not a regular expression, or no group for the iteration.
    """
    remedy = r"write it like 'it (?P<iteration>\d+) .* loss (?P<loss>\S+)'"
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"not a regular expression: {error}", remedy=remedy) from error
    groups = set(compiled.groupindex)
    if not {"iteration", "step"} & groups or not {"loss", "lr", "grad_norm"} & groups:
        message = f"the expression needs the groups iteration and loss, it has {sorted(groups)}"
        raise InputError(message, remedy=remedy)

    def read(text: str) -> Point | None:
        match = compiled.search(text)
        return point_of({k: v for k, v in match.groupdict().items() if v}) if match else None

    return read


def _by_bars(text: str) -> dict[str, str]:
    pairs = (part.rpartition(":") for part in text.split("|"))
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}
