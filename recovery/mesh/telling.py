"""The votes in words: "failed with node003; passed with node042"; and each round in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recovery.mesh.words import Level, Outcome, Result, State
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


_TOLD = 12  # a round of more failures is told by their number


def told_round(state: State) -> str:
    """The newest round: who failed with whom, and whether those passed elsewhere."""
    played = state.history[-1]
    results = [r for r in played.results if not r.group.witness]
    passed = [r for r in results if r.outcome is Outcome.PASS]
    parts = [f"{len(passed)} of {len(results)} tests passed"]
    cleared = {name for p in state.history for r in p.results for name in _cleared_by(r)}
    told = [_sentence(state, r, cleared) for r in results if r.outcome is not Outcome.PASS]
    told += [
        f"{r.group.subject} passed with {_others(r, r.group.subject)}"
        for r in passed
        if r.group.level is Level.SUSPECTS
    ]
    parts += told[:_TOLD]
    if len(told) > _TOLD:
        parts.append(f"and {len(told) - _TOLD} more")
    beside = [r for r in played.results if r.group.witness]
    if beside:
        fine = sum(1 for r in beside if r.outcome is Outcome.PASS)
        parts.append(f"beside them {fine} of {len(beside)} pairs of good nodes passed")
    return f"round {played.round.number} ({played.round.stage}): {'; '.join(parts)}"


def _cleared_by(result: Result) -> tuple[str, ...]:
    counts = result.outcome is Outcome.PASS and len(result.group.nodes) > 1
    return result.group.nodes if counts else ()


def _sentence(state: State, result: Result, cleared: set[str]) -> str:
    group = result.group
    rail = "" if group.rail is None else f" on rail {group.rail}"
    if result.outcome is Outcome.NOT_RUN:
        return f"{'+'.join(group.nodes)}{rail} gave no answer ({result.finding})"
    if len(group.nodes) > 4:
        return f"{group.collective or 'the collective'} over {len(group.nodes)} nodes failed"
    if len(group.nodes) == 1:
        return f"{group.nodes[0]} failed by itself"
    name = group.subject or group.nodes[0]
    if not group.subject:
        return f"{name} failed with {_others(result, name)}{rail}"
    met = dict.fromkeys(_partners_failed(state, name, group.rail))
    elsewhere = [other for other in met if other in cleared]
    more = f", {_listed(elsewhere)} passed elsewhere" if elsewhere else ""
    return f"{name} failed with {_listed(list(met))}{rail}{more}"


def _partners_failed(state: State, name: str, rail: int | None) -> Iterable[str]:
    """With whom a node failed so far, first met first."""
    for played in state.history:
        for result in played.results:
            group = result.group
            together = name in group.nodes and len(group.nodes) == 2 and group.rail == rail
            if together and result.outcome.failed and not group.witness:
                yield _others(result, name)


def _others(result: Result, name: str) -> str:
    return "+".join(other for other in result.group.nodes if other != name)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "nobody"
