"""`recover verify` by itself: exit status, words, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from recovery.cli.verify import COMMAND
from recovery.errors import InputError
from tests.continuity.test_compare import curve


def write(path: Path, first: int, last: int, *, higher: float = 0.0, head: str = "") -> str:
    rows = [
        f"step={p.iteration} loss={(p.loss or 0) + higher:.9f} lr={p.lr:.9e}"
        f" grad_norm={p.grad_norm:.6f} consumed={p.consumed_samples}\n"
        for p in curve(first, last)
    ]
    path.write_text(head + "".join(rows))
    return str(path)


def verify(*words: str) -> Result:
    return CliRunner().invoke(COMMAND, words, catch_exceptions=False)


def test_a_resume_that_went_on_ends_with_status_0(tmp_path: Path) -> None:
    before, after = write(tmp_path / "b", 1, 240), write(tmp_path / "a", 201, 248)

    done = verify(before, after, "--step", "200")

    assert done.exit_code == 0
    assert "PASS    resumed: iterations 201 to 248, 40 of them compared" in done.output


def test_one_that_did_not_ends_with_status_1_and_names_the_likely_cause(tmp_path: Path) -> None:
    before, after = write(tmp_path / "b", 1, 240), write(tmp_path / "a", 201, 248, higher=0.05)

    done = verify(before, after, "--step", "200")

    assert done.exit_code == 1
    assert "likely: weights" in done.output


def test_one_that_cannot_be_told_ends_with_status_3(tmp_path: Path) -> None:
    before, after = write(tmp_path / "b", 1, 200), write(tmp_path / "a", 201, 248)

    done = verify(before, after, "--step", "200")

    assert done.exit_code == 3
    assert "not verified" in done.output


def test_json_has_verdict_strength_and_curves(tmp_path: Path) -> None:
    before, after = write(tmp_path / "b", 1, 240), write(tmp_path / "a", 201, 248)

    found = json.loads(verify(before, after, "--format", "json").output)

    assert (found["level"], found["verified"], found["strength"]) == ("pass", True, "strong")
    assert found["overlap"] == 40
    assert set(found["curves"]) == {"loss", "lr", "grad norm"}


def test_a_log_that_was_appended_to_is_read_from_where_the_old_one_ended(tmp_path: Path) -> None:
    before = write(tmp_path / "b", 1, 240)
    write(
        tmp_path / "a", 201, 248, head=Path(before).read_text() + "resuming from checkpoint-200\n"
    )

    assert verify(before, str(tmp_path / "a"), "--step", "200").exit_code == 0


def test_one_log_of_two_starts_is_enough(tmp_path: Path) -> None:
    before = write(tmp_path / "b", 1, 240)
    both = write(tmp_path / "a", 201, 248, head=Path(before).read_text())

    assert verify(both, "--step", "200").exit_code == 0


def test_one_log_of_one_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="starts only once"):
        verify(write(tmp_path / "b", 1, 240))


def test_a_log_without_a_training_line_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("hello\n")

    with pytest.raises(InputError, match="empty: no line about a training iteration"):
        verify(write(tmp_path / "b", 1, 240), str(tmp_path / "empty"))


def test_an_empty_new_log_is_no_progress(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")

    done = verify(write(tmp_path / "b", 1, 240), str(tmp_path / "empty"))

    assert done.exit_code == 1
    assert "no new iteration was logged" in done.output


def test_a_line_of_any_kind_can_be_described(tmp_path: Path) -> None:
    for name, first, last in (("b", 1, 240), ("a", 201, 248)):
        rows = [f"<{p.iteration}> {p.loss:.9f}\n" for p in curve(first, last)]
        (tmp_path / name).write_text("".join(rows))
    regex = r"<(?P<step>\d+)> (?P<loss>\S+)"

    assert verify(str(tmp_path / "b"), str(tmp_path / "a"), "--regex", regex).exit_code == 0
