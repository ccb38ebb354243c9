"""The gate says yes only to fresh answers that all are good."""

import pytest

from recovery.app.gating import as_values, ask, told
from recovery.engine.health import histories
from recovery.model.verdict import Level
from tests.engine.many_runs import HOUR, run

NOW = 100 * HOUR
WELL = {"gpu.ecc": "pass", "gpu.hot": "warn"}


def gate(*stories, nodes=("n1",), needed=1, with_mesh=True):
    known = histories(stories)
    return ask(known, nodes, needed=needed, oldest=NOW - 24 * HOUR, with_mesh=with_mesh)


def only(answer):
    return answer.standings[0]


def test_fresh_checks_and_a_fresh_mesh_open_it():
    answer = gate(run(1, NOW - HOUR, checks={"n1": WELL}, mesh={"n1": "pass"}))

    assert (answer.exit_code, answer.with_level(Level.PASS)) == (0, ("n1",))


def test_a_node_that_nobody_tested_is_undecided():
    answer = gate()

    assert (answer.exit_code, only(answer).reason) == (3, "never tested")


def test_an_old_answer_is_no_answer():
    answer = gate(run(1, NOW - 25 * HOUR, checks={"n1": WELL}, mesh={"n1": "pass"}))

    assert (answer.exit_code, only(answer).reason) == (3, "not tested in this time")


def test_without_a_fresh_mesh_it_is_undecided_unless_checks_are_enough():
    old = run(1, NOW - 25 * HOUR, mesh={"n1": "pass"})
    fresh = run(2, NOW - HOUR, checks={"n1": WELL})

    assert "network was not tested" in only(gate(old, fresh)).reason
    assert gate(old, fresh, with_mesh=False).exit_code == 0


def test_one_bad_answer_shuts_it():
    checks = {"n1": {"gpu.ecc": "fail", "gpu.count": "pass"}}
    answer = gate(run(1, NOW - HOUR, checks=checks, mesh={"n1": "pass"}))

    assert answer.exit_code == 1
    assert only(answer).reason == "gpu.ecc: failing (run run1)"
    assert only(answer).remedy == "mend gpu.ecc"


def test_a_failure_stands_until_it_is_asked_again_however_old():
    old = run(1, NOW - 90 * HOUR, checks={"n1": {"gpu.burn": "fail"}})
    fresh = run(2, NOW - HOUR, checks={"n1": WELL}, mesh={"n1": "pass"})

    assert gate(old, fresh).exit_code == 1


def test_an_old_question_without_an_answer_does_not_shut_it():
    old = run(1, NOW - 90 * HOUR, checks={"n1": {"gpu.burn": "unknown"}})
    fresh = run(2, NOW - HOUR, checks={"n1": WELL}, mesh={"n1": "pass"})

    assert gate(old, fresh).exit_code == 0


def test_a_fresh_question_without_an_answer_is_undecided():
    answer = gate(run(1, NOW - HOUR, checks={"n1": {"a": "unknown"}}, mesh={"n1": "pass"}))

    assert answer.exit_code == 3


def test_a_node_that_was_set_aside_is_out():
    answer = gate(run(1, NOW - HOUR, aside={"n1": "kernel differs"}))

    assert (answer.exit_code, only(answer).level) == (1, Level.FAIL)
    assert "set aside: health: kernel differs" in only(answer).reason


@pytest.mark.parametrize(("needed", "code"), [(1, 0), (2, 3), (3, 1)])
def test_nodes_that_could_still_pass_make_it_undecided_and_too_few_shut_it(needed, code):
    checks = {"n1": WELL, "n3": {"a": "fail"}}
    story = run(1, NOW - HOUR, checks=checks, mesh={"n1": "pass"})

    assert gate(story, nodes=("n1", "n2", "n3"), needed=needed).exit_code == code


def test_people_read_the_worst_first_and_what_to_type():
    story = run(1, NOW - HOUR, checks={"n1": WELL, "n3": {"a": "fail"}}, mesh={"n1": "pass"})
    answer = gate(story, nodes=("n1", "n2", "n3", "n4"), needed=4)

    lines = told(answer, "cluster-a", age_s=24 * HOUR)

    assert lines[0] == "FAIL    n3: a: failing (run run1)"
    assert lines[2] == "UNKNOWN n[2,4]: never tested"
    assert lines[-2] == "NOT READY: 1 nodes passed within 24 h 0 min, 4 needed: n1"
    assert lines[-1] == "next: recover preflight cluster-a"


def test_many_reasons_are_cut_and_it_says_so():
    checks = {f"n{i}": {f"a{i}": "fail"} for i in range(30)}

    lines = told(gate(run(1, NOW, checks=checks), nodes=tuple(checks)), "c", age_s=HOUR)

    assert "and 10 more: --format json" in "\n".join(lines)


def test_programs_read_the_same():
    values = as_values(gate(run(1, NOW, checks={"n1": WELL}), nodes=("n1", "n2"), with_mesh=False))

    assert (values["ready"], values["nodelist"]) == (True, "n1")
    assert values["not_ready"]["n2"]["level"] == "unknown"
