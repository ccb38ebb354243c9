"""`recover plan`: offline, exact, and refusing in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recovery.errors import InputError
from recovery.plan import plan_from_values
from tests.cli.places import operators_folder, recover

PLAN = ("plan", "c", "--runbook", "night", "--seed", "7")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(operators_folder(tmp_path))
    return tmp_path


def test_it_prints_every_step_with_its_folded_nodes_and_commands() -> None:
    result = recover(*PLAN)

    assert result.exit_code == 0
    assert "night on c: 3 nodes n[1-3]" in result.output
    assert "$ echo fine" in result.output
    assert "check-1  [read]" in result.output
    assert "nothing was touched" in result.output


def test_variables_and_nodes_can_be_given() -> None:
    result = recover(*PLAN, "-e", "word=given", "-e", "ready=2", "--nodes", "n[2-3]")

    assert "$ echo given" in result.output
    assert "2 nodes n[2-3]" in result.output
    assert "gate 2 of 2" in result.output


def test_as_json_it_is_the_plan_that_a_run_would_journal() -> None:
    values = json.loads(recover(*PLAN, "--format", "json").output)

    plan = plan_from_values(values)
    assert [step.id for step in plan.steps] == ["run-1", "check-1"]
    assert plan.digest == json.loads(recover(*PLAN, "--format", "json").output)["digest"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "x"), "no inventory called 'x'"),
        (("plan", "c", "--runbook", "nigth"), 'called \'nigth\' (did you mean "night"?)'),
        ((*PLAN, "-e", "wrod=x"), "'wrod' is not a variable of the runbook or the inventory"),
        ((*PLAN, "--nodes", "n9"), "--nodes:1:1: "),
        ((*PLAN, "-e", "ready=9"), "a gate of 9 on 3 nodes can never open"),
        ((*PLAN, "-e", "word=no"), "'no' is ambiguous"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_with_a_remedy(words: tuple[str, ...], said: str) -> None:
    result = recover(*words)

    assert isinstance(result.exception, InputError)
    assert said in result.exception.message
    assert result.exception.remedy
    assert result.exception.exit_code == 2


def test_a_word_without_equals_is_no_variable() -> None:
    result = recover(*PLAN, "-e", "word")

    assert result.exit_code == 2
    assert "'word' is not NAME=VALUE" in result.output
