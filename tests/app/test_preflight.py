"""A preflight for a job: which nodes it can have, which to take."""

import pytest

from recovery.app.preflight import (
    Choice,
    Wanted,
    as_values,
    choose,
    sbatch_options,
    told,
    too_few_idle,
    wanted,
    without_busy,
)
from recovery.app.scheduler import Use
from recovery.engine.ending import RunEnd
from recovery.engine.history import story_of
from recovery.errors import InputError
from recovery.inventory import read_inventory
from recovery.model.events import NodeFinished, Quarantined, RunStarted, StepStarted
from recovery.model.kind import NodeResult
from recovery.model.verdict import failed, passed, single
from recovery.reading.occupancy import NodeUse

TEXT = """
all:
  children:
    head: {hosts: {head: {}}}
    gpu:
      children:
        leaf1: {vars: {leaf: leaf1}, hosts: {'n[1:4]': {}}}
        leaf2: {vars: {leaf: leaf2}, hosts: {'n[5:6]': {}}}
"""
CLUSTER = read_inventory(TEXT, "c.yaml", name="c")
GPU = ("n1", "n2", "n3", "n4", "n5", "n6")
DONE = RunEnd("done", 0, "all steps done")
BAD = single(failed("lost a GPU", remedy="drain it"))


def script(tmp_path, *lines):
    path = tmp_path / "train.sbatch"
    path.write_text("\n".join(("#!/bin/bash", *(f"#SBATCH {line}" for line in lines))))
    return str(path)


def story(bad=(), aside=(), nodes=GPU):
    events = [
        RunStarted(at=0, run="r", cluster="c", runbook="preflight", digest="d", nodes=nodes,
                   seed=1, version="0", owner="me"),
        StepStarted(at=1, step="s", verb="check", attempt=1, nodes=nodes, deadline_s=9),
    ]  # fmt: skip
    for name in nodes:
        verdict = BAD if name in bad else single(passed("well"))
        result = NodeResult(node=name, verdict=verdict)
        events.append(NodeFinished(at=2, step="s", attempt=1, result=result))
    if aside:
        events.append(Quarantined(at=3, step="s", nodes=aside, reason="x", remedy="y"))
    return story_of(events)


def test_without_a_word_all_gpu_nodes_are_meant_and_the_runbook_says_how_many():
    assert wanted(CLUSTER) == Wanted(nodes=GPU)


def test_a_number_and_an_expression_can_both_be_given():
    asked = wanted(CLUSTER, ("2", "@leaf1"))

    assert (asked.least, asked.nodes) == (2, GPU[:4])


def test_a_script_says_how_many_where_and_whom_to_leave_out(tmp_path):
    job = script(tmp_path, "-N 2-3", "-p leaf1", "--exclude=n[1-2]")

    asked = wanted(CLUSTER, job=job)

    assert (asked.least, asked.most) == (2, 3)
    assert asked.nodes == ("n3", "n4")
    assert asked.excluded == ("n1", "n2")


def test_options_of_sbatch_come_over_the_script(tmp_path):
    asked = wanted(CLUSTER, job=script(tmp_path, "-N 2"), options=("--nodes=3", "-p", "leaf1"))

    assert (asked.least, asked.nodes) == (3, GPU[:4])


@pytest.mark.parametrize(
    ("lines", "words", "said"),
    [
        (("-N 7",), (), "7 nodes are wanted, and there are 6"),
        (("-p gqu",), (), "nobody says which nodes are in partition gqu"),
        (("-w head",), (), "wants head, not among the nodes"),
        (("-N 1",), ("2", "3"), "one number"),
        (("-N 1",), ("0",), "one number"),
    ],
)
def test_what_cannot_be_is_refused_before_a_node_is_touched(tmp_path, lines, words, said):
    with pytest.raises(InputError, match=said) as caught:
        wanted(CLUSTER, words, job=script(tmp_path, *lines))

    assert caught.value.remedy


