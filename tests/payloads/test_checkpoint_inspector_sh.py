from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from recovery.checkpoints.inspection import Inspection, read_inspection
from recovery.model.verdict import Level
from recovery.payloads import checkpoint_inspector
from tests.checkpoints import damage, trees

SOURCE = Path(checkpoint_inspector.__file__).with_suffix(".sh")


def inspect(path: Path) -> Inspection:
    done = subprocess.run(
        ["sh", "-s", "--", str(path)], input=SOURCE.read_bytes(), capture_output=True, check=True
    )
    assert done.stderr == b""
    return read_inspection(done.stdout.decode())


def levels(inspection: Inspection) -> dict[int | None, Level]:
    return {c.step: c.level for c in inspection.checkpoints if not c.alias}


@pytest.mark.parametrize(
    "layout", ["plain", "hf", "titan", "megatron_dist", "deepspeed", "lightning"]
)
def test_a_clean_tree_looks_whole_but_never_passes(layout: str, tmp_path: Path) -> None:
    trees.write(layout, tmp_path)

    inspection = inspect(tmp_path)

    assert levels(inspection) == dict.fromkeys((100, 200, 300), Level.WARN)
    assert inspection.power == "shell"
    words = {p.finding.finding for c in inspection.checkpoints for p in c.problems}
    assert words == {"looks whole from outside; its content was not read"}


def _cut(tree: Path) -> None:
    os.truncate(damage.victim(tree), 5000)


def _empty(tree: Path) -> None:
    os.truncate(damage.victim(tree), 0)


@pytest.mark.parametrize(
    ("layout", "hurt", "rule"),
    [
        ("hf", _cut, "C06"),
        ("plain", _cut, "C06"),
        ("deepspeed", _empty, "C01"),
        ("hf", lambda t: os.truncate(damage.victim(t, r"\.safetensors$"), 9000), "C11"),
        ("hf", lambda t: (t / "checkpoint-300/trainer_state.json").unlink(), "C15"),
        ("hf", lambda t: (t / "checkpoint-300/scheduler.pt").unlink(), "C15"),
        ("hf", lambda t: (t / "checkpoint-300/optimizer.pt.tmp").write_text("x"), "C03"),
        ("titan", lambda t: (t / "step-300/.metadata").unlink(), "C13"),
        ("megatron_dist", lambda t: (t / "iter_0000300/metadata.json").unlink(), "C14"),
    ],
)
def test_what_a_power_cut_leaves_is_seen_from_outside(
    layout: str, hurt: Callable[[Path], object], rule: str, tmp_path: Path
) -> None:
    trees.write(layout, tmp_path)
    hurt(tmp_path)

    newest = max(inspect(tmp_path).checkpoints, key=lambda c: c.step or 0)

    assert newest.level is Level.FAIL
    assert rule in {p.rule for p in newest.problems}


def test_pointers_are_read(tmp_path: Path) -> None:
    trees.write("deepspeed", tmp_path)
    (tmp_path / "latest").write_text("")

    (pointer,) = inspect(tmp_path).pointers

    assert (pointer.problem, pointer.step) == ("empty", None)


def test_names_with_quotes_blanks_and_stars_do_no_harm(tmp_path: Path) -> None:
    odd = tmp_path / 'a "b" * $(touch hurt) c'
    trees.write("hf_replica", odd)

    inspection = inspect(odd)

    assert set(levels(inspection)) == {100, 200, 300}
    assert not list(tmp_path.rglob("hurt"))


def test_a_path_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert inspect(tmp_path / "nowhere").places[0].exists is False


def test_the_mount_and_its_free_bytes_are_read(tmp_path: Path) -> None:
    (place,) = inspect(tmp_path).places

    assert place.inode == tmp_path.stat().st_ino
    assert place.free_bytes > 0
    assert place.read_only is False
