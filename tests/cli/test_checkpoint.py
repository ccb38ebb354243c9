from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from recovery.cli.checkpoint import COMMAND
from recovery.errors import InputError
from tests.checkpoints import damage, trees


def run(*words: str) -> Result:
    return CliRunner().invoke(COMMAND, list(words), catch_exceptions=False)


def test_a_sound_tree_exits_0_and_names_the_step_as_json(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)

    result = run("inspect", str(tmp_path), "--format", "json")

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["resume"] == 300
    assert [c["step"] for c in document["checkpoints"]] == [100, 200, 300]
    assert set(document["checkpoints"][0]) >= {
        "step",
        "level",
        "path",
        "framework",
        "components",
        "findings",
    }


def test_a_torn_newest_step_is_passed_over_and_shown_first(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)
    os.truncate(damage.victim(tmp_path), 100)

    result = run("inspect", str(tmp_path))

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith("fail    step 300")
    assert lines[1].strip().startswith("C06 optimizer.pt:")
    (resume,) = [n for n, line in enumerate(lines) if line.startswith("resume: step 200")]
    folder = tmp_path.parent / tmp_path.name
    assert lines[resume + 1 :] == [
        "  not step 300: torn on 1 of 1 nodes",
        "  keep it from pruning until the resume is verified:"
        f" mkdir -p {folder}.hold && cp -al {folder}/checkpoint-200 {folder}.hold/",
        "  move the torn one out of the trainer's sight:"
        f" mkdir -p {folder}.aside && mv -n {folder}/checkpoint-300 {folder}.aside/",
    ]


def test_deep_finds_what_quick_cannot(tmp_path: Path) -> None:
    trees.write("plain", tmp_path)
    path = tmp_path / "checkpoint_300.pth"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)

    quick = json.loads(run("inspect", str(tmp_path), "--format", "json").stdout)
    deep = json.loads(run("inspect", str(tmp_path), "--deep", "--format", "json").stdout)

    assert (quick["resume"], deep["resume"]) == (300, 200)


