"""`@drained` and `@quarantined`: found when they are named, kept with the plan."""

import pytest

from recovery.app import preparing
from recovery.app.groups import RunGroups
from recovery.errors import SchedulerError, SelectionError
from recovery.inventory import read_inventory
from recovery.store.journal import FileJournal
from recovery.store.runs import new_run
from tests.app.schedulers import asked, on_path, put_tool
from tests.app.test_nodes import ALL, TEXT
from tests.engine.many_runs import run

SLURM = "all: {vars: {scheduler: slurm}, hosts: {'n[1:6]': {}}}"
BOOK = """
runbook: sweep
nodes: "all & !@drained & !@quarantined"
steps:
  - run: uptime
    effect: read
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "tools"
    states = {"n1": "idle", "n2": "drained", "n3": "draining", "n4": "down*", "n5": "mixed"}
    lines = "".join(f"{name}|{state}|gpu|none\n" for name, state in states.items())
    put_tool(folder, "sinfo", says=f"{lines}n6|idle|gpu|none\n")
    monkeypatch.setenv("PATH", on_path(folder))
    return folder


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state folder in which a run of the cluster ``c`` set n6 aside."""
    folder = tmp_path / "state"
    journal = FileJournal(new_run(folder, "1").journal)
    story = run(1, 0.0, checks={name: {"a": "pass"} for name in ALL}, aside={"n6": "slow"})
    journal.append(story.started)
    journal.append(story.quarantined["n6"])
    journal.close()
    monkeypatch.setenv("RECOVER_STATE", str(folder))
    return folder


def test_the_scheduler_says_who_is_drained(tools):
    chooser = RunGroups(read_inventory(SLURM, "c.yaml", name="c"))

    assert chooser.select("all & !@drained") == ("n1", "n5", "n6")
    assert chooser.select("@drained") == ("n2", "n3", "n4")
    assert len(asked(tools)) == 1


def test_nobody_is_asked_when_no_expression_names_them(tools):
    assert RunGroups(read_inventory(SLURM, "c.yaml", name="c")).select("all")
    assert asked(tools) == []


def test_a_scheduler_that_does_not_answer_is_not_nobody_drained(tools):
    put_tool(tools, "sinfo", status=1)

    with pytest.raises(SchedulerError):
        RunGroups(read_inventory(SLURM, "c.yaml", name="c")).select("all & !@drained")


def test_the_journals_say_who_is_set_aside(state):
    chooser = RunGroups(read_inventory(TEXT, "c.yaml", name="c"))

    assert chooser.select("@quarantined") == ("n6",)


def test_with_nobody_set_aside_the_group_is_empty(tmp_path):
    chooser = RunGroups(read_inventory(TEXT, "c.yaml", name="c"), tmp_path / "none")

    assert chooser.select("@quarantined", empty_ok=True) == ()
    with pytest.raises(SelectionError):
        chooser.select("@quarantined")


def test_a_plan_keeps_the_answers_so_that_a_resumed_run_is_the_same(tools, state, tmp_path):
    cluster, book = tmp_path / "c.yaml", tmp_path / "sweep.yaml"
    cluster.write_text(SLURM)
    book.write_text(BOOK)

    made = preparing.prepare(str(cluster), runbook=str(book))
    put_tool(tools, "sinfo", says="".join(f"{name}|idle|gpu|none\n" for name in ALL))
    again = preparing.prepare(**made.inputs)

    assert made.plan.nodes == ("n1", "n5")
    assert again.plan.digest == made.plan.digest
