"""The plan in words: what `recover plan` prints, and how long each step can take at worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from recovery.model.runbook import Effect, GateKind, OnFail, Plan, Retry, RetryOn, Step
from recovery.plan.grammar import batch_sizes, show_duration, show_gate

GRACE_S = 5.0  # what a controller waits longer than the node's own limit
Fold = Callable[[Iterable[str]], str]


def worst_case_s(step: Step, *, nodes_at_once: int = 256) -> float:
    """The longest that a step can take: all attempts, back-offs, waves and batches, repairs."""
    width = step.at_once or nodes_at_once
    total = min(1, len(step.nodes)) if step.head_only else len(step.nodes)
    sizes = batch_sizes(step.batch, total) or (total,)
    waves = max(1, step.n_waves)
    attempt = [
        waves * (max(1, math.ceil(size / waves / width)) * step.timeout_s + GRACE_S)
        for size in sizes
    ]
    tried = sum(one * step.retry.times + _back_offs(step.retry) for one in attempt)
    repairs = sum(worst_case_s(one, nodes_at_once=nodes_at_once) for one in step.on_fail_steps)
    again = max(attempt, default=0.0) if step.on_fail_steps else 0.0
    return tried + repairs + again


def _back_offs(retry: Retry) -> float:
    waits, wait = 0.0, retry.from_s
    for _ in range(min(retry.times - 1, 1000)):
        waits += min(wait, retry.cap_s)
        wait = min(wait * 2, retry.cap_s)
    return waits


def worst_case_of(plan: Plan) -> float:
    """The longest that all steps of a plan can take."""
    width = plan.limits.nodes_at_once
    return sum(worst_case_s(one, nodes_at_once=width) for one in (*plan.steps, *plan.finally_))


def outline(plan: Plan, fold: Fold) -> str:
    """What `recover plan` prints: each step with its nodes, commands and limits."""
    return "\n".join(_lines(plan, _remembering(fold))) + "\n"


def _remembering(fold: Fold) -> Fold:
    """Folding 10,000 names takes a while, and most steps have the same nodes."""
    known: dict[tuple[str, ...], str] = {}

    def folded(nodes: Iterable[str]) -> str:
        names = tuple(nodes)
        if names not in known:
            known[names] = fold(names)
        return known[names]

    return folded


def _lines(plan: Plan, fold: Fold) -> Iterator[str]:
    yield f"{plan.runbook} on {plan.cluster}: {_counted(plan.nodes, fold)}"
    if plan.about:
        yield f"  {plan.about}"
    yield f"  plan {plan.digest[:12]}, seed {plan.seed}; offline: nothing was touched"
    yield ""
    for i, step in enumerate(plan.steps, 1):
        yield from _step(step, f"{i:>2}", plan, fold)
    if plan.finally_:
        yield "finally, however the run ends:"
    for i, step in enumerate(plan.finally_, 1):
        yield from _step(step, f"{i:>2}", plan, fold)
    yield ""
    yield from _end(plan)


def _end(plan: Plan) -> Iterator[str]:
    worst = worst_case_of(plan)
    limit = plan.limits.run_s
    yield f"at worst {show_duration(worst)}; the run stops after {show_duration(limit)}"
    every = _with_repairs((*plan.steps, *plan.finally_))
    disruptive = [step.id for step in every if step.effect is Effect.DISRUPTIVE]
    if disruptive:
        yield f"disruptive: {', '.join(disruptive)}"
    if plan.secrets:
        yield f"secrets, read when the run starts: {', '.join(plan.secrets)}"


def _with_repairs(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _with_repairs(step.on_fail_steps)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:157]}..."


def _counted(nodes: tuple[str, ...], fold: Fold) -> str:
    many = f"{len(nodes)} node{'s' * (len(nodes) != 1)}"
    return f"{many} {fold(nodes)}" if nodes else "no nodes"


def _step(step: Step, number: str, plan: Plan, fold: Fold) -> Iterator[str]:
    pad = " " * (len(number) + 2)
    where = f"the first still in of {fold(step.nodes)}" if step.head_only else None
    yield f"{number}. {step.id}  [{step.effect}]  {where or _counted(step.nodes, fold)}"
    yield f"{pad}{_one_line(step.describe)}"
    if step.when:
        yield f"{pad}only when {step.when}"
    for command in step.commands:
        first, *more = command.splitlines() or [""]
        yield f"{pad}$ {first}"
        yield from (f"{pad}  {line}" for line in more)
    yield f"{pad}{'; '.join(_limits(step, plan))}"
    yield from (f"{pad}{line}" for line in _details(step))
    if step.on_fail_steps:
        yield f"{pad}where it fails, these, then once more:"
    for i, repair in enumerate(step.on_fail_steps, 1):
        yield from _step(repair, f"{pad}{i}", plan, fold)


def _details(step: Step) -> Iterator[str]:
    if asked := (*step.expect, *([f"the same {step.agree}"] if step.agree else ())):
        yield f"expects {'; '.join(asked)}"
    if step.env:
        yield f"environment: {', '.join(step.env)}"
    if step.save:
        yield f"saves {', '.join(step.save)}"
    if step.late:
        yield f"known later: {', '.join(step.late)}"


def _limits(step: Step, plan: Plan) -> Iterator[str]:
    yield f"limit {show_duration(step.timeout_s)}"
    if step.retry.times > 1:
        classes = ", ".join(word.value for word in RetryOn if word in step.retry.on)
        yield f"{step.retry.times} attempts on {classes}"
    if step.batch:
        yield f"batches {', '.join(step.batch)}"
    if step.at_once:
        yield f"{step.at_once} at once"
    yield f"gate {show_gate(step.gate)}{_of(step)}"
    if step.on_fail is not OnFail.ABORT:
        yield f"a node that fails: {step.on_fail}"
    if step.good_for_s is not None:
        yield f"good for {show_duration(step.good_for_s)}"
    if step.sudo:
        yield "as root"
    yield f"at worst {show_duration(worst_case_s(step, nodes_at_once=plan.limits.nodes_at_once))}"


def _of(step: Step) -> str:
    return f" of {len(step.nodes)}" if step.gate.kind is GateKind.COUNT else ""
