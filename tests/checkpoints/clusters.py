"""Staged clusters: a folder a node, damaged or not, and what the inspector says on each."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recovery.checkpoints.inspection import Inspection, Place, read_inspection
from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import trees


def inspection_of(path: Path, *, now_s: float = 1e9) -> Inspection:
    """What the node whose checkpoints lie at ``path`` would answer."""
    inspector.Options.deep = False
    document: dict[str, Any] = inspector.inspect([str(path)], 40)
    rest = {"inspector": 1, "power": "full", "deep": False, "now": now_s, "end": True}
    return read_inspection(json.dumps({**document, **rest}))


def cluster(
    root: Path,
    nodes: int,
    *,
    layout: str = "hf_replica",
    hurt: Mapping[str, Callable[[Path], object]] | None = None,
) -> dict[str, Inspection]:
    """``n1`` to ``nN`` with the same three checkpoints, then damage on some, then inspection."""
    first = trees.write(layout, root / "n1")
    for number in range(2, nodes + 1):
        shutil.copytree(first, root / f"n{number}")
    for node, how in (hurt or {}).items():
        how(root / node)
    return {f"n{i}": inspection_of(root / f"n{i}") for i in range(1, nodes + 1)}


def without_step(step: int) -> Callable[[Path], None]:
    """The node never wrote this step."""

    def hurt(tree: Path) -> None:
        for path in tree.glob(f"*{step}*"):
            shutil.rmtree(path)

    return hurt


def dated(seconds: float) -> Callable[[Path], None]:
    """The node's clock stood there when it saved."""

    def hurt(tree: Path) -> None:
        paths = sorted(p for p in tree.rglob("*") if p.is_file())
        for number, path in enumerate(paths):
            os.utime(path, (seconds + number, seconds + number))

    return hurt


def on_share(inspections: Mapping[str, Inspection], fstype: str = "nfs4") -> dict[str, Inspection]:
    """The same answers as if every node had looked at one directory of a file server."""
    share = Place(
        path="/ckpt",
        exists=True,
        storage_known=True,
        source="filer:/ckpt",
        fstype=fstype,
        inode=2,
        free_bytes=1 << 40,
    )
    return {
        node: replace(
            inspection,
            places=(share,),
            checkpoints=tuple(
                replace(c, path=f"/ckpt/{c.path.rpartition('/')[2]}", place="/ckpt")
                for c in inspection.checkpoints
            ),
        )
        for node, inspection in inspections.items()
    }
