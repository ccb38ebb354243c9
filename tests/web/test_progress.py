"""A run in one picture: what is done, who is waited for, what to type."""

import pytest

from recovery.engine.history import story_of
from recovery.inventory import fold
from recovery.model.events import Answered, Asked, NodeFinished, RunFinished, StepStarted
from recovery.model.kind import NodeResult
from recovery.model.verdict import failed, single, warned
from recovery.web.progress import progress
from tests.reports.stories import EVIL, Shelf, events_of

ASKED = Asked(at=3, step="relaunch", id="go", question="Start again?")


def picture(events, state="running"):
    return progress(story_of(events), state, "", fold, 20.0)


def begun(n_nodes=4, words="gone"):
    return list(events_of(n_nodes, Shelf(), words))


def test_a_running_step_names_who_is_waited_for_and_how_far_it_is():
    step = picture(begun()[:4])["steps"][0]

    assert (step["outcome"], step["done"], step["of"]) == ("running", 2, 4)
    assert step["waiting"] == "node[003-004]"
    assert step["took"] == "19 s"


def test_names_that_would_fill_the_page_are_cut():
    events = begun(1000)[:2]

    waiting = progress(story_of(events), "running", "", ",".join, 9.0)["steps"][0]["waiting"]

    assert len(waiting) == 203
    assert waiting.endswith("...")


@pytest.mark.parametrize(
    ("more", "state", "words"),
    [
        ((), "running", ""),
        ((ASKED,), "running", "Start again? Answer at its terminal; later: "
                              "recover resume 20261201-000000-c-ab12 --approve go"),
        ((ASKED, Answered(at=4, step="relaunch", id="go", approved=True, by="x")), "running", ""),
        ((), "crashed", "recover resume 20261201-000000-c-ab12"),
        ((RunFinished(at=9, outcome="done", exit_code=0, reason="r"),), "done",
         "recover report 20261201-000000-c-ab12"),
        ((RunFinished(at=9, outcome="shut", exit_code=1, reason="", next_command="do"),), "shut",
         "do"),
    ],
)  # fmt: skip
def test_what_to_type_is_said_when_somebody_is_needed(more, state, words):
    assert picture((*begun()[:4], *more), state)["next"] == words


def test_words_of_a_node_have_no_control_characters_left():
    told = repr(picture(begun(words=EVIL)))

    assert "\\x1b" not in told
    assert "\\x00" not in told


def test_a_run_that_never_began_has_a_picture_too():
    told = picture((), "never started")

    assert told["about"] == "a run that never began"
    assert told["steps"] == []


def test_only_the_worst_findings_are_shown_and_the_others_counted():
    nodes = tuple(f"n{i}" for i in range(100))
    events = [StepStarted(at=1, step="s", verb="check", attempt=1, nodes=nodes, deadline_s=9)]
    for i, node in enumerate(nodes):
        found = failed("gone", remedy="r") if i == 99 else warned(f"hot {i}", remedy="r")
        result = NodeResult(node=node, verdict=single(found))
        events.append(NodeFinished(at=2, step="s", attempt=1, result=result))

    told = picture(events)["findings"]

    assert told["rows"][0] == {
        "level": "fail", "step": "s", "nodes": "n99", "finding": "gone", "remedy": "r"
    }  # fmt: skip
    assert (len(told["rows"]), told["more"]) == (60, 40)
