"""Odd but sound trees raise no alarm, and damage in them is still found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recovery.checkpoints.choose import Policy, choose
from recovery.checkpoints.inspection import read_inspection
from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import variants

# A save in progress lies there, or one without an optimizer: said, and in nobody's way.
NOT_ALL_PASS = {"orbax_saving", "hf_saving", "titan_with_export", "tune_last"}
# Formats whose content cannot be judged without their libraries.
OPAQUE = {"megatron_zarr", "orbax_old", "orbax_named", "orbax_saving"}
COPIED = {"fairseq"}  # `checkpoint_last.pt` is a second whole copy of the newest step
STATE = re.compile(r"\.(pt|pth|bin|ckpt|safetensors|distcp)$")


def inspect(path: Path, *, deep: bool = False) -> dict[str, Any]:
    inspector.Options.deep = deep
    try:
        document: dict[str, Any] = inspector.inspect([str(path)], 40)
    finally:
        inspector.Options.deep = False
    return document


def resume(document: dict[str, Any]) -> int | None:
    rest = {"inspector": 1, "power": "full", "deep": False, "now": 1e9, "end": True}
    inspection = read_inspection(json.dumps({**document, **rest}))
    return choose({"here": inspection}, Policy(require=())).step


@pytest.mark.parametrize("name", variants.SOUND)
def test_an_odd_but_sound_tree_raises_no_alarm(name: str, tmp_path: Path) -> None:
    tree = variants.write(name, tmp_path / "run")

    for deep in (False, True):
        document = inspect(tree, deep=deep)

        alarms = [
            (c["path"], f["finding"])
            for c in document["checkpoints"]
            for f in c["findings"]
            if f["level"] != "pass" and c["step"] in (100, 200, 300)
        ]
        assert resume(document) == 300
        assert alarms == []
        if name not in NOT_ALL_PASS:
            assert {c["level"] for c in document["checkpoints"]} == {"pass"}
        assert not [p for p in document["pointers"] if p["problem"]]
        assert not document["errors"]
        assert not document["findings"]


@pytest.mark.parametrize("name", [n for n in variants.SOUND if n not in OPAQUE | COPIED])
def test_a_cut_file_in_its_newest_step_sends_the_resume_to_the_one_before(
    name: str, tmp_path: Path
) -> None:
    tree = variants.write(name, tmp_path / "run")
    newest = [p for p in tmp_path.rglob("*") if p.is_file() and STATE.search(p.name)]
    of_300 = re.compile(r"(?<!\d)0*300|epoch_2/")
    newest = [p for p in newest if of_300.search(str(p.relative_to(tmp_path)))]
    victim = max(newest, key=lambda p: (p.stat().st_size, str(p)))

    os.truncate(victim, victim.stat().st_size // 2)

    assert resume(inspect(tree)) == (1 if name == "tune_last" else 200)


def test_one_file_is_no_step_where_checkpoints_with_steps_are(tmp_path: Path) -> None:
    tree = variants.write("numbered_company", tmp_path / "run")

    steps = {c["step"] for c in inspect(tree)["checkpoints"]}

    assert steps == {100, 200, 300, None}


def test_a_mark_that_the_steps_before_have_is_missed(tmp_path: Path) -> None:
    tree = variants.write("megatron_bridge", tmp_path / "run")
    (tree / "iter_0000300/metadata.json").unlink()

    document = inspect(tree)

    assert resume(document) == 200
    assert "C14" in {f["code"] for c in document["checkpoints"] for f in c["findings"]}


def test_a_file_that_somebody_put_into_an_older_step_later_is_no_damage(tmp_path: Path) -> None:
    tree = variants.write("hf_bin", tmp_path / "run")
    (tree / "checkpoint-200/README.md").write_text("the best one so far")
    merged = (tree / "checkpoint-200/pytorch_model.bin").read_bytes()
    (tree / "checkpoint-200/merged.bin").write_bytes(merged)

    document = inspect(tree)

    assert [c["level"] for c in document["checkpoints"]] == ["pass"] * 3


def test_a_save_that_a_process_still_writes_is_undecided_not_torn(tmp_path: Path) -> None:
    tree = variants.write("hf_one_rank", tmp_path / "run")
    victim = tree / "checkpoint-300/optimizer.pt"
    os.truncate(victim, 1000)

    with victim.open("ab"):
        document = inspect(tree)

    newest = document["checkpoints"][-1]
    (held,) = [f for f in newest["findings"] if f["code"] == "C29"]
    assert newest["level"] == "unknown"
    assert held["finding"].startswith(f"process {os.getpid()} has it open for writing")
    assert held["remedy"].startswith("wait until the save has ended")
    assert resume(document) == 200


def test_a_torn_step_is_watched_for_growth_before_it_is_called_torn(tmp_path: Path) -> None:
    tree = variants.write("hf_one_rank", tmp_path / "run")
    victim = tree / "checkpoint-300/optimizer.pt"
    program = (
        "import select, sys\n"
        "while not select.select([sys.stdin], [], [], 0.02)[0]:\n"
        "    with open(sys.argv[1], 'ab') as f:\n"
        "        f.write(b'more')\n"
        "    sys.stderr.write('.')\n"
    )
    os.truncate(victim, 1000)
    words = [sys.executable, "-c", program, str(victim)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stderr
        writer.stderr.read(1)  # it writes now, and ends with its standard input
        document = by_itself(tree, "--quiet", "1")
        writer.communicate()
    after = by_itself(tree, "--quiet", "1")

    assert [c["level"] for c in document["checkpoints"]] == ["pass", "pass", "unknown"]
    assert "C29" in {f["code"] for f in document["checkpoints"][-1]["findings"]}
    assert after["checkpoints"][-1]["level"] == "fail"


def by_itself(tree: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, inspector.__file__, str(tree), *words], capture_output=True, check=True
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document
