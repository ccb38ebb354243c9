"""The votes in words: "round 2: failed with node003; passed with node042"."""

from __future__ import annotations

from collections.abc import Sequence

from recovery.mesh.words import Outcome, Result
from recovery.reading.nccl_size import rate_word


def against(name: str, votes: Sequence[Result]) -> str:
    """What the tests of this node said, failures first."""
    ran = [result for result in votes if result.outcome is not Outcome.NOT_RUN]
    failed = [result for result in ran if result.outcome.failed]
    passed = [result for result in ran if not result.outcome.failed]
    parts = []
    if failed:
        parts.append(f"failed with {_partners(name, failed)}")
    if passed:
        parts.append(f"passed with {_partners(name, passed)}")
    return "; ".join(parts) or "no test of it ran"


def told_alone(votes: Sequence[Result]) -> str:
    """What the tests of one node by itself said."""
    failed = [result for result in votes if result.outcome.failed]
    worst = next((r for r in failed if r.outcome is Outcome.WRONG), failed[0] if failed else None)
    words = worst.finding if worst else "passed"
    return f"alone, {len(failed)} of {len(votes)} tests failed: {words}"


def _partners(name: str, results: Sequence[Result]) -> str:
    return ", ".join(_with(name, result) for result in results)


def _with(name: str, result: Result) -> str:
    others = "+".join(other for other in result.group.nodes if other != name)
    if result.busbw_gb_per_s is not None:
        return f"{others} ({rate_word(result.busbw_gb_per_s)})"
    return f"{others} ({result.finding})" if result.finding and result.outcome.failed else others
