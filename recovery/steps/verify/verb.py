"""The verb: follow the logs, judge each node by its own log, the step by the best evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from recovery.continuity import Continuity, Options, Strength, compare, curves
from recovery.engine.outcome import node_result
from recovery.errors import InputError
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, Level, Verdict, failed, single, unknown
from recovery.plan import seconds
from recovery.reading.training_lines import by_regex
from recovery.reading.training_points import FORMATS, Points
from recovery.steps.verify.diverged import left_alone, stop_job
from recovery.steps.verify.endings import ending, silence
from recovery.steps.verify.follow import Follow, Patience, follow_line, watch
from recovery.steps.verify.frozen import Before, frozen_logs

_ITERATIONS = {"resume": 24, "replay": 48}
_RANK = {Strength.NONE: 0, Strength.WEAK: 1, Strength.MODERATE: 2, Strength.STRONG: 3}


class VerifyParams(BaseModel):
    """How many new iterations to see, how often to look, how long silence may last.

    `replay` judges a job that was started from an older checkpoint only to be compared: there,
    too few iterations logged twice hold the gate. ``step`` is the checkpoint that was loaded (by
    default what `checkpoint` chose), ``regex`` describes a log line by named groups, ``same_data``
    is false where the data loader never goes on where it was. ``on_divergence: stop`` stops a job
    of this run that is not the training of before; both logs are kept either way.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: Literal["resume", "replay"] = "resume"
    iterations: int | None = Field(default=None, ge=1)
    every: str = "2s"
    stall: str = "5m"
    log: str = ""
    step: int | None = None
    format: str = "auto"
    regex: str = ""
    same_data: bool = True
    on_divergence: Literal["keep", "stop"] = "keep"

    @field_validator("format")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in FORMATS:
            raise ValueError(f"{value!r} is none of {', '.join(FORMATS)}")
        return value

    @field_validator("every", "stall")
    @classmethod
    def _duration(cls, value: str) -> str:
        seconds(value)
        return value

    @field_validator("regex")
    @classmethod
    def _groups(cls, value: str) -> str:
        try:
            by_regex(value or "(?P<step>)(?P<loss>)")
        except InputError as error:
            raise ValueError(f"{error.message}; {error.remedy}") from error
        return value

    @property
    def wanted(self) -> int:
        """How many new iterations to wait for."""
        return self.iterations or _ITERATIONS[self.argument]


@dataclass(slots=True)
class _Judging:
    """What all nodes are judged by, and what was concluded so far."""

    params: VerifyParams
    before: Before
    step: int | None
    found: dict[str, tuple[Continuity, Points | None, str]] = field(default_factory=dict)

    def compare(self, follow: Follow) -> Continuity:
        """Against the node's own log; against the longest of another where that says more."""
        name, options = follow.node.name, Options(same_data=self.params.same_data)
        own = self.before.points(name) or follow.earlier
        first = compare(own, follow.points, checkpoint_step=self.step, options=options)
        self.found[name] = (first, own, name if own else "")
        if first.verified or first.verdict.level is Level.FAIL:
            return first
        other = self.before.longest(name)
        old = self.before.points(other) if other else None
        if other is None or old is None:
            return first
        second = compare(old, follow.points, checkpoint_step=self.step, options=options)
        if (_RANK[second.strength], second.overlap) > (_RANK[first.strength], first.overlap):
            self.found[name] = (second, old, other)
        return self.found[name][0]


