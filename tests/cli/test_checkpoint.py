from __future__ import annotations

import json
import os
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
    assert lines[-1].startswith("resume: step 200")


def test_deep_finds_what_quick_cannot(tmp_path: Path) -> None:
    trees.write("plain", tmp_path)
    path = tmp_path / "checkpoint_300.pth"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)

    quick = json.loads(run("inspect", str(tmp_path), "--format", "json").stdout)
    deep = json.loads(run("inspect", str(tmp_path), "--deep", "--format", "json").stdout)

    assert (quick["resume"], deep["resume"]) == (300, 200)


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
