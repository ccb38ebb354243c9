"""Many runs, folded into what is known of each node."""

from recovery.engine.health import histories
from recovery.engine.history import RunStory
from recovery.model.verdict import Level
from tests.engine.many_runs import HOUR, run


def history(*stories, node="n1"):
    return histories(stories)[node]


def test_the_newest_answer_to_each_question_counts():
    found = history(
        run(1, 0, checks={"n1": {"gpu.ecc": "fail", "gpu.count": "pass"}}),
        run(2, HOUR, checks={"n1": {"gpu.ecc": "pass"}}),
    )

    assert {q: a.level for q, a in found.answers.items()} == {
        "gpu.ecc": Level.PASS,
        "gpu.count": Level.PASS,
    }
    assert found.answers["gpu.ecc"].run == "run2"
    assert found.last_at == HOUR


def test_a_finding_added_by_comparing_nodes_counts_for_its_check():
    story = run(1, 0, checks={"n1": {"driver": "pass"}})
    odd = run(1, 0, checks={"n1": {"driver": "fail"}}).steps["health"].results["n1"]
    same_words = story.steps["health"].results["n1"].values
    story.steps["health"].results["n1"] = type(odd)(
        node="n1", verdict=odd.verdict, values=same_words
    )

    assert history(story).answers["driver"].level is Level.FAIL


def test_a_node_is_set_aside_until_what_was_wrong_is_asked_again_and_answered_well():
    bad = run(1, 0, checks={"n1": {"gpu.ecc": "fail"}}, aside={"n1": "ecc"})
    reached = run(2, HOUR, checks={"n1": {"gpu.count": "pass"}})
    well = run(3, 2 * HOUR, checks={"n1": {"gpu.ecc": "pass"}})

    assert history(bad, reached).aside.reason == "ecc"
    assert history(bad, reached, well).aside is None


def test_since_is_the_first_of_the_runs_that_set_it_aside_in_a_row():
    again = [run(i, i * HOUR, checks={"n1": {"e": "fail"}}, aside={"n1": "e"}) for i in (1, 2)]

    found = history(*again)

    assert (found.aside.since, found.aside.run) == (HOUR, "run2")


def test_a_lemon_shows_by_how_often_and_what():
    found = history(
        run(1, 0, checks={"n1": {"a": "fail", "b": "pass"}}),
        run(2, 1, checks={"n1": {"a": "fail", "b": "fail"}}),
        run(3, 2, checks={"n1": {"a": "pass", "b": "pass"}}),
        run(4, 3, checks={"n2": {"a": "fail"}}),
    )

    assert (found.n_runs, found.n_bad_runs) == (3, 2)
    assert found.findings.most_common() == [("a.bad", 2), ("b.bad", 1)]
    assert round(found.lemon_share, 2) == 0.67


def test_a_release_forgets_what_was_before_the_repair():
    bad = run(1, 0, checks={"n1": {"a": "fail", "b": "pass"}}, aside={"n1": "a"})
    back = run(2, HOUR, mesh={"n1": "pass"}, released=("n1",))

    found = history(bad, back)

    assert (found.aside, found.returned_at) == (None, HOUR)
    assert set(found.answers) == {"b", "mesh"}


def test_a_command_of_a_runbook_counts_only_when_it_reads():
    reads = {"steps": [{"id": "same", "effect": "read"}]}
    writes = {"steps": [{"id": "same", "effect": "write"}]}

    assert history(run(1, 0, asked={"n1": "fail"}, plan=reads)).worst.question == "same"
    assert histories([run(1, 0, asked={"n1": "fail"}, plan=writes)]) == {}


def test_a_run_that_never_started_says_nothing():
    assert histories([RunStory()]) == {}
