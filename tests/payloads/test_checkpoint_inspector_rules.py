"""One test a rule of one machine (C01 to C24, C30): the smallest damage that it must name.

The rules that need several nodes (C25 to C28) are in tests/checkpoints/test_choose.py, the quiet
rule (C29) in test_checkpoint_inspector_sound.py; the list is in recovery/checkpoints/README.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import damage, trees
from tests.checkpoints.torchfiles import safetensors, torch_zip, zip_bytes

README = Path(__file__).parents[2] / "recovery/checkpoints/README.md"


def edit(path: Path, change: Callable[[bytearray], object]) -> None:
    """Changes bytes in place; the file keeps its times."""
    stat, raw = path.stat(), bytearray(path.read_bytes())
    change(raw)
    path.write_bytes(raw)
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))


def flip(path: Path, mark: bytes, offset: int = 0) -> None:
    edit(path, lambda raw: raw.__setitem__(raw.index(mark) + offset, raw[raw.index(mark)] ^ 1))


def hole(path: Path) -> None:
    size = path.stat().st_size
    os.truncate(path, size // 8192 * 4096)
    os.truncate(path, size)


def no_storage(path: Path) -> None:
    """A zip that is whole, and lacks a storage that its pickle names."""
    from zipfile import ZipFile

    with ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    gone = next(name for name in members if name.endswith("data/0"))
    path.write_bytes(zip_bytes({n: body for n, body in members.items() if n != gone}))


def zero_page(path: Path) -> None:
    edit(path, lambda raw: raw.__setitem__(slice(40_960, 90_112), bytes(49_152)))


def old_rank(tree: Path) -> None:
    new, old = tree / "checkpoint-300/rng_state_1.pth", tree / "checkpoint-200/rng_state_1.pth"
    stat = old.stat()
    new.write_bytes(old.read_bytes())
    os.utime(new, ns=(stat.st_mtime_ns, stat.st_mtime_ns))


def larger(tree: Path) -> None:
    body = safetensors(trees.weights(300, trees.COUNT * 2))
    path = tree / "checkpoint-300/model.safetensors"
    stat = path.stat()
    path.write_bytes(body)
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))


def without(name: str) -> Callable[[Path], None]:
    return lambda tree: (tree / name).unlink()


def no_optimizer(tree: Path) -> None:
    (tree / "checkpoint_300.pth").write_bytes(torch_zip({"model": trees.weights(300)}))


def of_another_digest(tree: Path) -> None:
    path = tree / "iter_0000300/integrity.json"
    text = json.loads(path.read_text())
    text["files"]["common.pt"] = "0" * 64
    path.write_text(json.dumps(text))


def hostile(tree: Path) -> None:
    (tree / "checkpoint_300.pth").write_bytes(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")


HF = "checkpoint-300/"
RULES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "C01": ("hf", lambda t: os.truncate(t / HF / "trainer_state.json", 0)),
    "C02": ("hf", lambda t: hole(t / HF / "optimizer.pt")),
    "C03": ("hf", lambda t: (t / HF / "optimizer.pt.tmp").write_bytes(b"PK")),
    "C04": ("deepspeed", lambda t: (t / "latest").write_text("global_step200")),
    "C05": ("deepspeed", without("latest")),
    "C06": ("hf", lambda t: edit(t / HF / "optimizer.pt", lambda raw: raw.append(1))),
    "C07": ("plain", lambda t: flip(t / "checkpoint_300.pth", b"PK\7\b", 5)),
    "C08": ("hf", lambda t: flip(t / HF / "scheduler.pt", b"_last_lr", 2)),
    "C09": ("hf", lambda t: no_storage(t / HF / "optimizer.pt")),
    "C10": ("deepspeed_legacy", lambda t: edit(damage.victim(t), lambda raw: raw.append(1))),
    "C11": ("hf", lambda t: os.truncate(t / HF / "model-00001-of-00002.safetensors", 9000)),
    "C12": ("hf", without(HF + "model-00002-of-00002.safetensors")),
    "C13": ("titan", without("step-300/__1_0.distcp")),
    "C14": ("megatron_dist", without("iter_0000300/metadata.json")),
    "C15": ("hf", without(HF + "scheduler.pt")),
    "C16": ("hf", lambda t: (t / HF).rename(t / "checkpoint-400")),
    "C17": ("hf", without(HF + "rng_state_1.pth")),
    "C18": ("plain", no_optimizer),
    "C19": ("hf", without(HF + "rng_state_2.pth")),
    "C20": ("hf", old_rank),
    "C21": ("hf_replica", larger),
    "C22": ("hf_replica", lambda t: zero_page(t / HF / "model.safetensors")),
    "C23": ("megatron_dist", of_another_digest),
    "C24": ("plain", hostile),
}


def findings(tree: Path, *, deep: bool) -> list[dict[str, Any]]:
    inspector.Options.deep = deep
    try:
        document = inspector.inspect([str(tree)], 40)
    finally:
        inspector.Options.deep = False
    newest = max(document["checkpoints"], key=lambda c: c["step"])
    found: list[dict[str, Any]] = newest["findings"]
    return found


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_names_the_smallest_damage_of_its_kind(rule: str, tmp_path: Path) -> None:
    layout, hurt = RULES[rule]
    tree = trees.write(layout, tmp_path)

    hurt(tree)

    found = findings(tree, deep=rule == "C23")
    said = [f for f in found if f["code"] == rule]
    assert said, [(f["code"], f["finding"]) for f in found]
    assert all(f["level"] != "pass" and f["remedy"] for f in said)


def test_a_file_that_cannot_be_read_is_unknown_never_sound(tmp_path: Path) -> None:
    tree = trees.write("hf", tmp_path)
    path = tree / HF / "optimizer.pt"
    file = inspector.File(str(path), "optimizer.pt", path.stat())
    path.unlink()

    file.probe()

    assert [(code, level) for code, level, _ in file.bad] == [("C30", "unknown")]


def test_every_rule_of_one_machine_has_its_damage_here_and_its_line_in_the_readme() -> None:
    known = set(re.findall(r'"(C[0-3]\d)"', Path(inspector.__file__).read_text()))
    listed = set(re.findall(r"^\| (C\d\d) \|", README.read_text(), re.MULTILINE))

    assert known - {"C29", "C30"} == set(RULES)
    assert listed == {f"C{n:02}" for n in range(1, 31)}
