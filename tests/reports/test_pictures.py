"""The pictures of the network: pairs and NICs, each with its colour."""

from dataclasses import replace

from recovery.engine.history import RunStory, StepStory
from recovery.model.events import Noted
from recovery.reports.html.pictures import PAIRS_SHOWN, ladder, mesh, pairs, rails


def noted(group, busbw, **facts):
    return Noted(
        at=1.0,
        step="mesh-1",
        message="",
        kind="mesh.test",
        facts={"group": group, "busbw_gb_per_s": busbw, "round": 1, "level": "pairs", **facts},
    )


def story(*notes):
    found = RunStory()
    found.steps["mesh-1"] = StepStory("mesh-1", "mesh", 0.0, notes=list(notes))
    return found


def test_a_test_of_one_nic_is_not_a_test_of_the_pair():
    seen = story(noted(["a", "b"], 380.0), noted(["a", "b"], 47.0, rail=2))

    assert pairs(seen)["rows"][0]["cells"][1]["text"] == "380"
    assert mesh(seen, ",".join)[0]["group"] == "a,b rail 2"


def test_of_each_nic_the_best_counts_and_the_worst_node_comes_first():
    found = rails(
        story(
            noted(["a", "b"], 12.0, rail=3), noted(["b", "c"], 48.0, rail=3),
            noted(["a", "c"], 12.5, rail=3), noted(["a", "b"], 47.0, rail=0),
        )
    )  # fmt: skip

    assert found["names"] == [0, 3]
    assert [row["name"] for row in found["rows"]] == ["a", "b", "c"]
    assert [cell["text"] for cell in found["rows"][0]["cells"]] == ["47", "12"]
    assert [cell["text"] for cell in found["rows"][2]["cells"]] == ["", "48"]


def test_without_tests_there_is_no_picture():
    assert rails(story(noted(["a", "b"], 380.0))) is None
    assert pairs(story()) is None


def test_of_many_nodes_the_pairs_of_the_slowest_are_shown_and_how_many_there_are():
    tests = [noted([f"n{i:03d}", f"n{i + 1:03d}"], 380.0) for i in range(0, 300, 2)]

    found = pairs(story(*tests, noted(["n044", "n299"], 95.0)))

    assert (len(found["names"]), found["of"]) == (PAIRS_SHOWN, 300)
    assert {"n044", "n299"} <= set(found["names"])


def test_rounds_are_told_in_their_order():
    one, two = (replace(noted([], None), kind="mesh.round", message=f"round {n}") for n in (1, 2))

    assert ladder(story(one, noted(["a", "b"], 1.0), two)) == ["round 1", "round 2"]


def test_the_colour_of_a_test_is_that_among_tests_of_its_kind():
    seen = story(noted(["a", "b"], 380.0), noted(["a", "b"], 47.0, rail=2), noted(["c"], 480.0))

    assert len({row["colour"] for row in mesh(seen, ",".join)}) == 1
