"""`recover schedule` as a person types it."""

import json

import pytest

from recovery.errors import InputError
from tests.cli.places import operators_folder, recover


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(operators_folder(tmp_path))
    monkeypatch.setenv("RECOVER_STATE", str(tmp_path / "state"))
    return tmp_path


def schedule(*words):
    return recover("schedule", *words, "--units", "units")


def test_it_is_added_listed_shown_and_removed():
    added = schedule("add", "c")

    assert added.exit_code == 0, added.output
    assert "next: recover schedule show c-daily-quick" in added.output
    assert "c-daily-quick" in schedule("list").output
    assert "OnCalendar=*-*-* 05:00:00" in schedule("show", "c-daily-quick").output
    assert "removed c-daily-quick" in schedule("remove", "c-daily-quick").output
    assert "nothing is scheduled" in schedule("list").output


def test_the_weekly_preset_tests_everything_on_idle_nodes():
    schedule("add", "c", "--preset", "weekly-deep")

    (one,) = json.loads(schedule("list", "--format", "json").output)
    assert (one["name"], one["cron"], one["limit_s"]) == ("c-weekly-deep", "0 2 * * 0", 21600)
    assert "--depth full --when-busy skip --quiet" in " ".join(one["argv"])


def test_every_part_of_a_preset_can_be_given_otherwise(folder):
    schedule("add", "./inventories/c.yaml", "--name", "night", "--depth", "standard", "--cron",
             "30 1 * * 6", "--jitter", "5m", "--limit", "2h", "--when-busy", "wait", "--nodes",
             "n[1-2]")  # fmt: skip

    (one,) = json.loads(schedule("list", "--format", "json").output)
    assert (one["cron"], one["jitter_s"], one["limit_s"]) == ("30 1 * * 6", 300, 7200)
    words = " ".join(one["argv"])
    assert f"preflight {folder}/inventories/c.yaml --depth standard --when-busy wait" in words
    assert one["folder"] == str(folder)
    assert one["environment"]["RECOVER_STATE"] == str(folder / "state")


def test_what_would_be_installed_can_be_read_first(folder):
    printed = recover("schedule", "add", "c", "--with", "cron", "--print")

    assert "0 5 * * * cd" in printed.output
    assert not (folder / "state").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "x"), "no inventory called 'x'"),
        (("add", "c", "--cron", "x"), "five fields"),
        (("add", "c", "--cron", "0 5 * * *", "--calendar", "daily"), "two times"),
        (("add", "c", "--name", "../x"), "no name for a schedule"),
        (("show", "x"), "no schedule 'x'"),
        (("remove", "c-dayly-quick"), 'did you mean "c-daily-quick"?'),
    ],
)
def test_wrong_input_is_refused_with_a_remedy(words, said):
    schedule("add", "c")

    result = schedule(*words)

    assert isinstance(result.exception, InputError)
    assert said in result.exception.message
    assert result.exception.remedy
