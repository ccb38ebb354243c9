from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recovery.checkpoints.choose import Policy, choose
from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import damage, trees
from tests.checkpoints.clusters import inspection_of
from tests.checkpoints.torchfiles import torch_legacy, torch_zip

SOURCE = Path(inspector.__file__)
# `last.ckpt` is then a second, sound copy of the newest step.
WITH_A_SECOND_COPY = (("renumbered", "lightning"),)
MATRIX = [(case, layout) for case in damage.CASES for layout in case.layouts]


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    yield
    inspector.Options.deep = False


def inspect(path: Path, *, deep: bool = False) -> dict[str, Any]:
    inspector.Options.deep = deep
    document: dict[str, Any] = inspector.inspect([str(path)], 40)
    return document


def by_step(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {c["step"]: c for c in document["checkpoints"] if not c["alias"]}


def codes(checkpoint: dict[str, Any]) -> set[str]:
    return {f["code"] for f in checkpoint["findings"]}


@pytest.mark.parametrize("layout", trees.LAYOUTS)
def test_a_clean_tree_raises_no_alarm_at_any_level(layout: str, tmp_path: Path) -> None:
    trees.write(layout, tmp_path)

    for deep in (False, True):
        document = inspect(tmp_path, deep=deep)

        assert [c["level"] for c in document["checkpoints"]] == ["pass"] * len(
            document["checkpoints"]
        )
        assert sorted({c["step"] for c in document["checkpoints"]}) == [100, 200, 300]
        assert not document["errors"]
        assert not document["findings"]


@pytest.mark.parametrize(("case", "layout"), MATRIX, ids=[f"{c.name}-{n}" for c, n in MATRIX])
def test_damage_is_caught_and_the_step_before_stays_sound(
    case: damage.Case, layout: str, tmp_path: Path
) -> None:
    trees.write(layout, tmp_path)

    case.hurt(tmp_path)

    document = inspect(tmp_path, deep=not case.power_loss)
    newest = max((c for c in document["checkpoints"] if not c["alias"]), key=lambda c: c["step"])
    assert newest["level"] in ("fail", "unknown")
    assert all(f["remedy"] for f in newest["findings"] if f["level"] != "pass")
    assert by_step(document)[200]["level"] in ("pass", "warn")
    assert not document["errors"]
    if case.power_loss:
        choice = choose({"n1": inspection_of(tmp_path)}, Policy(require=()))
        assert choice.step == (300 if (case.name, layout) in WITH_A_SECOND_COPY else 200)


def test_facts_are_read_without_torch(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)

    newest = by_step(inspect(tmp_path))[300]

    assert newest["framework"] == "hf-trainer"
    assert newest["components"] == ["model", "optimizer", "rng", "scheduler"]
    facts = newest["facts"]
    assert facts["lr"] == pytest.approx(3e-4 * 0.7)
    assert facts["loss"] == pytest.approx(2.7)
    assert facts["epoch"] == pytest.approx(0.3)
    assert facts["parameters"] == trees.COUNT
    assert facts["bytes_per_parameter"] == pytest.approx(12, abs=1.5)
    assert facts["counters"] == {"optimizer": 300, "scheduler": 300}
    assert newest["ranks"] == {"kind": "rng_state", "have": "0-2", "want": "0-2"}


def test_the_parallel_shape_is_read_from_megatron_arguments(tmp_path: Path) -> None:
    trees.write("megatron_legacy", tmp_path)

    facts = by_step(inspect(tmp_path))[300]["facts"]

    assert facts["shape"]["tensor_model_parallel_size"] == 2


def test_the_step_of_a_distributed_checkpoint_is_read_from_its_items(tmp_path: Path) -> None:
    trees.write("titan", tmp_path)
    (tmp_path / "step-300").rename(tmp_path / "step-500")

    newest = by_step(inspect(tmp_path))[500]

    assert "named 500, but inside it is step 300" in newest["findings"][0]["finding"]


@pytest.mark.parametrize(
    ("content", "problem", "code"),
    [
        ("", "empty", "C04"),
        ("\0\0\0", "nul", "C04"),
        ("hello", "garbage", "C04"),
        ("900", "absent", "C04"),
        ("200", "behind", "C04"),
        (None, "missing", "C05"),
    ],
)
def test_a_bad_pointer_is_named_with_the_exact_repair(
    content: str | None, problem: str, code: str, tmp_path: Path
) -> None:
    trees.write("megatron_legacy", tmp_path)
    pointer = tmp_path / "latest_checkpointed_iteration.txt"
    if content is None:
        pointer.unlink()
    else:
        pointer.write_text(content)

    document = inspect(tmp_path)

    assert [p["problem"] for p in document["pointers"]] == [problem]
    newest = by_step(document)[300]
    assert newest["level"] == "warn"
    assert codes(newest) == {code}
    assert newest["findings"][0]["remedy"] == f"printf %s 300 > {pointer}"


def test_a_pointer_to_a_torn_checkpoint_is_repaired_to_the_sound_one(tmp_path: Path) -> None:
    trees.write("deepspeed", tmp_path)
    os.truncate(damage.victim(tmp_path), 100)

    document = inspect(tmp_path)

    (pointer,) = document["pointers"]
    assert pointer["problem"] == "torn"
    assert pointer["repair"] == f"printf %s global_step200 > {tmp_path}/latest"


def test_only_metadata_tmp_is_told_with_the_rename_that_makes_it_whole(tmp_path: Path) -> None:
    trees.write("titan", tmp_path)
    folder = tmp_path / "step-300"
    (folder / ".metadata").rename(folder / ".metadata.tmp")

    newest = by_step(inspect(tmp_path))[300]

    remedies = [f["remedy"] for f in newest["findings"] if f["code"] == "C03"]
    assert remedies[0].startswith(f"mv {folder}/.metadata.tmp {folder}/.metadata makes it whole")


def test_ranks_of_other_nodes_are_undecided_alone_and_whole_together(tmp_path: Path) -> None:
    for node, gone in (("node0", "pp_rank_1_"), ("node1", "pp_rank_0_")):
        trees.write("deepspeed", tmp_path / node)
        for path in (tmp_path / node).rglob(f"*{gone}*"):
            path.unlink()

    alone, together = inspect(tmp_path / "node1"), inspect(tmp_path)

    assert {c["level"] for c in alone["checkpoints"]} == {"unknown"}
    assert alone["checkpoints"][0]["ranks"]["have"] == "1"
    assert {c["level"] for c in together["checkpoints"]} == {"pass"}


def test_a_file_without_checksums_is_said_to_be_so_at_the_deep_level(tmp_path: Path) -> None:
    trees.write("deepspeed_legacy", tmp_path)

    newest = by_step(inspect(tmp_path, deep=True))[300]

    assert "no checksum in this format" in newest["findings"][0]["finding"]
    assert newest["level"] == "pass"


def test_checksums_switched_off_are_no_damage(tmp_path: Path) -> None:
    value = {"model": trees.weights(100), "optimizer": trees.adam(100), "iteration": 100}
    (tmp_path / "checkpoint_100.pth").write_bytes(torch_zip(value, crc=False))

    (only,) = inspect(tmp_path, deep=True)["checkpoints"]

    assert only["level"] == "pass"
    assert "no checksum" in only["findings"][0]["finding"]


def test_equal_content_has_an_equal_id_and_other_content_another(tmp_path: Path) -> None:
    for name, seed in (("a_1.pth", 1), ("b_2.pth", 1), ("c_3.pth", 2)):
        (tmp_path / name).write_bytes(torch_zip({"model": trees.weights(seed)}))

    ids = [c["files"][0]["id"] for c in inspect(tmp_path)["checkpoints"]]

    assert ids[0] == ids[1] != ids[2]


HOSTILE = {
    "os.system by REDUCE": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
    "posix by STACK_GLOBAL": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
    "eval": b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
    "a dotted name": b"\x80\x04\x8c\x13torch.serialization\x8c\x09os.system\x93\x8c\x02id\x85R.",
    "INST": b"(S'id'\nisubprocess\nPopen\n.",
    "getattr of a made object": b"\x80\x02cbuiltins\ngetattr\n]X\x01\x00\x00\x00a\x86R.",
    "getattr of a module": b"\x80\x02cbuiltins\ngetattr\nctorch\nhub\nX\x02\x00\x00\x00os\x86R.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_and_not_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoint_1.pth").write_bytes(HOSTILE[name])
    if name == "INST":  # the text protocol has no mark at its begin: put it into a zip
        from tests.checkpoints.torchfiles import zip_bytes

        body = zip_bytes({"a/data.pkl": HOSTILE[name], "a/version": b"3\n"})
        (tmp_path / "checkpoint_1.pth").write_bytes(body)

    (only,) = inspect(tmp_path)["checkpoints"]

    assert codes(only) == {"C24"}
    assert only["level"] == "fail"
    assert "find out who wrote it" in only["findings"][0]["remedy"]


def test_a_hostile_metadata_is_refused(tmp_path: Path) -> None:
    trees.write("titan", tmp_path, (100,))
    (tmp_path / "step-100/.metadata").write_bytes(HOSTILE["os.system by REDUCE"])

    (only,) = inspect(tmp_path)["checkpoints"]

    assert "C24" in codes(only)


def test_a_metadata_that_points_outside_is_refused(tmp_path: Path) -> None:
    trees.write("titan", tmp_path, (100,))
    path = tmp_path / "step-100/.metadata"
    path.write_bytes(path.read_bytes().replace(b"__1_0.distcp", b"../../passwd"))

    (only,) = inspect(tmp_path)["checkpoints"]

    assert any("outside" in f["finding"] for f in only["findings"])


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x02" + b"]" * 50_000 + b".",
        b"\x80\x02r\xff\xff\xff\xffN.",
        b"\x80\x02Nr\xff\xff\xff\xffj\xff\xff\xff\xff.",
        b"\x80\x02)" + b"q\x00h\x00h\x00\x86" * 60 + b"}h\x00N\x86s.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x02}" + b"q\x00h\x00\x85q\x00" * 5000 + b"N\x86R.",
        b"\x80\x02\x8b\xff\xff\xff\x7f1.",
    ],
)
def test_a_pickle_bomb_ends_as_a_finding(bomb: bytes, tmp_path: Path) -> None:
    (tmp_path / "checkpoint_1.pth").write_bytes(bomb)

    (only,) = inspect(tmp_path)["checkpoints"]

    assert isinstance(only["level"], str)


