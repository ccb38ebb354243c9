"""A parallel layout on fewer GPUs: does it fit, what to change, and when it is refused."""

import pytest

from recovery.checkpoints.layout import Fewer, Shape, fit, judge_fewer, read_shape
from recovery.model.verdict import Level

MEGATRON = {
    "tensor_model_parallel_size": 8,
    "pipeline_model_parallel_size": 4,
    "world_size": 512,
}


def test_a_megatron_shape_tells_its_data_parallel_ranks():
    shape = read_shape(MEGATRON)

    assert (shape.replica, shape.data) == (32, 16)


def test_a_deepspeed_shape_is_data_times_model():
    assert read_shape({"dp_world_size": 16, "mp_world_size": 2}) == Shape(tensor=2, world=32)


@pytest.mark.parametrize(
    "facts",
    [{}, {"tensor_model_parallel_size": 8}, {"world_size": None}, {**MEGATRON, "world_size": 500}],
)
def test_a_shape_that_does_not_tell_its_world_is_not_known(facts):
    assert read_shape(facts) is None


def test_a_layout_uses_as_many_nodes_as_hold_whole_replicas():
    found = fit(read_shape(MEGATRON), nodes=62, gpus_per_node=8)

    assert (found.nodes, found.before, found.data, found.problem) == (60, 64, 15, "")
    assert found.advice[0] == (
        "the same global batch: gradient accumulation x 16/15; it must be a multiple of 15 now; "
        "then the learning rate stays"
    )
    assert "x 0.938: learning rate x 0.968 for Adam, x 0.938 for SGD" in found.advice[1]


def test_half_the_ranks_accumulate_twice():
    found = fit(Shape(world=64), nodes=4, gpus_per_node=8)

    assert found.advice[0].startswith("the same global batch: gradient accumulation x 2;")


def test_experts_must_divide_the_data_parallel_ranks():
    found = fit(Shape(tensor=8, expert=4, world=128), nodes=15, gpus_per_node=8)

    assert (found.nodes, found.data) == (12, 12)


def test_a_replica_larger_than_what_is_left_does_not_fit():
    found = fit(Shape(tensor=8, pipeline=4, world=64), nodes=3, gpus_per_node=8)

    assert found.problem == "one replica needs 32 GPUs; there are 24"
    assert found.advice == ()


def test_zero_state_of_deepspeed_wants_the_ranks_that_saved_it():
    found = fit(Shape(world=64), nodes=7, gpus_per_node=8, framework="deepspeed")

    assert found.problem.startswith("64 data-parallel ranks saved it, 56 would load it: ZeRO")


FITS = fit(read_shape(MEGATRON), nodes=62, gpus_per_node=8)
FITS_NOT = fit(read_shape(MEGATRON), nodes=3, gpus_per_node=8)


@pytest.mark.parametrize(
    ("found", "policy", "level"),
    [
        (FITS, Fewer.GO, Level.WARN),
        (FITS, Fewer.REFUSE, Level.FAIL),
        (FITS, Fewer.ANYHOW, Level.WARN),
        (FITS_NOT, Fewer.GO, Level.FAIL),
        (FITS_NOT, Fewer.REFUSE, Level.FAIL),
        (FITS_NOT, Fewer.ANYHOW, Level.WARN),
    ],
)
def test_the_policy_of_the_runbook_decides(found, policy, level):
    assert judge_fewer(found, given=62, policy=policy).level is level


def test_the_words_tell_nodes_ranks_and_advice():
    finding = judge_fewer(FITS, given=62, policy=Fewer.GO)

    assert finding.finding == (
        "62 nodes where 64 saved the checkpoint, 60 of them used: "
        "15 data-parallel ranks instead of 16"
    )
    assert "gradient accumulation" in finding.remedy
