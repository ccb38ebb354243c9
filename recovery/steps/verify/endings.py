"""What it means how the following of a node's log ended."""

from __future__ import annotations

from collections.abc import Iterator

from recovery.engine.outcome import ending_finding
from recovery.model.verdict import Finding, failed, passed, unknown, warned
from recovery.steps.verify.follow import End, Follow

_TRIAGE = "read the end of the log: `recover triage LOG`; the run kept it as train-after.log"
_HUNG = "is a rank hung? look at the processes and at the NCCL lines of all ranks, then stop it"


def silence(follow: Follow, *, logged_before: bool, others: bool) -> Finding:
    """The finding on a node without one new iteration in its log."""
    by_ending = ending_finding(follow.output)
    if by_ending is not None and follow.end not in (End.ENDED, End.LOST, End.STOPPED):
        return by_ending
    if others and follow.end is End.ENDED and follow.job.get("rc") == "0":
        return warned(
            f"{_how_it_ended(follow)} without a training line of its own; others log the training",
            remedy="did the others end as well? if they go on, this node is not part of them",
            code="verify.silent",
        )
    if follow.end in (End.ENDED, End.LOST, End.STOPPED):
        return failed(
            f"{_how_it_ended(follow)} without one iteration{_last_words(follow)}",
            remedy="was the checkpoint found, and is it not past the last iteration? " + _TRIAGE,
            code="verify.ended",
        )
    if others and logged_before:
        return warned(
            "no training line here since the relaunch, though there were before; others log it",
            remedy="did the rank that logs move to another node? else look at this node's job",
            code="verify.silent",
        )
    if others:
        alive = "its job runs" if follow.job.get("state") == "running" else "the job advances"
        return passed(f"no training line of its own; {alive}, and no iteration ends without it")
    missing = follow.output.error_text.strip()[:120] or "no new line"
    return failed(
        f"stalled: no iteration since the relaunch ({missing}{_last_words(follow)})",
        remedy=_HUNG,
        code="verify.stalled",
    )


def ending(follow: Follow, *, wanted: int, strong: bool) -> Iterator[Finding]:
    """Findings on how the following ended, where there were new iterations."""
    match follow.end:
        case End.ENOUGH | End.OPEN | End.SILENT:
            return
        case End.STALLED:
            yield failed(
                f"stalled: no line after iteration {follow.last}",
                remedy=_HUNG,
                code="verify.stalled",
            )
        case End.TIME:
            yield from _out_of_time(follow, wanted, strong=strong)
        case End.ENDED if follow.job.get("rc") == "0":
            yield _finished(follow)
        case End.ENDED | End.LOST | End.STOPPED:
            yield failed(
                f"{_how_it_ended(follow)} after iteration {follow.last}{_last_words(follow)}",
                remedy=_TRIAGE,
                code="verify.ended",
            )


def _out_of_time(follow: Follow, wanted: int, *, strong: bool) -> Iterator[Finding]:
    by_ending = ending_finding(follow.output)
    if by_ending is not None:
        yield by_ending
    elif not strong:
        yield unknown(
            f"only {follow.n_new} of {wanted} iterations within the step's time",
            remedy="look whether it goes on, then `recover resume`; or raise `timeout`",
            code="verify.too-few",
        )


def _finished(follow: Follow) -> Finding:
    if follow.says_done:
        return passed(f"the training reached its end at iteration {follow.last}")
    return warned(
        f"the job ended with status 0 after iteration {follow.last}",
        remedy="was that its last iteration? its log does not say so",
        code="verify.ended",
    )


def _how_it_ended(follow: Follow) -> str:
    match follow.end:
        case End.ENDED:
            return f"the job ended with status {follow.job.get('rc', 'unknown')}"
        case End.STOPPED:
            return "the job was stopped"
        case _:
            return f"the job is gone ({follow.job.get('reason', 'no reason known')})"


def _last_words(follow: Follow) -> str:
    return f": {follow.last_words!r}" if follow.last_words else ""
