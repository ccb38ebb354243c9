"""`drain`: whoever looks at the scheduler sees why, or the step says that nobody does."""

import pytest

from recovery.model.node import Node
from recovery.model.verdict import Level
from recovery.steps.drain import DRAIN, DrainParams
from tests.fakes import FakeWorld

NODES = (Node("a"), Node("b"))


@pytest.mark.parametrize(
    ("said", "level", "words"),
    [
        ("drained in Slurm", Level.PASS, "drained in Slurm"),
        ("out in kubernetes already", Level.PASS, "already"),
        ("", Level.WARN, "names no scheduler"),
        ("not drained: scontrol is not on this machine", Level.FAIL, "scontrol is not"),
    ],
)
def test_nodes_are_set_aside_and_what_the_scheduler_says_is_the_verdict(said, level, words):
    world = FakeWorld(said_of_drain=said)

    result = DRAIN.run(DrainParams(argument="ill after all rungs"), NODES, world)

    assert world.aside[0][:2] == (("a", "b"), "ill after all rungs")
    assert "recover return test" in world.aside[0][2]
    for one in result.nodes.values():
        assert one.verdict.level is level
        assert words in one.verdict.worst.finding
    assert set(result.nodes) == {"a", "b"}


def test_a_reason_is_required():
    with pytest.raises(ValueError, match="at least 3"):
        DrainParams(argument="")
