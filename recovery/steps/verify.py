"""`verify`: did the training really go on, by its log from before the outage and since."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from recovery.engine.outcome import ending_finding, node_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, failed, passed, unknown, warned
from recovery.plan import seconds

_PAIR = re.compile(r"\b(step|iteration|loss|lr|learning_rate|grad_norm)\s*[=:]\s*([-+.\w]+)")
_TAIL_BYTES = 8 * 1024 * 1024
_SAME = 2e-4  # relative: equal numbers in equal text formats print alike


class VerifyParams(BaseModel):
    """How many new iterations to see, how often to look, how long silence may last."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: Literal["resume"] = "resume"
    iterations: int = 24
    every: str = "2s"
    stall: str = "5m"
    log: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One iteration as a log line gives it."""

    iteration: int
    loss: float
    lr: float | None = None


def read_points(text: str) -> list[Point]:
    """All iterations in order; a line without iteration and loss is none."""
    found = []
    for line in text.splitlines():
        pairs = dict(_PAIR.findall(line))
        step = pairs.get("step") or pairs.get("iteration", "")
        if step.isdigit() and "loss" in pairs:
            lr = pairs.get("lr") or pairs.get("learning_rate")
            found.append(Point(int(step), _number(pairs["loss"]), _number(lr) if lr else None))
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _run(params: VerifyParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    before = _before(world)
    results = world.fan_out(nodes, lambda node: _verify(params, node, before, world))
    curves: Mapping[str, Any] = next(
        (r.values["curves"] for r in results.values() if "curves" in r.values), {}
    )
    return StepResult(nodes=results, values={"curves": curves})


def _before(world: World) -> str:
    """A log frozen from before; every rank logs the same iterations."""
    for result in world.results("freeze").values():
        for kept in result.kept:
            if kept.name == "train.log":
                return world.kept(kept.digest).decode("utf-8", "backslashreplace")
    return ""


def _verify(params: VerifyParams, node: Node, before: str, world: World) -> NodeResult:
    log = params.log or str({**world.variables, **node.variables}.get("train_log", ""))
    step = int(world.values("checkpoint").get("last_complete") or 0)
    old, ends_at = read_points(before), world.clock.monotonic() + world.step.timeout_s
    output, new = _look(log, node, step, world)
    newest, seen_at = len(new), world.clock.monotonic()
    while len(new) < params.iterations and not ending_finding(output):
        now = world.clock.monotonic()
        if now - seen_at > seconds(params.stall) or now + seconds(params.every) > ends_at:
            break
        world.clock.sleep(seconds(params.every))
        output, new = _look(log, node, step, world)
        if len(new) > newest:
            newest, seen_at = len(new), world.clock.monotonic()
    kept = [world.keep("train-after.log", output.stdout)] if output.stdout else []
    finding = ending_finding(output) or compare(old, new, step, wanted=params.iterations)
    values = {"curves": {"loss": {"before": _drawn(old), "after": _drawn(new)}}}
    return node_result(node.name, output, [finding], kept=kept, values=values)


def _look(log: str, node: Node, step: int, world: World) -> tuple[Output, list[Point]]:
    line = f"tail -c {_TAIL_BYTES} -- {quote(log)}"
    output = world.run(node, Command(line, timeout_s=30.0))
    return output, since_resume(read_points(output.text), step)


def since_resume(points: Sequence[Point], step: int) -> list[Point]:
    """What was logged after the last time the iterations went back to the checkpoint."""
    start = 0
    for n in range(1, len(points)):
        if points[n].iteration <= points[n - 1].iteration and points[n].iteration <= step + 2:
            start = n
    return list(points[start:]) if start or (points and points[0].iteration > step) else []


def compare(old: Sequence[Point], new: Sequence[Point], step: int, *, wanted: int) -> Finding:
    """The verdict on the new iterations: step, NaN, learning rate, loss against the old ones."""
    if not new:
        return failed(
            "no new iteration was logged",
            remedy="read the end of the job's log; is the job alive?",
            code="verify.no-progress",
        )
    if not step - 1 < new[0].iteration <= step + 2:
        return failed(
            f"it began at iteration {new[0].iteration}, the checkpoint is {step}",
            remedy="stop the job; was the resume argument given?",
            code="verify.step",
        )
    bad = next((p for p in new if p.loss != p.loss or abs(p.loss) == float("inf")), None)
    if bad:
        return failed(
            f"the loss is {bad.loss} at iteration {bad.iteration}",
            remedy="stop the job and resume from the checkpoint before this one",
            code="verify.nan",
        )
    return _paired({p.iteration: p for p in old}, new, wanted)


def _paired(old: Mapping[int, Point], new: Sequence[Point], wanted: int) -> Finding:
    pairs = [(old[p.iteration], p) for p in new if p.iteration in old]
    for before, after in pairs:
        if before.lr is not None and after.lr is not None and _differ(before.lr, after.lr):
            return failed(
                f"the learning rate at {after.iteration} is {after.lr}, it was {before.lr}",
                remedy="stop the job: the scheduler was not restored",
                code="verify.lr",
            )
        if _differ(before.loss, after.loss, 0.05):
            return failed(
                f"the loss at {after.iteration} is {after.loss}, it was {before.loss}",
                remedy="stop the job and compare both logs; resume from the checkpoint before",
                code="verify.loss",
            )
    words = f"iterations {new[0].iteration} to {new[-1].iteration}, {len(pairs)} compared"
    if len(new) < wanted:
        return unknown(f"too few: {words}", remedy="look whether it goes on; then resume this run")
    if len(pairs) < 8:
        return warned(
            f"not verified: {words}", remedy="compare the loss by eye for some more iterations"
        )
    return passed(f"resumed: {words}")


def _differ(one: float, other: float, share: float = _SAME) -> bool:
    return abs(one - other) > share * max(abs(one), abs(other), 1e-12)


def _drawn(points: Sequence[Point]) -> list[list[float]]:
    every = max(1, len(points) // 400)
    return [[p.iteration, p.loss] for p in points[::every]]


VERIFY = Verb(
    name="verify",
    about="prove that the training really resumed",
    effect=Effect.READ,
    params=VerifyParams,
    describe=lambda p: f"compare {p.iterations} new iterations with the log from before",
    run=_run,
    together=True,
    timeout_s=1200.0,
)
