"""The loop: steps in order, each carried out, ruled on, and recorded before the next begins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from recovery.engine.attempt import Attempts
from recovery.engine.blast import Blast
from recovery.engine.conclude import saved_values
from recovery.engine.ending import RunEnd, end_of
from recovery.engine.gate import Decision, Ruling, decide
from recovery.engine.history import DONE, FAILED, NOT_RUN, RUNNING, SKIPPED, StepStory
from recovery.engine.lease import Lease
from recovery.engine.parts import Parts
from recovery.engine.transporting import Transports
from recovery.engine.world import Recorder, StepWorld
from recovery.errors import InterruptedRunError, TemplateError
from recovery.inventory import fold
from recovery.model.events import (
    GateDecided,
    Interrupted,
    Quarantined,
    RunFinished,
    Saved,
    StepFinished,
)
from recovery.model.node import CONTROLLER, Node
from recovery.model.result import NodeResult, StepResult
from recovery.model.runbook import Effect, OnFail, Plan, Rerun, Step
from recovery.model.verdict import Verdict, failed, single, unknown
from recovery.plan import evaluate, render_step


@dataclass(slots=True, kw_only=True)
class Run:
    """Carries a plan out. ``probe`` runs only steps that read; nothing else is pretended."""

    plan: Plan
    run_id: str
    recorder: Recorder
    transports: Transports
    started_at: float  # monotonic
    probe: bool = False
    shut_by: Ruling | None = field(default=None, init=False)
    shut_step: str = field(default="", init=False)
    ends_at: float = field(default=0.0, init=False)  # monotonic
    lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        self.ends_at = self.started_at + self.plan.limits.run_s
        self.lease = Lease(self.recorder, self.transports, self.plan.limits.nodes_at_once)

    @property
    def parts(self) -> Parts:
        """The ports."""
        return self.recorder.parts

    @property
    def blast(self) -> Blast:
        """What holds the run to its limits."""
        return Blast(self.plan.limits, self.recorder)

    def carry_out(self) -> RunEnd:
        """Runs all steps that are still to do, then `finally`, and says how the run ended."""
        stopped = self._until_stopped(self.plan.steps)
        shut = (self.shut_by, self.shut_step)
        self.transports.reopen()
        self.ends_at = math.inf  # what cleans up and tells people has its own limits
        # A `finally` step that fails is recorded; the run's end is not its to say.
        for step in self.plan.finally_:
            stopped = self._until_stopped((step,)) or stopped
        self.lease.give_back()
        end = end_of(*shut, stopped, self.run_id, self.recorder.story)
        self.recorder.tell(
            RunFinished(
                at=self.recorder.now,
                outcome=end.outcome,
                exit_code=end.exit_code,
                reason=end.reason,
                next_command=end.next_command,
            )
        )
        return end

    def _until_stopped(self, steps: tuple[Step, ...]) -> str:
        """Runs steps until a gate shuts; returns the signal that stopped it, if any."""
        try:
            self._steps(steps)
        except InterruptedRunError:
            signal = self._interrupted()
            self.parts.heeded()
            return signal
        return ""

    def _steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self._check_stop()
            if not self._stands(step) and not self._step(step) and not self.probe:
                return

    def _check_stop(self) -> None:
        why = self.parts.stopping()
        if self.parts.clock.monotonic() > self.ends_at and not why:
            why = "the run's time limit"
        if why:
            raise InterruptedRunError(f"stopped ({why})", remedy="`recover resume` goes on")

    def _interrupted(self) -> str:
        current = self.recorder.story.current
        signal = self.parts.stopping() or "time"
        self.recorder.tell(
            Interrupted(
                at=self.recorder.now,
                step=current.id if current else "",
                signal=signal,
                unfinished=tuple(current.waiting) if current else (),
            )
        )
        return signal

    def _stands(self, step: Step) -> bool:
        """Claims that an earlier sitting finished this step and its evidence has not expired."""
        story = self.recorder.story.steps.get(step.id)
        if story is None or story.outcome not in (DONE, SKIPPED):
            return False
        if any(step.id == last.id for last in self.plan.finally_):
            return step.rerun is Rerun.NEVER or self._came_last(story)
        if step.good_for_s is None or story.finished_at is None:
            return True
        return self.recorder.now - story.finished_at <= step.good_for_s

    def _came_last(self, story: StepStory) -> bool:
        """Claims that no step was carried out since this one of `finally`: it is up to date."""
        steps = self.recorder.story.steps
        known = [steps[one.id] for one in self.plan.steps if one.id in steps]
        return all(one.touched < story.touched for one in known)

    def _variables(self, nodes: tuple[Node, ...]) -> dict[str, Any]:
        story = self.recorder.story
        names = [n.name for n in nodes]
        run = {"nodes": names, "run": self.run_id, "cluster": self.plan.cluster, "fold": fold}
        return {**run, **self.plan.variables, **story.saved}

    def _nodes(self, step: Step) -> tuple[Node, ...]:
        verb = self.parts.verbs[step.verb]
        if not verb.on_nodes:
            return (CONTROLLER,)
        out = self.recorder.story.quarantined
        found = tuple(self.parts.nodes[n] for n in step.nodes if n not in out)
        return found[:1] if step.head_only else found

    def _step(self, step: Step) -> bool:
        """Carries one step out; returns whether the run may go on."""
        nodes = self._nodes(step)
        targets = nodes if nodes != (CONTROLLER,) else self._still_in()
        variables = {**self._variables(targets), **step.variables}
        try:
            if step.when and not evaluate(step.when, variables):
                return self._finish(step, SKIPPED, None)
            if self.probe and (step.effect is not Effect.READ or self._misses(step)):
                return self._finish(step, NOT_RUN, None)
            rendered, params = render_step(step, self.parts.verbs[step.verb], variables)
        except TemplateError as error:
            return self._shut(step, single(failed(error.message, remedy=error.remedy)))
        refusal = (
            self._refused_again(rendered)
            or self.lease.refusal(rendered, nodes)
            or self.blast.refusal(rendered, nodes)
        )
        if refusal:
            return self._shut(step, refusal)
        attempts = self._attempts(rendered, params, variables)
        result = (
            attempts.carry_out(nodes, self._before(rendered)) if nodes else StepResult(nodes={})
        )
        result = self._mended(rendered, result, attempts)
        if any(r.verdict.level.blocks for r in result.nodes.values()):
            self._check_stop()  # what the operator cut off is not for the gate to judge
        return self._rule(rendered, result, variables)

    def _still_in(self) -> tuple[Node, ...]:
        out = self.recorder.story.quarantined
        return tuple(self.parts.nodes[n] for n in self.plan.nodes if n not in out)

    def _misses(self, step: Step) -> bool:
        return any(name not in self.recorder.story.saved for name in step.late)

    def _refused_again(self, step: Step) -> Verdict | None:
        """Why a step that an earlier sitting left in the middle may not simply run again."""
        story = self.recorder.story.steps.get(step.id)
        left_over = story is not None and bool(story.uncertain)
        verb = self.parts.verbs[step.verb]
        if not left_over or step.effect is Effect.READ or not verb.on_nodes:
            return None
        if step.rerun is Rerun.SAFE:
            return None
        question = f"{step.id} was left in the middle; run it again?"
        if step.rerun is Rerun.ASK:
            answer, by = self.recorder.ask(step.id, question, step.timeout_s)
            if answer:
                return None
            question = f"{question} no ({by})" if answer is False else f"{question} nobody answered"
        return single(
            unknown(
                question,
                remedy=f"look whether it did its work; then `recover resume {self.run_id} "
                f"--approve {step.id}` runs it again",
                code="step.rerun",
            )
        )

    def _before(self, step: Step) -> Mapping[str, NodeResult]:
        """Results of an earlier sitting that still stand: nodes that passed in this step."""
        story = self.recorder.story.steps.get(step.id)
        if story is None or story.outcome not in (RUNNING, FAILED):
            return {}
        fresh = self.recorder.now - (step.good_for_s if step.good_for_s is not None else 1e12)
        return {
            name: result
            for name, result in story.results.items()
            if not result.verdict.level.blocks and story.finished_nodes[name] >= fresh
        }

    def _attempts(self, step: Step, params: Any, variables: Mapping[str, Any]) -> Attempts:
        width = step.at_once or self.plan.limits.nodes_at_once

        def world(attempt: int, limit_s: float) -> StepWorld:
            return StepWorld(
                run_id=self.run_id,
                cluster=self.plan.cluster,
                seed=self.plan.seed,
                step=step,
                variables=variables,
                recorder=self.recorder,
                transports=self.transports,
                width=width,
                ends_at=min(self.parts.clock.monotonic() + limit_s, self.ends_at),
                attempt=attempt,
                holds=partial(self.blast.spent, step),
                aside=partial(self._set_aside, step),
            )

        return Attempts(
            step=replace(step, at_once=width),
            verb=self.parts.verbs[step.verb],
            params=params,
            world=world,
            variables=variables,
            clock=self.parts.clock,
        )

    def _mended(self, step: Step, result: StepResult, attempts: Attempts) -> StepResult:
        """Runs `on_fail` steps on the nodes that failed, then asks those nodes once more."""
        bad = tuple(n for n, r in result.nodes.items() if r.verdict.level.blocks)
        if not bad or not step.on_fail_steps:
            return result
        shut = self.shut_by, self.shut_step
        for repair in step.on_fail_steps:
            if not self._step(replace(repair, nodes=bad)):
                # The step itself is ruled on next: a repair that failed does not end the run.
                self.shut_by, self.shut_step = shut
                if step.effect is not Effect.READ:
                    return result
                break  # it may have mended some of them
        out = self.recorder.story.quarantined
        again = attempts.carry_out(tuple(self.parts.nodes[n] for n in bad if n not in out), {})
        return replace(result, nodes={**result.nodes, **again.nodes})

    def _rule(self, step: Step, result: StepResult, variables: Mapping[str, Any]) -> bool:
        ruling = decide(
            step.gate,
            result.nodes,
            on_fail=step.on_fail,
            step=result.verdict,
            empty_ok=step.empty_ok,
        )
        if ruling.opens:
            try:
                self._save(step, variables, result)
            except TemplateError as error:
                return self._shut(step, single(failed(error.message, remedy=error.remedy)))
        self._gate(step, ruling)
        if ruling.decision is Decision.OPEN_WITHOUT:
            self._leave_out(step, ruling, result)
        outcome = DONE if ruling.opens else FAILED
        return self._finish(step, outcome, result.verdict, result.values)

    def _save(self, step: Step, variables: Mapping[str, Any], result: StepResult) -> None:
        for name, value in saved_values(step, variables, result).items():
            self.recorder.tell(Saved(at=self.recorder.now, step=step.id, name=name, value=value))

    def _gate(self, step: Step, ruling: Ruling) -> None:
        if not ruling.opens and self.shut_by is None:
            self.shut_by, self.shut_step = ruling, step.id
        self.recorder.tell(
            GateDecided(
                at=self.recorder.now,
                step=step.id,
                decision=ruling.decision.value,
                passed=ruling.passed,
                needed=ruling.needed,
                total=ruling.total,
                without=ruling.failed,
                undecided=len(ruling.silent),
                reason=ruling.reason,
            )
        )

    def _leave_out(self, step: Step, ruling: Ruling, result: StepResult) -> None:
        by_words: dict[tuple[str, str], list[str]] = {}
        for name in ruling.failed:
            worst = result.nodes[name].verdict.worst
            by_words.setdefault((worst.finding, worst.remedy), []).append(name)
        for (reason, remedy), names in by_words.items():
            if step.on_fail is OnFail.QUARANTINE:
                self._set_aside(step, tuple(names), reason, remedy)
            else:
                self._quarantined(step, tuple(names), reason, remedy)

    def _set_aside(self, step: Step, names: tuple[str, ...], reason: str, remedy: str) -> str:
        """Where others see it, too; returns what the scheduler said."""
        said = self.blast.drain(step, names, reason)
        self._quarantined(step, names, f"{reason} ({said})" if said else reason, remedy)
        return said

    def _quarantined(self, step: Step, names: tuple[str, ...], reason: str, remedy: str) -> None:
        self.recorder.tell(
            Quarantined(
                at=self.recorder.now, step=step.id, nodes=names, reason=reason, remedy=remedy
            )
        )

    def _shut(self, step: Step, verdict: Verdict) -> bool:
        self._gate(step, decide(step.gate, {}, step=verdict))
        return self._finish(step, FAILED, verdict)

    def _finish(
        self,
        step: Step,
        outcome: str,
        verdict: Verdict | None,
        values: Mapping[str, Any] | None = None,
    ) -> bool:
        self.recorder.tell(
            StepFinished(
                at=self.recorder.now,
                step=step.id,
                outcome=outcome,
                verdict=verdict,
                values=values or {},
            )
        )
        return outcome != FAILED
