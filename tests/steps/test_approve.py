"""`approve`: silence is not consent."""

import pytest

from recovery.model.node import CONTROLLER
from recovery.model.verdict import Level
from recovery.steps.approve import APPROVE, ApproveParams
from tests.fakes import FakeWorld


@pytest.mark.parametrize(
    ("answer", "level"), [(True, Level.PASS), (False, Level.FAIL), (None, Level.UNKNOWN)]
)
def test_only_a_yes_passes(answer, level):
    world = FakeWorld(answers=[(answer, "ada")])

    result = APPROVE.run(ApproveParams(argument="sure?"), (CONTROLLER,), world)

    assert result.nodes["controller"].verdict.level is level
    assert result.verdict.level is level


def test_the_remedy_is_the_command_to_type():
    world = FakeWorld(answers=[(None, "no terminal")])

    result = APPROVE.run(ApproveParams(argument="sure?"), (CONTROLLER,), world)

    assert "recover resume run-1 --approve run-1" in result.verdict.worst.remedy
