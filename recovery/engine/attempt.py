"""One step's attempts: batches, retries with back-off, results journaled as they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recovery.engine.conclude import agree, conclude
from recovery.engine.fanout import fan_out
from recovery.engine.gate import needed
from recovery.engine.outcome import silent_result
from recovery.engine.retry import delay_s, may_retry
from recovery.engine.world import StepWorld
from recovery.model.events import StepStarted
from recovery.model.kind import Verb
from recovery.model.node import Node
from recovery.model.ports import Clock
from recovery.model.result import NodeResult, StepResult
from recovery.model.runbook import Step
from recovery.model.verdict import Verdict

GRACE_S = 15.0  # what the controller allows beyond a step's own limit, for logs to arrive


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Carries one rendered step out on its nodes."""

    step: Step
    verb: Verb[Any]
    params: Any
    world: Callable[[int, float], StepWorld]  # (attempt, ends_at) -> world
    variables: Mapping[str, Any]
    clock: Clock

    def carry_out(self, nodes: tuple[Node, ...], before: Mapping[str, NodeResult]) -> StepResult:
        """Runs all batches; ``before`` are results of an earlier sitting that still stand."""
        kept = {} if self.verb.together else before
        result = StepResult(nodes={n.name: kept[n.name] for n in nodes if n.name in kept})
        waves = self._waves(tuple(n for n in nodes if n.name not in kept))
        for wave in waves:
            mine = self._retried(wave)
            result = _merged(result, mine)
            if len(waves) > 1 and not self._goes_on(mine, result, len(nodes)):
                break
        left = {n.name: _not_asked(n) for n in nodes if n.name not in result.nodes}
        full = replace(result, nodes={**result.nodes, **left})
        agreed = agree(self.step, self.variables, full)
        world = self.world(1, 0.0)
        for name, one in agreed.nodes.items():
            if one != result.nodes.get(name):
                world.tell(one)
        return agreed

    def _waves(self, nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
        """The step's batches, each cut as its verb wants."""
        cut = batches(nodes, self.step.batch)
        return [wave for one in cut for wave in self.verb.waves(self.params, one) if wave]

    def _goes_on(self, batch: StepResult, so_far: StepResult, total: int) -> bool:
        """The next batch starts only if somebody passed and the gate can still be met."""
        failures = sum(r.verdict.level.blocks for r in so_far.nodes.values())
        alive = any(not r.verdict.level.blocks for r in batch.nodes.values())
        sound = batch.verdict is None or not batch.verdict.level.blocks
        return alive and sound and total - failures >= needed(self.step.gate, total)

    def _retried(self, nodes: tuple[Node, ...]) -> StepResult:
        result = StepResult(nodes={})
        todo, attempt = nodes, 1
        while todo:
            result = _merged(result, self._once(todo, attempt))
            again = tuple(n for n in todo if may_retry(self.step, result.nodes[n.name], attempt))
            todo = todo if again and self.verb.together else again
            if todo:
                seed = f"{self.step.id}:{todo[0].name}"
                self.clock.sleep(delay_s(self.step.retry, attempt, seed))
            attempt += 1
        return result

    def _once(self, nodes: tuple[Node, ...], attempt: int) -> StepResult:
        waves = math.ceil(len(nodes) / max(1, self.step.at_once or len(nodes)))
        world = self.world(attempt, waves * self.step.timeout_s + GRACE_S)
        world.conclude = lambda r: conclude(self.step, self.variables, r)
        names = tuple(n.name for n in nodes)
        now = world.recorder.now
        world.recorder.tell(
            StepStarted(
                at=now,
                step=self.step.id,
                verb=self.verb.name,
                attempt=attempt,
                nodes=names,
                deadline_s=waves * self.step.timeout_s,
            )
        )
        result = _complete(self._guarded(nodes, world), names, world)
        for one in result.nodes.values():
            world.tell(one)
        return result

    def _guarded(self, nodes: tuple[Node, ...], world: StepWorld) -> StepResult:
        """Runs the verb inside the fan-out's boundary, so that a defect in it is a finding."""

        def broken(nodes: tuple[Node, ...], trace: str) -> StepResult:
            return StepResult(nodes={n.name: world.broken(n, trace) for n in nodes})

        (result,) = fan_out(
            [nodes],
            lambda all_nodes: self.verb.run(self.params, all_nodes, world),
            width=1,
            broken=broken,
            done=lambda item, found: None,
        )
        return result


def _not_asked(node: Node) -> NodeResult:
    return silent_result(
        node.name,
        "not asked: the batch before it failed",
        remedy="mend the nodes of that batch, then resume",
    )


def _complete(found: StepResult, names: tuple[str, ...], world: StepWorld) -> StepResult:
    """Exactly one concluded result for every node asked; a node left out is unknown."""
    nodes: dict[str, NodeResult] = {}
    for name in names:
        result = found.nodes.get(name)
        if result is None:
            result = silent_result(
                name,
                "the step said nothing about this node",
                remedy="report this as a defect of recover",
            )
        nodes[name] = result if world.told.get(name) == result else world.conclude(result)
    return replace(found, nodes=nodes)


def _merged(one: StepResult, other: StepResult) -> StepResult:
    verdicts = [v for v in (one.verdict, other.verdict) if v]
    findings = sorted((f for v in verdicts for f in v.findings), key=lambda f: -f.level)
    return StepResult(
        nodes={**one.nodes, **other.nodes},
        values={**one.values, **other.values},
        verdict=Verdict(tuple(findings)) if findings else None,
    )


def batches(nodes: tuple[Node, ...], words: tuple[str, ...]) -> tuple[tuple[Node, ...], ...]:
    """Nodes cut by words like ``1``, ``10%``, ``100%``; each names the total reached so far.

    The last batch holds all that is left, whatever the words say.
    """
    if not words:
        return (nodes,) if nodes else ()
    cut, start = [], 0
    for word in words:
        share = word.removesuffix("%")
        end = math.ceil(len(nodes) * float(share) / 100) if word.endswith("%") else int(share)
        end = min(len(nodes), max(start, end))
        if end > start:
            cut.append(nodes[start:end])
            start = end
    if start < len(nodes):
        cut.append(nodes[start:])
    return tuple(cut)
