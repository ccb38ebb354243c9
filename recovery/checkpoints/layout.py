"""Does a checkpoint's parallel layout fit the GPUs that are left, and what to change with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from recovery.checkpoints.inspection import number
from recovery.model.verdict import Finding, failed, warned

# Loaders that refuse, or misread, another number of data-parallel ranks than the save had.
_SAME_RANKS = {
    "deepspeed": "ZeRO's optimizer state wants as many; `ds_to_universal.py` converts it",
    "megatron-local": "local checkpoints belong to their ranks; use the global one",
}


class Fewer(StrEnum):
    """What the runbook wants when there are fewer GPUs than the checkpoint was saved by.

    `GO` starts where the layout fits, `ANYHOW` also where it does not: the line then names
    another layout.
    """

    REFUSE = "refuse"
    GO = "go"
    ANYHOW = "anyhow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a model was spread over GPUs. ``world`` is the number of ranks, 0 where unknown.

    ``expert`` divides the data-parallel ranks; it takes no GPUs of its own.
    """

    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    world: int = 0

    @property
    def replica(self) -> int:
        """GPUs that hold the model once."""
        return self.tensor * self.pipeline * self.context

    @property
    def data(self) -> int:
        """Data-parallel ranks; 0 where unknown."""
        return self.world // self.replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The layout on what is left. ``problem`` says why it does not fit; nothing when it does.

    ``nodes`` is how many nodes it can use, ``before`` how many it had, ``data`` the data-parallel
    ranks now.
    """

    shape: Shape
    nodes: int
    before: int
    data: int
    problem: str = ""
    advice: tuple[str, ...] = ()


def read_shape(facts: Mapping[str, Any]) -> Shape | None:
    """The shape that a checkpoint's facts tell; None when they tell nothing of the world's size."""
    model = _whole(facts, "mp_world_size")
    tensor = _whole(facts, "tensor_model_parallel_size") or model or 1
    pipeline = _whole(facts, "pipeline_model_parallel_size") or 1
    context = _whole(facts, "context_parallel_size") or 1
    replica = tensor * pipeline * context
    data = _whole(facts, "data_parallel_size") or _whole(facts, "dp_world_size")
    world = _whole(facts, "world_size") or data * replica
    if not world or world % replica:
        return None
    return Shape(
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=_whole(facts, "expert_model_parallel_size") or 1,
        world=world,
    )


def _whole(facts: Mapping[str, Any], name: str) -> int:
    value = number(facts.get(name))
    return int(value) if value is not None and value >= 1 else 0


def fit(shape: Shape, *, nodes: int, gpus_per_node: int, framework: str = "") -> Fit:
    """How the layout fits ``nodes`` x ``gpus_per_node`` GPUs, with advice where it shrinks.

    As many nodes are used as hold whole replicas and let the expert-parallel groups divide the
    data-parallel ranks; the others stay idle.
    """
    usable = next((n for n in range(nodes, 0, -1) if _divides(shape, n * gpus_per_node)), 0)
    data = usable * gpus_per_node // shape.replica
    problem = _problem(shape, data, nodes * gpus_per_node, framework)
    return Fit(
        shape=shape,
        nodes=usable,
        before=math.ceil(shape.world / gpus_per_node),
        data=data,
        problem=problem,
        advice=() if problem or data == shape.data else _advice(shape, data),
    )


def _divides(shape: Shape, gpus: int) -> bool:
    return gpus % shape.replica == 0 and (gpus // shape.replica) % shape.expert == 0


def _problem(shape: Shape, data: int, gpus: int, framework: str) -> str:
    if not data:
        experts = f", in multiples of {shape.expert} for the experts" if shape.expert > 1 else ""
        return f"one replica needs {shape.replica} GPUs{experts}; there are {gpus}"
    if data != shape.data and framework in _SAME_RANKS:
        ranks = f"{shape.data} data-parallel ranks saved it, {data} would load it"
        return f"{ranks}: {_SAME_RANKS[framework]}"
    return ""


def _advice(shape: Shape, data: int) -> tuple[str, ...]:
    """What keeps the training what it was, and what to do where that cannot be.

    Source: linear rule: Goyal et al., arXiv:1706.02677; square root for Adam: Malladi et al.,
    arXiv:2205.10782.
    """
    was = shape.data
    factor = math.gcd(was, data)
    up, down = was // factor, data // factor
    keep = (
        f"the same global batch: gradient accumulation x {up}"
        if down == 1
        else f"the same global batch: gradient accumulation x {up}/{down}; it must be a multiple "
        f"of {down} now"
    )
    ratio = data / was
    return (
        f"{keep}; then the learning rate stays",
        f"else the global batch is x {ratio:.3g}: learning rate x {math.sqrt(ratio):.3g} for "
        f"Adam, x {ratio:.3g} for SGD, and count warm-up and decay in samples",
        "the data order changes with the ranks: the loss is comparable, not equal",
    )


def judge_fewer(found: Fit, *, given: int, policy: Fewer) -> Finding:
    """Whether to run on fewer nodes, and what to change then.

    ``given`` is how many nodes there are.
    """
    words = f"{given} nodes where {found.before} saved the checkpoint"
    if found.problem and policy is not Fewer.ANYHOW:
        return failed(
            f"the layout does not fit {words}: {found.problem}",
            remedy="bring nodes back; or name another layout in the line, with `fewer: anyhow`",
            code="launch.layout",
        )
    if policy is Fewer.REFUSE:
        return failed(
            f"{words}; the runbook says `fewer: refuse`",
            remedy="bring nodes back, or say `fewer: go`: "
            f"{found.data} data-parallel ranks instead of {found.shape.data} would fit",
            code="launch.fewer-nodes",
        )
    if found.problem:
        return warned(words, remedy=f"watch its start: {found.problem}", code="launch.layout")
    ranks = f"{found.data} data-parallel ranks instead of {found.shape.data}"
    used = f", {found.nodes} of them used" if found.nodes < given else ""
    advice = "; ".join(found.advice)
    return warned(f"{words}{used}: {ranks}", remedy=advice, code="launch.fewer-nodes")
