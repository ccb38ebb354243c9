"""Which detector sees which damage, over all layouts, and what the real loader says.

    python -m tests.bench.checkpoint_table

Trees and damage are those of the tests. With torch (and safetensors) installed, a last column
counts the trees whose files the framework's own loader reads without a word.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import damage, trees

Tree = Path
Detector = Callable[[Tree, Tree], bool]


def say(line: str) -> None:
    """Prints a line."""
    sys.stdout.write(line + "\n")


def _names(top: Path) -> dict[str, int]:
    """Sizes by name with numbers of steps blanked."""
    if top.is_file():
        return {"": top.stat().st_size}
    return {
        re.sub(r"\d{3,}", "#", str(p.relative_to(top))): p.stat().st_size
        for p in top.rglob("*")
        if p.is_file() and p.suffix != ".json"
    }


def by_size(tree: Tree, clean: Tree) -> bool:
    """Size or presence against the same checkpoint before the damage, 2 % allowed."""
    then, now = _names(damage.newest(clean)), _names(damage.newest(tree))
    return any(n not in now or abs(now[n] - s) > 0.02 * s for n, s in then.items())


def by_end(tree: Tree, _: Tree) -> bool:
    """What tail and od can do: the end record of every zip."""
    for path in damage.files(tree, r"\.(pt|pth|bin|ckpt|pkl)$"):
        raw = path.read_bytes()
        legacy = raw[:2] == b"\x80\x02"
        if not legacy and (raw[:4] != b"PK\3\4" or raw[-22:-18] != b"PK\5\6"):
            return True
    return False


def by_stat(tree: Tree, _: Tree) -> bool:
    """Empty files, holes, leftovers."""
    top = damage.newest(tree)
    for path in [top] if top.is_file() else [p for p in top.rglob("*") if p.is_file()]:
        st = path.stat()
        holed = st.st_size > 65536 and st.st_blocks * 512 < st.st_size
        if st.st_size == 0 or holed or path.name.endswith(".tmp"):
            return True
    return False


def _inspected(tree: Tree, *, deep: bool) -> bool:
    inspector.Options.deep = deep
    document: dict[str, Any] = inspector.inspect([str(tree)], 40)
    return any(c["level"] != "pass" for c in document["checkpoints"])


def by_quick(tree: Tree, _: Tree) -> bool:
    return _inspected(tree, deep=False)


def by_deep(tree: Tree, _: Tree) -> bool:
    return _inspected(tree, deep=True)


def loader_raises(tree: Tree, _: Tree) -> bool:
    """The framework's own loader, on every file that it would open by itself."""
    import safetensors.torch
    import torch

    for path in damage.files(tree, r"\.(pt|pth|bin|ckpt|pkl|safetensors)$"):
        try:
            if path.suffix == ".safetensors":
                safetensors.torch.load_file(str(path))
            else:
                torch.load(str(path), weights_only=False, map_location="cpu")
        except Exception:  # noqa: BLE001 - whatever it raises, it spoke
            return True
    return False


DETECTORS: dict[str, Detector] = {
    "size": by_size,
    "end record": by_end,
    "stat": by_stat,
    "quick": by_quick,
    "deep": by_deep,
}


def false_alarms(root: Path) -> int:
    """Clean checkpoints that any level does not pass."""
    found = 0
    for layout in trees.LAYOUTS:
        tree = trees.write(layout, root / layout)
        for deep in (False, True):
            inspector.Options.deep = deep
            document = inspector.inspect([str(tree)], 40)
            found += sum(c["level"] != "pass" for c in document["checkpoints"])
    return found


def main() -> None:
    """Prints the table as Markdown."""
    detectors = dict(DETECTORS)
    if find_spec("torch") and find_spec("safetensors"):
        detectors["loader raised"] = loader_raises
    else:
        sys.stderr.write("(no torch here: the loader's column is left out)\n")
    totals: Counter[str] = Counter()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        say(f"clean trees: {len(trees.LAYOUTS)} layouts, {false_alarms(root)} false alarms\n")
        for case in damage.CASES:
            caught: Counter[str] = Counter()
            for layout in case.layouts:
                tree = root / "torn"
                shutil.copytree(root / layout, tree)
                case.hurt(tree)
                hits = [name for name, sees in detectors.items() if sees(tree, root / layout)]
                caught.update(hits)
                shutil.rmtree(tree)
            totals.update(caught)
            totals["trees"] += len(case.layouts)
            kind = "" if case.power_loss else " (not by power loss)"
            cells = [str(caught[name]) for name in detectors]
            rows.append([f"{case.name}{kind}", str(len(case.layouts)), *cells])
    rows.append(["**all**", str(totals["trees"]), *(str(totals[name]) for name in detectors)])
    say("| damage | trees | " + " | ".join(detectors) + " |")
    say("|" + " --- |" * (len(detectors) + 2))
    for row in rows:
        say("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
