"""The pictures of the network: pairs and NICs, each with its colour."""

from recovery.engine.history import RunStory, StepStory
from recovery.model.events import Noted
from recovery.reports.html.pictures import mesh, pairs, rails


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
