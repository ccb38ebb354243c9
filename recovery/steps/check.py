"""`check`: put questions to every node in one round trip; each exact command runs once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from recovery.engine.bundle import bundle, bundle_limit_s, unbundle
from recovery.engine.comparing import VARIABLE, compared, read_share
from recovery.engine.judging import Judged, judge_one
from recovery.engine.outcome import ending_finding
from recovery.model.check import Check, CheckEffect
from recovery.model.kind import Kept, NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output, Printed
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, Verdict, passed, single, unknown
from recovery.registry import pick

AnyCheck = Check[Any, Any]
STDERR = "stderr of: "  # the name of evidence that is a command's standard error
_NOT_FOUND = (126, 127)  # the shell's own statuses for a command that is not there


class CheckParams(BaseModel):
    """Names of checks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: tuple[str, ...]

    @field_validator("argument", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


def _run(params: CheckParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    checks = tuple(world.check(name) for name in params.argument)
    parsed: dict[str, dict[str, Any]] = {c.name: {} for c in checks}

    def on(node: Node) -> NodeResult:
        return _ask_node(checks, node, world, parsed)

    results = world.fan_out(nodes, on)
    share = read_share(world.variables.get(VARIABLE))
    by_name = {node.name: node for node in nodes}
    for check in checks:
        for name, more in compared(check, parsed[check.name], by_name, share).items():
            results[name] = _with(results[name], check.name, more)
    return StepResult(nodes=results)


def _ask_node(
    checks: tuple[AnyCheck, ...],
    node: Node,
    world: World,
    parsed: Mapping[str, dict[str, Any]],
) -> NodeResult:
    raw = world.profile(node)
    left_out = not_applicable(raw)
    aside = [_not_applicable(c) for c in checks if c.name in left_out]
    asked = _by_command(c for c in checks if c.name not in left_out)
    if not asked:
        return _node_result(node, aside, [], Output(Ending.FINISHED), {})
    limits = {line: max(c.timeout_s for c in readers) for line, readers in asked.items()}
    whole = world.run(node, _command(limits, node, world))
    outputs = unbundle(whole, limits, seed=_seed(node, world))
    judged = [_judge(c, outputs[line], raw) for line, readers in asked.items() for c in readers]
    judged = _beside(judged, {c.name: c for c in checks})
    for one in judged:
        if one.parsed is not None:
            parsed[one.check][node.name] = one.parsed
    kept = [k for line, output in outputs.items() for k in _kept(line, output, world)]
    statuses = {line: output.exit_status for line, output in outputs.items()}
    return _node_result(node, [*judged, *aside], kept, whole, statuses)


def _beside(judged: list[Judged], checks: Mapping[str, AnyCheck]) -> list[Judged]:
    """Each verdict with what the other answers of the node add to it."""
    read = {one.check: one.parsed for one in judged if one.parsed is not None}
    return [
        replace(one, verdict=look(one.parsed, one.verdict, read))
        if one.parsed is not None and (look := checks[one.check].beside)
        else one
        for one in judged
    ]


def not_applicable(raw: Mapping[str, Any]) -> frozenset[str]:
    """Names of checks that profile or inventory leave out for a node: a list, or with commas."""
    value = raw.get("not_applicable") or ()
    names = value.split(",") if isinstance(value, str) else value
    return frozenset(str(name).strip() for name in names)


def _not_applicable(check: AnyCheck) -> Judged:
    words = "not applicable here, says the profile or the inventory"
    return Judged(check.name, single(passed(words, code="not-applicable")))


def _seed(node: Node, world: World) -> str:
    return f"{world.run_id} {world.step.id} {node.name}"


def _command(limits: Mapping[str, float], node: Node, world: World) -> Command:
    """All lines in one round trip; the step's own limit comes over theirs."""
    return Command(
        bundle(limits, seed=_seed(node, world)),
        timeout_s=bundle_limit_s(limits),
        env=world.step.env,
        sudo=world.step.sudo,
    )


def _kept(line: str, output: Output, world: World) -> list[Kept]:
    """Both streams under names that `recover rejudge` finds again."""
    kept = [world.keep(line, output.stdout)] if output.stdout else []
    return kept + ([world.keep(f"{STDERR}{line}", output.stderr)] if output.stderr else [])


def _by_command(checks: Iterable[AnyCheck]) -> dict[str, list[AnyCheck]]:
    found: dict[str, list[AnyCheck]] = {}
    for check in checks:
        found.setdefault(check.command, []).append(check)
    return found


def _judge(check: AnyCheck, output: Output, raw: Mapping[str, Any]) -> Judged:
    by_ending = ending_finding(output)
    if by_ending:
        return Judged(check.name, single(by_ending))
    if output.exit_status in _NOT_FOUND:
        finding = unknown(
            f"the tool is not on this node: {output.error_text.strip()[:120]}",
            remedy=f"install {check.needs or 'the tool named'}",
            code="node.tool-missing",
        )
        return Judged(check.name, single(finding))
    printed = Printed(output.text, output.error_text, output.exit_status, check.command)
    return judge_one(check, printed, raw)


def _node_result(
    node: Node,
    judged: list[Judged],
    kept: list[Kept],
    whole: Output,
    statuses: Mapping[str, int | None],
) -> NodeResult:
    findings = [
        replace(f, finding=f"{one.check}: {f.finding}")
        for one in judged
        for f in one.verdict.findings
    ]
    levels = {one.check: one.verdict.level.word for one in judged}
    return NodeResult(
        node=node.name,
        verdict=Verdict(tuple(sorted(_once(findings), key=lambda f: -f.level))),
        ending=whole.ending,
        exit_status=None,
        trouble=whole.trouble,
        kept=tuple(kept),
        values={
            "checks": levels,
            "facts": {one.check: _small(one.facts) for one in judged},
            "statuses": dict(statuses),
        },
        duration_s=whole.duration_s,
    )


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """A node that cannot be reached says so once, not once a check."""
    seen: dict[str, Finding] = {}
    for finding in findings:
        key = finding.code if finding.code.startswith("node.") else finding.finding
        seen.setdefault(key, finding)
    return list(seen.values())


def _small(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Scalars only: what is bigger stays in the evidence, so that 10,000 nodes fit in a journal."""
    return {k: v for k, v in facts.items() if isinstance(v, str | int | float | bool)}


def _with(result: NodeResult, check: str, found: Iterable[Finding]) -> NodeResult:
    more = [replace(f, finding=f"{check}: {f.finding}") for f in found]
    merged = sorted((*result.verdict.findings, *more), key=lambda f: -f.level)
    return replace(result, verdict=Verdict(tuple(merged)))


def _commands(params: CheckParams) -> tuple[str, ...]:
    checks = (pick("recovery.checks", Check, name) for name in params.argument)
    return tuple(_by_command(checks))


def _effect(params: CheckParams) -> Effect:
    """A probe must not load GPUs below a running job, nor leave a file behind."""
    checks = (pick("recovery.checks", Check, name) for name in params.argument)
    reads = all(check.effect is CheckEffect.READ for check in checks)
    return Effect.READ if reads else Effect.WRITE


CHECK = Verb(
    name="check",
    about="put questions to every node and judge the answers",
    effect=Effect.WRITE,
    effect_of=_effect,
    params=CheckParams,
    describe=lambda p: f"check {', '.join(p.argument)}",
    commands=_commands,
    run=_run,
)
