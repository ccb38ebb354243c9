"""Small answers of nvidia-smi, built from the values that a test cares about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recovery.engine.judging import AnyCheck, Judged, judge_one
from recovery.model.output import Printed

Section = Mapping[str, Any]
BUSES = ("0F", "2D", "44", "5B", "89", "A8", "C0", "D8")


def query(
    gpus: Sequence[Section], *, attached: int | None = None, driver: str = "570.172.08"
) -> str:
    """``nvidia-smi -q`` with these sections for each GPU; a nested mapping is a section."""
    n_attached = len(gpus) if attached is None else attached
    lines = [
        "",
        "==============NVSMI LOG==============",
        "",
        f"Driver Version                            : {driver}",
        "CUDA Version                              : 12.8",
        "",
        f"Attached GPUs                             : {n_attached}",
    ]
    for bus, gpu in zip(BUSES, gpus, strict=False):
        lines += [f"GPU 00000000:{bus}:00.0", *_entries(gpu, 4), ""]
    return "\n".join(lines) + "\n"


def _entries(section: Section, indent: int) -> list[str]:
    found: list[str] = []
    for name, value in section.items():
        if isinstance(value, Mapping):
            found += [" " * indent + name, *_entries(value, indent + 4)]
        else:
            found.append((" " * indent + name).ljust(42) + f": {value}")
    return found


def csv(*rows: str) -> str:
    """A table of ``--query-gpu``: the header first."""
    return "\n".join(rows) + "\n"


def ask(check: AnyCheck, text: str, context: Mapping[str, Any] | None = None) -> Judged:
    """What the check makes of the text, as its own command would have printed it."""
    return judge_one(check, Printed(text, exit_status=0, command=check.command), context or {})
