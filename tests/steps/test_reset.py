"""`reset`: only GPUs that nobody uses; all of them must come back."""

import pytest

from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level, failed
from recovery.steps.reset import APPS, LIST, RESET, ResetParams
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

TWO = "GPU 0: NVIDIA H100 (UUID: GPU-1)\nGPU 1: NVIDIA H100 (UUID: GPU-2)\n"


def reset(answers, *, holds=None, **params):
    said = {APPS: finished(""), LIST: finished(TWO), **answers}
    left = {line: [one] if isinstance(one, Output) else list(one) for line, one in said.items()}

    def answer(node, command):
        queue = left.get(command.line, [finished("GPU was successfully reset.")])
        return queue.pop(0) if len(queue) > 1 else queue[0]

    world = FakeWorld(transport=FakeTransport(answer), step=a_step("reset", timeout_s=60))
    world.holds = holds or {}
    params = {"argument": "all", **params}
    return RESET.run(ResetParams(**params), (Node("a"),), world).nodes["a"], world


def test_idle_gpus_are_reset_and_counted():
    result, world = reset({})

    assert result.verdict.level is Level.PASS
    assert [line for _, line in world.transport.asked] == [
        APPS, LIST, "nvidia-smi --gpu-reset", LIST,
    ]  # fmt: skip
    assert world.intents[0][0] == "disrupt"


def test_some_gpus_are_named_by_index():
    assert ResetParams(argument=[0, 3]).line == "nvidia-smi --gpu-reset -i 0,3"
    with pytest.raises(ValueError, match="by index"):
        ResetParams(argument="0; reboot")


@pytest.mark.parametrize(
    ("apps", "level"),
    [
        (finished("4711, python3\n"), Level.FAIL),
        (finished("No devices were found\n"), Level.UNKNOWN),
        (finished("", status=9, stderr="couldn't communicate with the driver"), Level.UNKNOWN),
        (Output(Ending.TIMEOUT), Level.UNKNOWN),
    ],
)
def test_gpus_in_use_or_unknown_are_left_alone(apps, level):
    result, world = reset({APPS: apps})

    assert result.verdict.level is level
    assert world.intents == []


def test_a_gpu_that_does_not_come_back_fails_and_asks_for_a_reboot():
    result, _ = reset({LIST: [finished(TWO), finished(TWO.splitlines()[0] + "\n")]})

    assert result.verdict.worst.finding == "1 of 2 GPUs came back"
    assert "reboot" in result.verdict.worst.remedy


def test_where_it_may_fail_the_next_step_decides():
    refused = finished("", status=1, stderr="a\nResetting GPU is not supported.\n")

    result, _ = reset({"nvidia-smi --gpu-reset": refused}, may_fail=True)

    assert result.verdict.level is Level.WARN
    assert result.verdict.worst.finding == "the reset failed: Resetting GPU is not supported."


def test_a_node_that_was_reset_often_enough_is_left_to_the_next_rung():
    twice = failed("no reset again: 2 within a week", remedy="replace it", code="blast.attempts")

    held, world = reset({}, holds={"a": twice})
    excused, _ = reset({}, holds={"a": twice}, may_fail=True)

    assert world.intents == []
    assert held.verdict.level is Level.FAIL
    assert (excused.verdict.level, excused.verdict.worst.code) == (Level.WARN, "blast.attempts")
