"""`recover lint`: all that is wrong, with place and remedy, before a run needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.places import BOOK, INVENTORY, operators_folder, recover


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(operators_folder(tmp_path))
    return tmp_path


def test_sound_files_have_no_problem() -> None:
    result = recover("lint", "runbooks", "inventories")

    assert result.output == "2 runbooks, 1 inventory read: no problems\n"
    assert result.exit_code == 0


def test_each_problem_has_its_place_and_remedy(folder: Path) -> None:
    (folder / "runbooks/night.yaml").write_text(BOOK.replace("gate:", "gaet:"))
    (folder / "runbooks/shared/part.yaml").write_text("fragment: p\nsteps: [{check: gpu.cuont}]\n")
    (folder / "inventories/c.yaml").write_text(INVENTORY.replace("1:3", "3:1"))

    result = recover("lint", "runbooks", "inventories")

    assert result.exit_code == 2
    assert 'runbooks/night.yaml:7:5: steps.0.gaet is not a key here (did you mean "gate"?)' in (
        result.output
    )
    assert (
        "runbooks/shared/part.yaml:2:10: steps.0.check: 'gpu.cuont' is not a check" in result.output
    )
    assert "inventories/c.yaml:4:" in result.output
    assert "3 problems" in result.output


def test_one_file_can_be_named(folder: Path) -> None:
    (folder / "other.yaml").write_text("runbook: o\nsteps: []\n")

    result = recover("lint", "other.yaml")

    assert result.exit_code == 2
    assert "other.yaml:2:1: steps: list should have" in result.output


def test_variables_of_any_inventory_are_known(folder: Path) -> None:
    (folder / "runbooks/night.yaml").write_text(BOOK.replace("word: dull, ", ""))

    assert recover("lint", "runbooks").exit_code == 0


def test_a_folder_with_nothing_in_it_is_not_called_sound(folder: Path) -> None:
    (folder / "empty").mkdir()

    result = recover("lint", "empty")

    assert result.exit_code == 2
    assert "nothing read" in result.output
