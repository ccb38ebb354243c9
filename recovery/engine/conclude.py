"""What a runbook asks of results: `parse` and `expect` on a node, `agree` across nodes, `save`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recovery.errors import ParseError, TemplateError
from recovery.model.output import Ending
from recovery.model.result import NodeResult, StepResult
from recovery.model.runbook import Step
from recovery.model.verdict import Finding, Level, Verdict, failed, unknown
from recovery.plan import evaluate, parse_output


def conclude(step: Step, variables: Mapping[str, Any], result: NodeResult) -> NodeResult:
    """The result with what `parse` read and what `expect` found wrong.

    Nothing is asked of a node that never answered; a failed command stays failed.
    """
    if result.ending is not Ending.FINISHED or not (step.parse or step.expect):
        return result
    try:
        parsed = (
            parse_output(step.parse, str(result.values.get("stdout", ""))) if step.parse else {}
        )
    except ParseError as error:
        return _with(result, unknown(error.message, remedy=error.remedy, code="step.parse"))
    values = {**result.values, **parsed}
    findings = [f for e in step.expect if (f := _unmet(e, {**variables, **values}))]
    return _with(replace(result, values=values), *findings)


def _unmet(expression: str, values: Mapping[str, Any]) -> Finding | None:
    try:
        if evaluate(expression, values):
            return None
    except TemplateError as error:
        return unknown(f"cannot say {expression!r}: {error.message}", remedy=error.remedy)
    return failed(
        f"not as expected: {expression}",
        remedy="read this node's output in the report",
        code="step.expect",
    )


def _with(result: NodeResult, *findings: Finding) -> NodeResult:
    if not findings:
        return result
    kept = tuple(f for f in result.verdict.findings if f.level is not Level.PASS)
    merged = sorted((*kept, *findings), key=lambda f: -f.level)
    return replace(result, verdict=Verdict(tuple(merged)))


def agree(step: Step, variables: Mapping[str, Any], result: StepResult) -> StepResult:
    """Holds passing nodes to one value; those that differ from the majority fail.

    Without a value that more than half of them share, all are unknown: nobody can say who is right.
    """
    passing = {n: r for n, r in result.nodes.items() if not r.verdict.level.blocks}
    if not step.agree or not passing:
        return result
    told: dict[str, str] = {}
    changed = dict(result.nodes)
    for name, one in passing.items():
        try:
            told[name] = json.dumps(evaluate(step.agree, {**variables, **one.values}), default=str)
        except TemplateError as error:
            changed[name] = _with(one, unknown(error.message, remedy=error.remedy))
    return replace(result, nodes={**changed, **_outliers(step.agree, told, passing)})


def _outliers(
    expression: str, told: Mapping[str, str], results: Mapping[str, NodeResult]
) -> dict[str, NodeResult]:
    if not told:
        return {}
    (value, count), *_ = Counter(told.values()).most_common(1)
    if 2 * count <= len(told) and len(told) > 1 and count != len(told):
        finding = unknown(
            f"no majority agrees on {expression}",
            remedy="compare the values of the nodes in the report; set `expect` to the right one",
            code="step.agree",
        )
        return {n: _with(results[n], finding) for n in told}
    return {
        name: _with(
            results[name],
            failed(
                f"{expression} is {own}, {count} of {len(told)} nodes have {value}",
                remedy="bring this node to the value of the others",
                code="step.agree",
            ),
        )
        for name, own in told.items()
        if own != value
    }


def saved_values(step: Step, variables: Mapping[str, Any], result: StepResult) -> dict[str, Any]:
    """What `save` names: from the step's values, and from the node's own when there is just one.

    Raises:
        TemplateError: an expression names a value that the step did not give.
    """
    own = dict(next(iter(result.nodes.values())).values) if len(result.nodes) == 1 else {}
    by_node = {name: dict(r.values) for name, r in result.nodes.items()}
    seen = {**variables, **own, **result.values, "by_node": by_node}
    return {name: evaluate(expression, seen) for name, expression in step.save.items()}