@pytest.mark.parametrize("layout", ["hf", "deepspeed_legacy", "megatron_dist", "orbax"])
def test_random_damage_never_raises(layout: str, tmp_path: Path) -> None:
    trees.write(layout, tmp_path, (100,))
    chance = random.Random(f"damage {layout}")
    paths = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    clean = {path: path.read_bytes() for path in paths}

    for round_ in range(60):
        path = chance.choice(paths)
        raw = bytearray(clean[path])
        for _ in range(chance.randint(1, 12)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(raw[: chance.randint(0, len(raw))] if round_ % 3 else raw)

        document = inspect(tmp_path, deep=bool(round_ % 2))

        assert json.dumps(document)
        assert not document["errors"], (round_, path)
        path.write_bytes(clean[path])


def test_a_path_that_is_not_there_is_an_error_entry_not_an_exception(tmp_path: Path) -> None:
    document = inspect(tmp_path / "nowhere")

    assert document["paths"][0]["exists"] is False
    assert document["errors"][0]["error"] == "No such file or directory"
    assert document["checkpoints"] == []


def test_strange_files_beside_checkpoints_are_passed_over(tmp_path: Path) -> None:
    trees.write("plain", tmp_path, (100,))
    os.mkfifo(tmp_path / "pipe_1.pth")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone_2.pth").symlink_to(tmp_path / "nowhere")
    (tmp_path / "tokens.bin").write_bytes(b"\0" * 5000)

    document = inspect(tmp_path)

    assert [c["step"] for c in document["checkpoints"]] == [100]


def test_an_empty_checkpoint_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-300").mkdir()

    (only,) = inspect(tmp_path)["checkpoints"]

    assert only["findings"][0]["finding"] == "an empty directory: nothing was saved"


@pytest.mark.parametrize("name", ["step-300.bad", "tmp-checkpoint-300", "epoch_3_bad"])
def test_a_checkpoint_set_aside_in_place_fails(name: str, tmp_path: Path) -> None:
    trees.write("hf_replica", tmp_path, (300,))
    (tmp_path / "checkpoint-300").rename(tmp_path / name)

    (only,) = inspect(tmp_path)["checkpoints"]

    assert "C03" in codes(only)
    assert only["level"] == "fail"


def test_a_changed_world_size_is_told_once_and_does_not_stick(tmp_path: Path) -> None:
    trees.write("hf", tmp_path, (100, 200, 300))
    for step in (200, 300):
        (tmp_path / f"checkpoint-{step}/rng_state_2.pth").unlink()

    levels = {step: c["level"] for step, c in by_step(inspect(tmp_path)).items()}

    assert levels == {100: "pass", 200: "warn", 300: "pass"}


def test_integrity_json_is_held_against_the_files_at_the_deep_level(tmp_path: Path) -> None:
    trees.write("megatron_dist", tmp_path)
    path = tmp_path / "iter_0000300/integrity.json"
    listed = json.loads(path.read_text())
    listed["files"]["common.pt"] = "0" * 64
    path.write_text(json.dumps(listed))

    newest = by_step(inspect(tmp_path, deep=True))[300]

    assert any("integrity.json" in f["finding"] for f in newest["findings"])
    assert newest["level"] == "fail"


def test_the_old_format_is_measured_to_the_byte(tmp_path: Path) -> None:
    value = {"model": trees.weights(100), "optimizer": trees.adam(100), "iteration": 100}
    path = tmp_path / "checkpoint_100.pth"
    path.write_bytes(torch_legacy(value))

    sound = inspect(tmp_path)["checkpoints"][0]
    os.truncate(path, path.stat().st_size - 1)
    cut = inspect(tmp_path)["checkpoints"][0]

    assert (sound["level"], cut["level"]) == ("pass", "fail")
    assert codes(cut) == {"C10"}


def test_it_runs_from_standard_input_and_prints_one_document(tmp_path: Path) -> None:
    trees.write("hf_replica", tmp_path)

    done = subprocess.run(
        [sys.executable, "-I", "-", str(tmp_path), "--deep", "--previous", "--limit", "60"],
        input=SOURCE.read_bytes(),
        capture_output=True,
        check=True,
    )

    (line,) = done.stdout.decode().splitlines()
    document = json.loads(line)
    assert document["end"] is True
    assert document["power"] == "full"
    assert [c["level"] for c in document["checkpoints"]] == ["pass"] * 3
    storage = document["paths"][0]["storage"]
    assert storage["free_bytes"] > 0
    assert storage["inode"] == tmp_path.stat().st_ino


def test_a_limit_leaves_checkpoints_undecided_not_sound(tmp_path: Path) -> None:
    trees.write("hf_replica", tmp_path)

    done = subprocess.run(
        [sys.executable, "-", str(tmp_path), "--limit", "0"],
        input=SOURCE.read_bytes(),
        capture_output=True,
        check=True,
    )

    document = json.loads(done.stdout)
    assert {c["level"] for c in document["checkpoints"]} == {"unknown"}


def test_the_file_is_python_3_6_and_needs_nothing_else() -> None:
    text = SOURCE.read_text()

    tree = ast.parse(text, feature_version=(3, 6))

    names = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)
    assert len(text) < 120_000


def test_only_the_newest_checkpoints_are_opened_when_there_are_many(tmp_path: Path) -> None:
    for step in range(1, 60):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}/trainer_state.json").write_text("{}")

    document = inspect(tmp_path)

    assert document["left_out"] == 19
    assert max(c["step"] for c in document["checkpoints"]) == 59
