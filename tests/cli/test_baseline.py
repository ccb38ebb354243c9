"""`recover baseline`: a golden run is kept, and what differs from it is told."""

import json
from pathlib import Path

import pytest

from recovery.errors import InputError
from tests.cli.places import recover

INVENTORY = "all: {children: {gpu: {hosts: {n1: {transport: local}}}}}\n"
BOOK = 'runbook: look\nnodes: "@gpu"\nsteps:\n  - check: [kernel.version, host.memory]\n'


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """A state folder with one run of two checks on this machine."""
    folder = tmp_path_factory.mktemp("baseline")
    (folder / "c.yaml").write_text(INVENTORY)
    (folder / "look.yaml").write_text(BOOK)
    words = ("run", str(folder / "c.yaml"), "--runbook", str(folder / "look.yaml"))
    done = recover(*words, "--state", str(folder / "state"))
    assert done.exit_code == 0, done.output
    return str(folder / "state")


def test_a_kept_run_is_like_itself(state):
    kept = recover("baseline", "save", "last", "golden", "--state", state)
    told = recover("baseline", "diff", "last", "golden", "--state", state)

    assert "1 nodes" in kept.output
    assert told.exit_code == 0
    assert told.output.startswith("as in run ")


def test_another_kernel_is_told_with_the_old_one(state):
    saved = recover("baseline", "save", "last", "older", "--state", state)
    path = saved.output.rpartition(": ")[2].strip()
    body = json.loads(Path(path).read_text())
    body["nodes"]["n1"]["kernel.version"]["alike"]["kernel"] = "5.4.0-old"
    Path(path).write_text(json.dumps(body))

    told = recover("baseline", "diff", "last", "older", "--state", state)

    assert told.exit_code == 1
    assert "WARN    n1: kernel.version: kernel is " in told.output
    assert "was 5.4.0-old" in told.output
    assert "remedy: " in told.output


def test_an_answer_that_is_missing_now_is_unknown(state):
    saved = recover("baseline", "save", "last", "wider", "--state", state)
    path = saved.output.rpartition(": ")[2].strip()
    body = json.loads(Path(path).read_text())
    body["nodes"]["n1"]["gpu.count"] = {"gpus": {"": 8}}
    Path(path).write_text(json.dumps(body))

    told = recover("baseline", "diff", "last", "wider", "--format", "json", "--state", state)

    assert told.exit_code == 3
    assert [row["level"] for row in json.loads(told.output)] == ["unknown"]


def test_a_baseline_is_not_overwritten_unasked(state):
    recover("baseline", "save", "last", "twice", "--state", state)

    refused = recover("baseline", "save", "last", "twice", "--state", state)
    taken = recover("baseline", "save", "last", "twice", "--replace", "--state", state)

    assert isinstance(refused.exception, InputError)
    assert taken.exit_code == 0


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden"])
def test_a_name_that_leaves_the_folder_is_refused(state, name):
    refused = recover("baseline", "save", "last", name, "--state", state)

    assert isinstance(refused.exception, InputError)


def test_a_misspelt_name_gets_a_hint(state):
    recover("baseline", "save", "last", "autumn", "--state", state)

    told = recover("baseline", "diff", "last", "autunm", "--state", state)

    assert isinstance(told.exception, InputError)
    assert "autumn" in told.exception.message


def test_there_is_no_run_before_the_first(state):
    told = recover("baseline", "diff", "last", "previous", "--state", state)

    assert isinstance(told.exception, InputError)


def test_a_file_that_is_no_baseline_is_refused(state):
    saved = recover("baseline", "save", "last", "broken", "--state", state)
    Path(saved.output.rpartition(": ")[2].strip()).write_text("[]")

    told = recover("baseline", "diff", "last", "broken", "--state", state)

    assert isinstance(told.exception, InputError)
