"""When to try again, and how long to wait first."""

from __future__ import annotations

import hashlib

from recovery.model.output import Ending
from recovery.model.result import NodeResult
from recovery.model.runbook import Effect, Rerun, Retry, RetryOn, Step


def delay_s(retry: Retry, attempt: int, seed: str) -> float:
    """Seconds to wait after ``attempt`` (from 1): doubling from..cap, half of it jitter by seed."""
    full = min(retry.cap_s, retry.from_s * 2.0 ** (attempt - 1))
    fraction = int.from_bytes(hashlib.sha256(f"{seed}:{attempt}".encode()).digest()[:4]) / 2**32
    return full * (0.5 + fraction / 2)


def class_of(result: NodeResult) -> RetryOn | None:
    """The retry class of a result that did not pass; None for one that did."""
    if not result.verdict.level.blocks:
        return None
    if result.trouble == "busy":
        return RetryOn.BUSY
    by_ending = {
        Ending.LOST: RetryOn.LOST,
        Ending.NEVER_STARTED: RetryOn.LOST,
        Ending.TIMEOUT: RetryOn.TIMEOUT,
    }
    if result.ending in by_ending:
        return by_ending[result.ending]
    return RetryOn.RC if result.exit_status else RetryOn.EXPECT


def may_retry(step: Step, result: NodeResult, attempt: int) -> bool:
    """Claims that this node's attempt may be repeated without risk and by the runbook's words.

    A command that was lost or cut off may have done its work: it is repeated only when the step
    reads or says ``rerun: safe``. What cannot change by itself is not asked again.
    """
    kind = class_of(result)
    if kind is None or attempt >= step.retry.times or kind not in step.retry.on:
        return False
    if result.trouble in ("auth", "hostkey", "sudo", "unkillable", "unsure"):
        return False
    uncertain = result.ending in (Ending.LOST, Ending.TIMEOUT)
    return not uncertain or step.effect is Effect.READ or step.rerun is Rerun.SAFE
