"""The commands of the README: each is understood, and those that touch nothing run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from recovery.cli import ROOT
from tests.cli.places import recover

TOP = Path(__file__).parents[1]
OFFLINE = ("plan", "explain", "checks", "lint", "schema")


def _commands() -> list[str]:
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", (TOP / "README.md").read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    told = [line.partition("  #")[0] for line in lines if line.startswith("recover ")]
    return [one.strip() for line in told for one in re.split(r"&&|;", line) if "recover " in one]


def test_the_readme_names_commands() -> None:
    assert len(_commands()) > 30


@pytest.mark.parametrize("line", _commands())
def test_a_command_of_the_readme_is_understood(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(line)[1:]
    _lay_files(words, tmp_path)
    monkeypatch.chdir(tmp_path)
    command: click.Command = ROOT
    while isinstance(command, click.Group) and words:
        context = click.Context(command)
        found = command.get_command(context, words[0])
        assert found is not None, words[0]
        command, words = found, words[1:]

    command.make_context(command.name, words)


@pytest.mark.parametrize("line", [c for c in _commands() if c.split()[1] in OFFLINE])
def test_a_command_of_the_readme_that_touches_nothing_runs(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(line)[1:]
    if "--probe" in words:
        pytest.skip("asks the nodes of a cluster that is not ours")
    monkeypatch.chdir(TOP)

    result = recover(*words)

    assert result.exit_code == 0, result.output


def _lay_files(words: list[str], folder: Path) -> None:
    """Files that a command wants to be there when it is understood."""
    for word in words:
        if word.endswith((".txt", ".log", ".sbatch")):
            (folder / word.replace("*", "0")).touch()
