"""Nodes by their journals; giving one back."""

import pytest

from recovery.app.nodes import as_values, give_back, partners, rows, stories_of, told
from recovery.app.scheduler import Use
from recovery.engine.history import story_of
from recovery.errors import InputError, SchedulerError
from recovery.inventory import read_inventory
from recovery.model.events import RunStarted
from recovery.reading.occupancy import NodeUse
from recovery.store.journal import FileJournal, read_journal
from recovery.store.runs import new_run
from tests.app.schedulers import on_path, put_tool
from tests.engine.many_runs import HOUR, run
from tests.fakes import FakeClock

TEXT = """
all:
  children:
    leaf1: {vars: {leaf: leaf1}, hosts: {'n[1:3]': {}}}
    leaf2: {vars: {leaf: leaf2}, hosts: {'n[4:6]': {}}}
"""
CLUSTER = read_inventory(TEXT, "c.yaml", name="c")
ALL = tuple(CLUSTER.nodes)


def all_well(at=0.0, but=()):
    return run(1, at, checks={name: {"a": "pass"} for name in ALL if name not in but})


def table(*stories, use=None):
    return rows(CLUSTER, stories, use or Use(), ALL)


def test_the_worst_come_first():
    bad = run(2, HOUR, checks={"n2": {"a": "fail"}, "n3": {"a": "unknown"}}, aside={"n1": "gone"})

    states = {row.node: row.state for row in table(all_well(but=("n6",)), bad)}

    assert list(states.items()) == [
        ("n1", "set aside"), ("n2", "failing"), ("n3", "undecided"), ("n6", "never tested"),
        ("n4", "healthy"), ("n5", "healthy"),
    ]  # fmt: skip


def test_a_healthy_node_that_somebody_drained_is_drained():
    held = Use({"n1": NodeUse(out=True, state="drained", reason="kernel")})

    row = table(all_well(), use=held)[0]

    assert (row.node, row.state, row.scheduler) == ("n1", "drained", "drained: kernel")


def test_people_read_why_since_when_how_often_and_what_to_type():
    bad = [run(i, i * HOUR, checks={"n1": {"a": "fail"}}, aside={"n1": "a: hot"}) for i in (1, 2)]

    lines = told(table(all_well(), *bad), "cluster-a", now=3 * HOUR)

    assert lines[:4] == [
        "set aside     n1 since 2 h 0 min: health: a: hot",
        "              bad in 2 of 3 runs: a.bad 2x",
        "              remedy: mend",
        "              mended? recover return cluster-a n1",
    ]
    assert lines[-1] == "healthy       n[2-6] (5 nodes, last tested 3 h 0 min ago at the latest)"


def test_a_lemon_is_named_even_while_it_is_well():
    stories = [
        run(i, i, checks={"n1": {"a": word}}) for i, word in enumerate(("fail", "fail", "pass"))
    ]

    assert any(
        "n1: bad in 2 of 3 runs: a.bad 2x" in line for line in told(table(*stories), "c", now=9)
    )


def test_programs_read_the_same():
    values = as_values(table(run(1, 0, aside={"n1": "gone"}))[0])

    assert (values["state"], values["findings"]) == ("set aside", {"health": 1})


def test_partners_are_good_idle_and_near():
    use = Use({"n1": NodeUse(busy=True)})

    assert partners(CLUSTER, [all_well()], use, ("n6",)) == ("n4", "n5")
    assert partners(CLUSTER, [all_well()], use, ("n2",)) == ("n3", "n4")


def test_without_good_nodes_the_operator_must_name_some():
    with pytest.raises(InputError, match="0 idle nodes are known to be good") as caught:
        partners(CLUSTER, [], Use(), ("n1",))

    assert "--partners" in caught.value.remedy


def started(state, name, cluster="c", at=1.0):
    folder = new_run(state, name)
    journal = FileJournal(folder.journal)
    journal.append(
        RunStarted(at=at, run=name, cluster=cluster, runbook="x", digest="d", nodes=ALL, seed=1,
                   version="0", owner="me")
    )  # fmt: skip
    journal.close()
    return folder


def test_only_journals_of_the_cluster_that_can_be_read_are_read(tmp_path):
    started(tmp_path, "1")
    started(tmp_path, "2", cluster="other")
    started(tmp_path, "3").journal.write_text("nonsense\n")

    assert [s.started.run for s in stories_of(tmp_path, "c")] == ["1"]
    assert stories_of(tmp_path, "c", since=1e12) == []


def test_giving_back_is_journaled_and_releases_only_ours(tmp_path, monkeypatch):
    put_tool(tmp_path / "tools", "sinfo", says="n1|drained|g|recover: a\nn2|drained|g|kernel\n")
    put_tool(tmp_path / "tools", "scontrol")
    monkeypatch.setenv("PATH", on_path(tmp_path / "tools"))
    folder = started(tmp_path, "1")

    said = give_back(folder, {"scheduler": "slurm"}, ("n1", "n2"), FakeClock())

    assert said == "resumed in Slurm: n1"
    note = story_of(read_journal(folder.journal)).notes[-1]
    assert note.kind == "node.released"
    assert note.facts == {"nodes": ["n1", "n2"], "released": ["n1"]}


def test_when_the_scheduler_refuses_nothing_is_journaled(tmp_path, monkeypatch):
    put_tool(tmp_path / "tools", "sinfo", status=1)
    monkeypatch.setenv("PATH", on_path(tmp_path / "tools"))
    folder = started(tmp_path, "1")

    with pytest.raises(SchedulerError):
        give_back(folder, {"scheduler": "slurm"}, ("n1",), FakeClock())

    assert story_of(read_journal(folder.journal)).notes == []
