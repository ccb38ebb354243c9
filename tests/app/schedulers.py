"""Stand-ins for the commands of a scheduler: they say what they are told, and write down what
they were asked."""

import os
from pathlib import Path


def put_tool(folder: Path, name: str, *, says: str = "", status: int = 0) -> None:
    """Puts a command on the shelf of a test."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.says").write_text(says)
    tool = folder / name
    tool.write_text(
        f'#!/bin/sh\necho "{name} $*" >> {folder}/asked\n'
        f"cat {folder}/{name}.says\n[ {status} = 0 ] || echo refused >&2\nexit {status}\n"
    )
    tool.chmod(0o755)


def asked(folder: Path) -> list[str]:
    """What the commands were asked, in order."""
    written = folder / "asked"
    return written.read_text().splitlines() if written.exists() else []


def on_path(folder: Path) -> str:
    """PATH with the stand-ins before everything else."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
