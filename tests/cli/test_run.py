"""`recover run`, `resume`, `runs`, `report` as a person types them; the nodes are this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RECOVER = str(Path(sys.executable).parent / "recover")
INVENTORY = "all:\n  vars: {transport: local}\n  hosts:\n    node[1-3]:\n"
BOOK = """
runbook: tiny
about: a tiny one
nodes: all
vars: {word: hello}
steps:
  - run: "echo {{ word | q }}"
    effect: read
    parse: lines
    agree: lines[0]
  - run: test ! -e stop
    id: second
    effect: read
finally:
  - report: [json, md]
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories" / "mine.yaml").write_text(INVENTORY)
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "tiny.yaml").write_text(BOOK)
    return tmp_path


def recover(here, *words):
    environment = {**os.environ, "HOME": str(here), "RECOVER_STATE": str(here / "state")}
    return subprocess.run(
        [RECOVER, *words],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def test_a_run_ends_with_0_and_says_where_its_report_is(here):
    done = recover(here, "run", "mine", "--runbook", "tiny")

    assert done.returncode == 0, done.stderr
    assert "DONE: all steps done" in done.stdout
    assert "recover report " in done.stdout
    assert len(list(here.glob("state/runs/*/reports/report.json"))) == 1


def test_the_report_written_by_the_run_knows_its_end(here):
    recover(here, "run", "mine", "--runbook", "tiny")

    (file,) = here.glob("state/runs/*/reports/report.json")
    assert json.loads(file.read_text())["outcome"] == "done"


def test_quiet_says_only_the_summary(here):
    done = recover(here, "run", "mine", "--runbook", "tiny", "--quiet")

    assert "started on" not in done.stdout
    assert "DONE" in done.stdout


def test_json_is_a_line_an_event(here):
    done = recover(here, "run", "mine", "--runbook", "tiny", "--format", "json")

    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert (events[0], events[-1]) == ("RunStarted", "RunFinished")


def test_a_shut_gate_is_1_and_resume_goes_on_where_it_stopped(here):
    for folder in (here, here / "home"):
        folder.mkdir(exist_ok=True)
    (here / "stop").write_text("")
    shut = recover(here, "run", "mine", "--runbook", "tiny")
    (here / "stop").unlink()

    resumed = recover(here, "resume", "last")

    assert shut.returncode == 1, shut.stdout
    assert "next: recover resume" in shut.stdout
    assert resumed.returncode == 0, resumed.stdout
    assert "run-1: started" not in resumed.stdout


def test_a_variable_is_set_from_the_command_line_and_arrives_whole(here):
    recover(here, "run", "mine", "--runbook", "tiny", "-e", "word=a; echo b")

    (journal,) = here.glob("state/runs/*/journal.jsonl")
    results = [json.loads(x) for x in journal.read_text().splitlines() if "NodeFinished" in x]
    assert results[0]["result"]["values"]["lines"] == ["a; echo b"]


def test_a_changed_runbook_is_not_resumed(here):
    (here / "stop").write_text("")
    recover(here, "run", "mine", "--runbook", "tiny")
    (here / "runbooks" / "tiny.yaml").write_text(BOOK.replace("! -e stop", "-e go"))

    done = recover(here, "resume", "last")

    assert done.returncode == 2
    assert "has changed since it started" in done.stderr


def test_a_run_that_is_done_is_not_resumed(here):
    recover(here, "run", "mine", "--runbook", "tiny")

    done = recover(here, "resume", "last")

    assert done.returncode == 2
    assert "is done already" in done.stderr


def test_dry_run_touches_nothing(here):
    done = recover(here, "run", "mine", "--runbook", "tiny", "--dry-run")

    assert "offline: nothing was touched" in done.stdout
    assert not (here / "state").exists()


def test_a_probe_marks_the_rest_not_run(here):
    book = BOOK.replace("    id: second\n    effect: read\n", "    id: second\n")
    (here / "runbooks" / "tiny.yaml").write_text(book)

    done = recover(here, "plan", "mine", "--runbook", "tiny", "--probe")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "second: not-run" in done.stdout


def test_runs_are_listed_with_their_end(here):
    recover(here, "run", "mine", "--runbook", "tiny")

    (row,) = json.loads(recover(here, "runs", "--format", "json").stdout)

    assert (row["cluster"], row["runbook"], row["state"]) == ("mine", "tiny", "done")


def test_a_run_whose_owner_is_gone_shows_as_crashed(here):
    recover(here, "run", "mine", "--runbook", "tiny")
    (journal,) = here.glob("state/runs/*/journal.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))

    listed = recover(here, "runs").stdout

    assert "crashed" in listed
    assert "recover resume" in listed


@pytest.mark.parametrize("fmt", ["text", "md", "junit", "json", "html"])
def test_every_report_can_be_printed_again(here, fmt):
    recover(here, "run", "mine", "--runbook", "tiny")

    assert recover(here, "report", "last", "--format", fmt).stdout.strip()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "nothing"), "no run 'nothing'"),
        (("report", "last", "--format", "pdf"), "no 'pdf' in reports"),
        (("run", "mien"), 'did you mean "mine"'),
        (("run", "mine", "--runbook", "tiyn"), 'did you mean "tiny"'),
        (("run", "mine", "--runbook", "tiny", "--nodes", "node9"), "node9"),
        (("run", "mine", "--runbook", "tiny", "-e", "wrod=x"), 'did you mean "word"'),
        (("run", "mine", "--runbook", "tiny", "-e", "novalue"), "is not NAME=VALUE"),
        (("rnu", "mine"), 'did you mean "run"'),
    ],
)
def test_a_mistake_is_2_with_a_hint(here, words, said):
    if words[0] == "report":
        recover(here, "run", "mine", "--runbook", "tiny")

    done = recover(here, *words)

    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_help_is_quick_to_import():
    code = (
        "import sys; from recovery.cli import ROOT; "
        "bad = {'fabric', 'paramiko', 'pydantic', 'jinja2', 'rich', 'yaml'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