def test_busy_nodes_and_strangers_are_not_tested():
    use = Use({"n1": NodeUse(busy=True), "n2": NodeUse()}, strangers=("n3",))

    nodes, untested = without_busy(Wanted(nodes=GPU), use)

    assert (nodes, untested) == (("n2", "n4", "n5", "n6"), ("n1", "n3"))


def test_too_few_idle_nodes_are_undecided_and_nothing_is_touched():
    choice = too_few_idle(Wanted(nodes=GPU, least=5), GPU[:4], GPU[4:])

    assert choice.exit_code == 3
    assert "2 of 6 nodes run jobs" in choice.reason


def test_healthy_nodes_come_from_the_fewest_leaves():
    asked = Wanted(nodes=GPU, least=3, most=3)

    choice = choose(asked, CLUSTER, story(bad=("n2",), aside=("n2",)), DONE, ())

    assert choice.exit_code == 0
    assert choice.picked == ("n1", "n3", "n4")
    assert choice.exclude == ("n2",)
    assert sbatch_options(choice) == "--exclude=n2"


def test_a_node_that_was_not_tested_is_not_healthy_and_is_excluded():
    asked = Wanted(nodes=GPU, least=2, most=2)

    choice = choose(asked, CLUSTER, story(nodes=GPU[:4]), DONE, GPU[4:])

    assert "n5" not in choice.healthy
    assert choice.exclude == ("n5", "n6")


def test_nodes_that_failed_without_being_set_aside_are_not_healthy():
    choice = choose(Wanted(nodes=GPU, least=5, most=5), CLUSTER, story(bad=("n1",)), DONE, ())

    assert "n1" not in choice.picked


def test_too_few_healthy_nodes_say_no():
    choice = choose(Wanted(nodes=GPU, least=6), CLUSTER, story(bad=("n1",)), DONE, ())

    assert (choice.exit_code, choice.picked) == (1, ())
    assert choice.reason == "5 healthy nodes, 6 wanted"


def test_a_node_that_the_job_names_must_be_healthy():
    asked = Wanted(nodes=GPU, least=2, most=2, must=("n1",))

    choice = choose(asked, CLUSTER, story(bad=("n1",)), DONE, ())

    assert choice.exit_code == 1
    assert "not healthy: n1, which the job names" in choice.reason


def test_nodes_that_the_job_names_are_taken_first():
    asked = Wanted(nodes=GPU, least=3, most=3, must=("n6",))

    assert choose(asked, CLUSTER, story(), DONE, ()).picked == ("n6", "n1", "n2")


@pytest.mark.parametrize("code", [1, 3, 130])
def test_a_run_that_did_not_come_through_gives_no_nodes(code):
    end = RunEnd("shut", code, "the gate of s is shut")

    choice = choose(Wanted(nodes=GPU, least=1), CLUSTER, story(), end, ())

    assert (choice.exit_code, choice.picked, choice.healthy) == (code, (), ())


def a_choice(**changes):
    values = {"wanted": Wanted(nodes=GPU, least=2, most=2, script="jobs/train.sbatch"),
              "picked": ("n1", "n3"), "healthy": ("n1", "n3", "n4"), "untested": ("n6",),
              "reason": "", "exit_code": 0}  # fmt: skip
    return Choice(**{**values, **changes})


def test_people_read_what_to_type_next():
    lines = told(a_choice(), CLUSTER, "r")

    assert lines[-1] == "next: sbatch --exclude=n[2,5-6] jobs/train.sbatch"
    assert "READY for train.sbatch: 2 of 3 healthy nodes on leaf1" in lines
    assert any("not tested: n6" in line for line in lines)


def test_people_read_why_not():
    lines = told(a_choice(exit_code=1, reason="1 healthy nodes, 2 wanted"), CLUSTER, "r")

    assert lines[-2:] == [
        "NOT READY for train.sbatch: 1 healthy nodes, 2 wanted",
        "next: recover resume r",
    ]


def test_programs_read_the_same():
    values = as_values(a_choice(), CLUSTER, "r")

    assert (values["ready"], values["nodelist"], values["exclude"]) == (True, "n[1,3]", "n[2,5-6]")
    assert values["leaves"] == ["leaf1"]
