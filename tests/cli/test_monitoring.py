"""`recover monitoring export`: files that are there, and none of an operator's that is lost."""

import json

import pytest
import yaml

from recovery.errors import InputError
from tests.cli.places import recover

NAMES = {"README.md", "alertmanager-example.yaml", "grafana-dashboard.json", "recover-alerts.yaml"}


def test_the_files_are_written_and_the_next_step_is_said(tmp_path):
    done = recover("monitoring", "export", str(tmp_path / "new" / "folder"))

    written = tmp_path / "new" / "folder"
    assert done.exit_code == 0, done.output
    assert {p.name for p in written.iterdir()} == NAMES
    assert done.output.splitlines()[-1].startswith("next: ")
    assert json.loads((written / "grafana-dashboard.json").read_text())["title"]
    for name in ("recover-alerts.yaml", "alertmanager-example.yaml"):
        assert yaml.safe_load((written / name).read_text())


def test_what_an_operator_changed_is_kept_beside_the_new_file(tmp_path):
    recover("monitoring", "export", str(tmp_path))
    mine = tmp_path / "recover-alerts.yaml"
    mine.write_text("groups: []  # mine\n")

    done = recover("monitoring", "export", str(tmp_path))

    assert (tmp_path / "recover-alerts.yaml.old").read_text() == "groups: []  # mine\n"
    assert "kept as .old" in done.output
    assert {p.name for p in tmp_path.iterdir()} == NAMES | {"recover-alerts.yaml.old"}


def test_a_place_where_nothing_can_be_written_is_our_input(tmp_path):
    (tmp_path / "file").write_text("x")

    done = recover("monitoring", "export", str(tmp_path / "file"))

    assert isinstance(done.exception, InputError)
    assert "cannot be written" in done.exception.message
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("words", [(), ("export",), ("nonsense",)])
def test_half_a_command_says_how_to_go_on(words):
    assert "Usage" in recover("monitoring", *words).output