def _run(params: VerifyParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    judging = _Judging(
        params, frozen_logs(world, fmt=params.format, regex=params.regex), _step(params, world)
    )
    follows = {
        node.name: Follow(node, log, judging.before.raw(node.name), judging.step)
        for node in nodes
        if (log := _log(params, node, world))
    }
    patience = Patience(
        wanted=params.wanted, every_s=seconds(params.every), stall_s=seconds(params.stall)
    )
    if follows:
        watch(tuple(follows.values()), world, patience, judging.before.read)
    advancing = any(follow.n_new for follow in follows.values())

    def on(node: Node) -> NodeResult:
        follow = follows.get(node.name)
        if follow is None:
            return node_result(node.name, Output(Ending.FINISHED), [_no_log()])
        return _judge(judging, follow, world, others=advancing)

    results = world.fan_out(nodes, on)
    return _whole(judging, results, follows, world)


def _no_log() -> Finding:
    return unknown(
        "no training log is named for this node",
        remedy="name it in the inventory: `train_log: PATH`, or in the step: `log: PATH`",
        code="verify.no-log",
    )


def _log(params: VerifyParams, node: Node, world: World) -> str:
    variables = {**world.variables, **node.variables}
    found = params.log or variables.get("train_log") or world.values("launch").get("log")
    return str(found or "")


def _step(params: VerifyParams, world: World) -> int | None:
    chosen = world.values("checkpoint").get("last_complete")
    found = params.step if params.step is not None else chosen
    return int(found) if found is not None else None


def _judge(judging: _Judging, follow: Follow, world: World, *, others: bool) -> NodeResult:
    name = follow.node.name
    kept = [world.keep("train-after.log", follow.new)] if follow.new else []
    if not follow.n_new:
        logged_before = judging.before.points(name) is not None
        finding = silence(follow, logged_before=logged_before, others=others)
        return node_result(name, follow.output, [finding], kept=kept, values={"new": 0})
    found = judging.compare(follow)
    strong = found.verified and found.strength is Strength.STRONG
    findings = [
        *found.verdict.findings,
        *ending(follow, wanted=judging.params.wanted, strong=strong),
        *_replay(judging.params, found),
    ]
    values = {
        "new": follow.n_new,
        "strength": found.strength.value,
        "overlap": found.overlap,
        "last_iteration": found.last_iteration,
        "compared_with": judging.found[name][2],
    }
    return node_result(name, follow.output, findings, kept=kept, values=values)


def _replay(params: VerifyParams, found: Continuity) -> Iterator[Finding]:
    """A replay has no other purpose than to be compared."""
    if params.argument == "replay" and found.strength in (Strength.WEAK, Strength.NONE):
        yield unknown(
            f"the replay was not compared: {found.overlap} iterations are in both logs",
            remedy="start it from an older checkpoint, one that the log from before reaches past",
            code="verify.not-verified",
        )


def _whole(
    judging: _Judging,
    results: dict[str, NodeResult],
    follows: dict[str, Follow],
    world: World,
) -> StepResult:
    """The step's own verdict is that of the node whose logs say most."""
    if not judging.found:
        nothing = failed(
            "no node logged a new iteration",
            remedy="look at the findings of the nodes and at the end of the job's log",
            code="verify.no-progress",
        )
        return StepResult(nodes=results, verdict=single(nothing))
    best = max(judging.found, key=lambda name: _evidence(judging.found[name][0]))
    found, old, source = judging.found[best]
    new = follows[best].points
    values: dict[str, Any] = {
        "strength": found.strength.value,
        "verified": found.verified,
        "overlap": found.overlap,
        "diagnosis": found.diagnosis,
        "first_iteration": found.first_iteration,
        "last_iteration": found.last_iteration,
        "statistics": dict(found.statistics),
        "node": best,
        "compared_with": source,
        "curves": curves(old.all if old else (), new.starts[-1] if new else ()),
    }
    verdict = found.verdict
    if verdict.level is Level.FAIL:
        nodes = tuple(follow.node for follow in follows.values())
        first, *others = verdict.findings
        verdict = Verdict((first, _diverged(judging, nodes, world), *others))
    return StepResult(nodes=results, values=values, verdict=verdict)


def _diverged(judging: _Judging, nodes: tuple[Node, ...], world: World) -> Finding:
    if judging.params.on_divergence == "stop":
        return stop_job(world, nodes, judging.step)
    return left_alone(world, judging.step)


def _evidence(found: Continuity) -> tuple[int, int, int]:
    return _RANK[found.strength], found.overlap, int(found.verdict.level)


VERIFY = Verb(
    name="verify",
    about="prove that the training really resumed",
    effect=Effect.DISRUPTIVE,
    effect_of=lambda p: Effect.READ if p.on_divergence == "keep" else Effect.DISRUPTIVE,
    disrupts=False,
    params=VerifyParams,
    describe=lambda p: (
        f"compare {p.wanted} new iterations with the log from before"
        + (", stop the job if it diverged" if p.on_divergence == "stop" else "")
    ),
    commands=lambda p: (
        follow_line(p.log or "TRAIN_LOG"),
        "sh -s -- status JOB",
        *(("sh -s -- stop JOB",) if p.on_divergence == "stop" else ()),
    ),
    run=_run,
    together=True,
    timeout_s=1200.0,
)