def test_the_printed_commands_hold_the_sound_one_and_move_the_torn_one_out(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    trees.write("hf", run_folder)
    os.truncate(damage.victim(run_folder), 100)
    document = json.loads(run("inspect", str(run_folder), "--format", "json").stdout)

    for line in (document["hold"], document["hold"], *document["aside"]):
        subprocess.run(["sh", "-c", line], check=True)
    shutil.rmtree(run_folder / "checkpoint-200")  # the trainer prunes after its first save

    assert not (run_folder / "checkpoint-300").exists()
    assert (tmp_path / "run.aside/checkpoint-300/optimizer.pt").stat().st_size == 100
    held = json.loads(run("inspect", str(tmp_path / "run.hold"), "--format", "json").stdout)
    assert held["resume"] == 200


def test_inspecting_moves_and_changes_nothing(tmp_path: Path) -> None:
    trees.write("deepspeed", tmp_path)
    os.truncate(damage.victim(tmp_path), 100)
    before = {p: p.stat() for p in sorted(tmp_path.rglob("*"))}

    run("inspect", str(tmp_path), "--deep")

    now = {p: p.stat() for p in sorted(tmp_path.rglob("*"))}
    assert now.keys() == before.keys()
    assert [(s.st_mtime_ns, s.st_size, s.st_ino) for s in now.values()] == [
        (s.st_mtime_ns, s.st_size, s.st_ino) for s in before.values()
    ]


def test_the_printed_repair_of_a_pointer_makes_it_right(tmp_path: Path) -> None:
    trees.write("megatron_legacy", tmp_path)
    os.truncate(damage.victim(tmp_path), 100)

    torn = json.loads(run("inspect", str(tmp_path), "--format", "json").stdout)
    (pointer,) = torn["pointers"]
    subprocess.run(["sh", "-c", pointer["repair"]], check=True)
    mended = json.loads(run("inspect", str(tmp_path), "--format", "json").stdout)

    assert pointer["repair"] == f"printf %s 200 > {tmp_path}/latest_checkpointed_iteration.txt"
    assert torn["resume"] == mended["resume"] == 200
    assert mended["pointers"][0]["problem"] == ""


def test_a_save_after_the_first_error_gives_way_to_the_one_before(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)
    times = [p.stat().st_mtime for p in (tmp_path / "checkpoint-300").iterdir()]

    result = run("inspect", str(tmp_path), "--distrust-from", f"{min(times):.6f}")
    all_of_them = run("inspect", str(tmp_path), "--distrust-from", "2001-01-01T00:00:00Z")

    assert "resume: step 200" in result.stdout
    assert "not step 300: written after the first uncorrectable error" in result.stdout
    assert "mv -n" not in result.stdout
    assert "resume: step 300" in all_of_them.stdout
    assert "nothing older is sound" in all_of_them.stdout


def test_a_save_just_before_the_outage_is_suspect(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)
    last = max(p.stat().st_mtime for p in (tmp_path / "checkpoint-300").iterdir())

    result = run("inspect", str(tmp_path), "--outage", f"{last + 30:.6f}")

    assert "it ended 30 s before the outage: inspect with --deep" in result.stdout


def test_a_time_that_is_none_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a time"):
        run("inspect", str(tmp_path), "--outage", "yesterday")


def test_nothing_sound_exits_1(tmp_path: Path) -> None:
    trees.write("plain", tmp_path, (100,))
    os.truncate(tmp_path / "checkpoint_100.pth", 0)

    assert run("inspect", str(tmp_path)).exit_code == 1


def test_nothing_there_exits_1(tmp_path: Path) -> None:
    result = run("inspect", str(tmp_path))

    assert result.exit_code == 1
    assert "no checkpoint found" in result.stdout


def test_ranks_that_lie_elsewhere_exit_with_no_resume(tmp_path: Path) -> None:
    trees.write("deepspeed", tmp_path)
    for path in tmp_path.rglob("*pp_rank_0_*"):
        path.unlink()

    result = run("inspect", str(tmp_path), "--format", "json")

    assert json.loads(result.stdout)["resume"] is None
    assert result.exit_code == 3


def test_a_path_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not there"):
        run("inspect", str(tmp_path / "nowhere"))


def test_a_required_component_can_be_asked_for(tmp_path: Path) -> None:
    trees.write("titan", tmp_path)

    assert run("inspect", str(tmp_path), "--require", "rng").exit_code == 1


def test_the_plan_shows_the_rules_side_by_side() -> None:
    result = run(
        "plan", "--mtbf", "150m", "--save-time", "10s", "--params", "70B",
        "--gpus", "1024", "--price", "2", "--tier", "nvme=20GB",
    )  # fmt: skip

    assert result.exit_code == 0
    assert "MTBF/10" in result.stdout
    assert "<- use this" in result.stdout
    assert "one checkpoint: 840 GB; to write it in 10 s takes 84 GB/s" in result.stdout
    assert "GPU-hours" in result.stdout
    assert "nvme" in result.stdout


def test_the_plan_measures_size_and_save_time(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)

    result = run("plan", "--mtbf", "24h", "--from", str(tmp_path), "--format", "json")

    advice = json.loads(result.stdout)
    assert advice["size_bytes"] > 0
    assert 0 < advice["stall_s"] < 60


def test_the_measured_save_is_taken_to_the_size_that_is_asked_about(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)
    asked = ("plan", "--mtbf", "24h", "--from", str(tmp_path), "--format", "json")

    there = json.loads(run(*asked).stdout)
    larger = json.loads(run(*asked, "--params", str(trees.COUNT * 10)).stdout)

    ratio = larger["size_bytes"] / there["size_bytes"]
    assert ratio == pytest.approx(10, rel=0.1)
    assert larger["stall_s"] == pytest.approx(there["stall_s"] * ratio)
    assert "measured" in larger["notes"][0]


def test_the_plan_tells_what_each_tier_survives_and_the_hours_of_each_rule() -> None:
    result = run(
        "plan", "--mtbf", "24h", "--save-time", "5m", "--params", "405B", "--bytes-per-param", "14",
        "--tier", "nvme=20GB", "--tier", "lustre=200GB", "--tier", "S3=5GB", "--format", "json",
    )  # fmt: skip

    advice = json.loads(result.stdout)
    hours = {i["name"]: i["lost_hours_per_day"] for i in advice["intervals"]}
    assert hours.keys() == {"Daly", "Young", "MTBF/10"}
    assert hours["MTBF/10"] > hours["Daly"]
    assert advice["size_bytes"] == pytest.approx(5.67e12)
    assert advice["bytes_per_s"] == pytest.approx(5.67e12 / 300)
    survives = [t["survives"] for t in advice["tiers"]]
    assert "lost node" in survives[0]
    assert "file system" in survives[1]
    assert len(set(survives)) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mtbf", "150m"), "how long does a save take"),
        (("--mtbf", "150", "--save-time", "5s"), "not a duration"),
        (("--mtbf", "1h", "--save-time", "5s", "--tier", "nvme"), "no speed"),
        (("--mtbf", "1h", "--save-time", "0s"), "must be above zero"),
    ],
)
def test_a_mistake_is_told_in_words(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run("plan", *words)
