"""A folder of an operator's own, with one small cluster and one small runbook."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

INVENTORY = "all:\n  vars: {word: fine}\n  children:\n    gpu: {hosts: {'n[1:3]': {}}}\n"
BOOK = (
    'runbook: night\nnodes: "@gpu"\nvars: {word: dull, ready: 1}\nsteps:\n'
    "  - run: echo {{ word }}\n    effect: read\n    gate: '{{ ready }}'\n"
    "  - use: shared/part.yaml\n"
)
PART = "fragment: part\nsteps:\n  - check: gpu.count\n"


def operators_folder(folder: Path) -> Path:
    """Writes inventories/c.yaml, runbooks/night.yaml and a part that it uses."""
    for name, text in (
        ("inventories/c.yaml", INVENTORY),
        ("runbooks/night.yaml", BOOK),
        ("runbooks/shared/part.yaml", PART),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def recover(*words: str) -> Result:
    """Runs `recover` as typed; an error of ours is left in the result's exception."""
    from recovery.cli import ROOT

    return CliRunner().invoke(ROOT, words)
