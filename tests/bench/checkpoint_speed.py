"""How fast the inspector is, and that damage never makes it stumble.

    python -m tests.bench.checkpoint_speed [FUZZED_FILES]

A tree of 1,000 files at the quick level, one file of 1 GiB at both levels beside zlib.crc32's own
rate, and 1,500 randomly damaged files.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import trees
from tests.checkpoints.torchfiles import Tensor, floats, scalar, tensor, torch_zip

SOURCE = Path(inspector.__file__).read_bytes()


def say(line: str) -> None:
    """Prints a line."""
    sys.stdout.write(line + "\n")


def inspected(path: Path, *words: str) -> dict[str, Any]:
    """As on a node: its own process, the payload on standard input."""
    done = subprocess.run(
        [sys.executable, "-", str(path), *words], input=SOURCE, capture_output=True, check=True
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def thousand_files(root: Path) -> None:
    """Two DeepSpeed checkpoints of 500 files, with a pointer."""
    for step in (100, 200):
        folder = root / f"global_step{step}"
        folder.mkdir(parents=True)
        layers = {f"layer{i}.weight": tensor(5000, i) for i in range(100)}
        model = {"module": layers, "global_steps": step, "dp_world_size": 499, "mp_world_size": 1}
        (folder / "mp_rank_00_model_states.pt").write_bytes(torch_zip(model))
        for rank in range(499):
            state = {
                i: {"step": scalar(float(step)), "exp_avg": tensor(5000, rank + i)}
                for i in range(4)
            }
            inner = {"state": state, "param_groups": [{"lr": 1e-4}]}
            name = f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            value = {"optimizer_state_dict": {"base_optimizer_state": inner}}
            (folder / name).write_bytes(torch_zip(value))
    (root / "latest").write_text("global_step200")


def gibibyte(root: Path) -> Path:
    """One file of 128 tensors."""
    root.mkdir()
    layers = {f"w{i}": Tensor("Float", floats(1 << 21, i), (1 << 21,)) for i in range(128)}
    path = root / "checkpoint_1.pth"
    path.write_bytes(torch_zip({"model": layers, "optimizer": {"param_groups": [{"lr": 0.1}]}}))
    return path


def fuzz(root: Path, files: int) -> int:
    """Damages files at random; returns the number of inspections that stumbled."""
    chance = random.Random(2026)
    stumbled = done = 0
    for layout in trees.LAYOUTS:
        tree = trees.write(layout, root / layout, (100,))
        clean = {p: p.read_bytes() for p in sorted(tree.rglob("*")) if p.is_file()}
        for _ in range(files // len(trees.LAYOUTS) + 1):
            path = chance.choice(list(clean))
            raw = bytearray(clean[path])
            for _ in range(chance.randint(1, 20)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            path.write_bytes(raw[: chance.randint(0, len(raw))] if chance.random() < 0.4 else raw)
            inspector.Options.deep = chance.random() < 0.5
            stumbled += bool(inspector.inspect([str(tree)], 40)["errors"])
            path.write_bytes(clean[path])
            done += 1
    say(f"fuzz: {done} damaged files, {stumbled} stumbled, no exception (seed 2026)")
    return stumbled


def main(words: list[str]) -> int:
    """Prints the numbers; 1 when an inspection stumbled."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        thousand_files(root / "many")
        document = inspected(root / "many")
        levels = {c["level"] for c in document["checkpoints"]}
        say(f"quick: 1,000 files in {document['seconds']:.2f} s, {sorted(levels)}")
        path = gibibyte(root / "big")
        data = path.read_bytes()
        for _ in range(3):
            began = time.perf_counter()
            zlib.crc32(data)
            alone = len(data) / (time.perf_counter() - began) / 1e9
            document = inspected(root / "big", "--deep")
            rate = len(data) / document["seconds"] / 1e9
            say(f"deep: {rate:.2f} GB/s, zlib.crc32 {alone:.2f} GB/s: {rate / alone:.0%}")
        say(f"quick: 1 GiB file in {inspected(root / 'big')['seconds']:.3f} s")
        return int(fuzz(root / "fuzz", int(words[0]) if words else 1500) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
