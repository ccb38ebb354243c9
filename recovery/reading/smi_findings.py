"""Findings that every check of nvidia-smi's answers words the same, so that they fold to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recovery.model.verdict import Finding, unknown, warned
from recovery.reading import cell
from recovery.reading.smi_errors import Trouble
from recovery.reading.smi_words import Gpu, Snapshot

_AGAIN = "run the command again with a longer time limit and keep the whole output"


def cut_short(snapshot: Snapshot) -> list[Finding]:
    """UNKNOWN when the text is not whole: what is missing may be the fault."""
    if not snapshot.cut:
        return []
    return [unknown(f"cut short: {snapshot.cut}", remedy=_AGAIN, code="unreadable.cut")]


def of_trouble(trouble: Trouble) -> Finding:
    """The finding for an error line of nvidia-smi."""
    where = f"GPU at {trouble.bus}: " if trouble.bus else ""
    return Finding(
        trouble.level,
        f"{where}{trouble.meaning}: {trouble.line!r}",
        trouble.remedy,
        component=trouble.bus,
        code=trouble.code,
    )


def unanswered(snapshot: Snapshot, name: str, what: str) -> list[Finding]:
    """What to say of GPUs without a value: a failed reading warns, no value anywhere is UNKNOWN."""
    asked = [gpu for gpu in snapshot.gpus if gpu.has(name)]
    answered = [gpu for gpu in asked if gpu.text(name) is not None]
    if asked and not answered:
        return [
            unknown(
                f"no GPU tells its {what} ({asked[0].values[name].strip() or 'empty'})",
                remedy="ask as root, outside a vGPU, or leave this check out for this hardware",
                code="gpu.not-told",
            )
        ]
    return [
        warned(
            f"{gpu.label}: the driver failed to read its {what}",
            remedy="ask again in a few seconds; only a repeated failure is a fault",
            component=gpu.label,
            code="gpu.state.reading-failed",
        )
        for gpu in asked
        if cell.is_failed(gpu.values[name])
    ]


def silent_on(snapshot: Snapshot, name: str) -> str:
    """Words for the GPUs that do not give this value, for the sentence of a PASS."""
    without = [gpu.label for gpu in snapshot.gpus if gpu.text(name) is None]
    return f" ({fold_gpus(without)} not told)" if without else ""


def fold_gpus(labels: Iterable[str]) -> str:
    """``GPU0-3,GPU7`` for labels of GPUs; other labels are listed."""
    kept = list(dict.fromkeys(labels))
    numbers = [int(label[3:]) for label in kept if label[:3] == "GPU" and label[3:].isdigit()]
    others = [label for label in kept if not (label[:3] == "GPU" and label[3:].isdigit())]
    return ",".join([*_ranges(sorted(numbers)), *others])


def _ranges(numbers: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [f"GPU{r[0]}" if len(r) == 1 else f"GPU{r[0]}-{r[-1]}" for r in runs]


def nonzero(gpus: Iterable[Gpu], name: str) -> dict[str, int]:
    """The GPUs whose count of this is above 0."""
    return {gpu.label: n for gpu in gpus if (n := gpu.count(name))}


def saying(gpus: Iterable[Gpu], name: str, *words: str) -> list[str]:
    """The GPUs whose value is one of these words."""
    return [gpu.label for gpu in gpus if gpu.says(name, *words)]


def where(snapshot: Snapshot, label: str) -> str:
    """``GPU3 (00000000:5B:00.0)``, for the person who walks to the machine."""
    for gpu in snapshot.gpus:
        bus = gpu.text("pci.bus_id")
        if gpu.label == label and bus and bus != label:
            return f"{label} ({bus})"
    return label
