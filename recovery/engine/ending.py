"""How a run ended: the exit status and the next command to type."""

from __future__ import annotations

from dataclasses import dataclass

from recovery.engine.gate import Decision, Ruling
from recovery.engine.history import NOT_RUN, RunStory


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end in words. Exit codes: 0 done, 1 a gate shut, 3 undecided, 130/143 interrupted."""

    outcome: str
    exit_code: int
    reason: str
    next_command: str = ""


def end_of(
    shut: Ruling | None, shut_step: str, stopped: str, run_id: str, story: RunStory
) -> RunEnd:
    """Concludes a run from the gate that shut, if any, and the signal that stopped it, if any."""
    resume = f"recover resume {run_id}"
    if stopped:
        code = {"SIGINT": 130, "SIGTERM": 143}.get(stopped, 1)
        reason = f"interrupted ({stopped})" if code != 1 else "the run's time limit was reached"
        return RunEnd("interrupted", code, reason, resume)
    if shut is None:
        left = [s.id for s in story.steps.values() if s.outcome == NOT_RUN]
        reason = f"{len(left)} steps not run: this was a probe" if left else "all steps done"
        return RunEnd("done", 0, reason)
    question = story.asked.get(shut_step)
    if question is not None and shut.decision is Decision.UNDECIDED:
        resume = f"{resume} --approve {question.id}"
    reason = f"the gate of {shut_step} is shut: {shut.reason}"
    if shut.decision is Decision.UNDECIDED:
        return RunEnd("undecided", 3, reason, resume)
    return RunEnd("shut", 1, reason, resume)
