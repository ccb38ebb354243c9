"""The gate: does the run go on. It fails closed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from recovery.model.result import NodeResult
from recovery.model.runbook import Gate, GateKind, OnFail
from recovery.model.verdict import Level, Verdict


class Decision(StrEnum):
    """What a gate says."""

    OPEN = "open"
    OPEN_WITHOUT = "open-without"
    SHUT = "shut"
    UNDECIDED = "undecided"  # shut, and only because too few answered


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision with its counts: ``failed`` did not pass, ``silent`` of them gave no answer."""

    decision: Decision
    passed: int
    needed: int
    total: int
    failed: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    reason: str = ""

    @property
    def opens(self) -> bool:
        """Claims that the run may go on."""
        return self.decision in (Decision.OPEN, Decision.OPEN_WITHOUT)


def needed(gate: Gate, total: int) -> int:
    """How many of ``total`` nodes must pass; at least one, percent rounded up."""
    counts = {
        GateKind.ALL: total,
        GateKind.ANY: 1,
        GateKind.COUNT: gate.number,
        GateKind.PERCENT: math.ceil(total * gate.number / 100),
        GateKind.ALL_BUT: total - gate.number,
    }
    return max(1, counts[gate.kind])


def decide(
    gate: Gate,
    results: Mapping[str, NodeResult | None],
    *,
    on_fail: OnFail = OnFail.ABORT,
    step: Verdict | None = None,
    empty_ok: bool = False,
) -> Ruling:
    """Rules on the nodes fixed when the step started; None is a node that never answered.

    ``step`` is what the step says as a whole: when it blocks, the gate is shut whatever the
    nodes say.
    """
    if not results:
        return _empty(step, empty_ok=empty_ok)
    failed = tuple(n for n, r in results.items() if r is None or r.verdict.level.blocks)
    silent = tuple(n for n in failed if _is_silent(results[n]))
    total, passed, need = len(results), len(results) - len(failed), needed(gate, len(results))
    decision, reason = _weigh(passed, need, len(silent), step)
    if decision is Decision.OPEN and failed and on_fail is not OnFail.CONTINUE:
        decision = Decision.OPEN_WITHOUT
    return Ruling(decision, passed, need, total, failed, silent, reason)


def _weigh(passed: int, need: int, silent: int, step: Verdict | None) -> tuple[Decision, str]:
    if step is not None and step.level.blocks:
        shut = Decision.UNDECIDED if step.level is Level.UNKNOWN else Decision.SHUT
        return shut, step.worst.finding
    if passed >= need:
        return Decision.OPEN, ""
    if passed + silent >= need:
        return Decision.UNDECIDED, f"{silent} gave no answer that can be judged"
    return Decision.SHUT, f"{passed} passed, {need} needed"


def _empty(step: Verdict | None, *, empty_ok: bool) -> Ruling:
    if step is not None and step.level.blocks:
        decision, reason = _weigh(0, 1, 0, step)
        return Ruling(decision, 0, 1, 0, reason=reason)
    if empty_ok:
        return Ruling(Decision.OPEN, 0, 0, 0)
    return Ruling(Decision.SHUT, 0, 1, 0, reason="no node is left for this step")


def _is_silent(result: NodeResult | None) -> bool:
    return result is None or result.verdict.level is Level.UNKNOWN
