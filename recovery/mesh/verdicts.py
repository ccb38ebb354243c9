"""What the mesh concludes: about each node, and about leaves, pairs and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recovery.mesh.ballots import (
    LEAST_FAILURES,
    Ballot,
    Key,
    Standing,
    alone_ballots,
    alone_standings,
    pair_ballots,
    standings,
)
from recovery.mesh.leaves import LeafFinding, bad_leaves, failed_across
from recovery.mesh.rails import bad_rails, open_rails
from recovery.mesh.telling import against, told_alone
from recovery.mesh.whole import SizeFault, size_faults
from recovery.mesh.words import Level, Outcome, Result, State
from recovery.reading.nccl_size import rate_word


class Kind(StrEnum):
    """What a node turned out to be."""

    HEALTHY = "healthy"
    BAD_NODE = "bad-node"
    BAD_RAIL = "bad-rail"
    BEHIND_BAD_LEAF = "behind-bad-leaf"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """One node: what it is, why in words, its votes, and what to do. ``code`` for `explain`."""

    node: str
    kind: Kind
    finding: str
    remedy: str = ""
    code: str = ""
    rails: tuple[int, ...] = ()
    votes: tuple[Result, ...] = ()
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class PairFault:
    """Two nodes that fail only with each other, in ``result``; each is good with others."""

    nodes: tuple[str, str]
    result: Result


@dataclass(frozen=True, slots=True)
class MeshVerdict:
    """Everything the mesh concludes, nodes in the order of the members."""

    nodes: tuple[NodeVerdict, ...]
    leaves: tuple[LeafFinding, ...] = ()
    pairs: tuple[PairFault, ...] = ()
    sizes: tuple[SizeFault, ...] = ()


def verdicts(state: State) -> MeshVerdict:
    """What all tests so far say."""
    return MeshVerdict(
        node_verdicts(state), bad_leaves(state), pair_faults(state), size_faults(state)
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """The folds that every node's verdict looks at."""

    state: State
    alone: Mapping[Key, Ballot]
    pairs: Mapping[Key, Ballot]
    alone_where: Mapping[str, Standing]
    where: Mapping[str, Standing]
    rails: Mapping[str, tuple[int, ...]]
    late: Mapping[str, tuple[Result, ...]] = field(default_factory=dict)
    bad_leaves: frozenset[str] = frozenset()
    open_rails: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def node_verdicts(state: State) -> tuple[NodeVerdict, ...]:
    """A verdict for every member."""
    seen = _Seen(
        state,
        alone_ballots(state),
        pair_ballots(state),
        alone_standings(state),
        standings(state),
        bad_rails(state),
        dict(failed_across(state)),
        frozenset(leaf for found in bad_leaves(state) for leaf in found.leaves),
        open_rails(state),
    )
    return tuple(_verdict(seen, member.name, member.leaf) for member in state.members)


def _verdict(seen: _Seen, name: str, leaf: str) -> NodeVerdict:
    if seen.alone_where[name] is not Standing.GOOD:
        return _alone(seen, name)
    if Level.PAIRS not in seen.state.options.levels:
        return _healthy(seen, name)
    return _with_others(seen, name, leaf)


def _with_others(seen: _Seen, name: str, leaf: str) -> NodeVerdict:
    """A node that is well by itself: what its tests with others say."""
    where = seen.where[name]
    if where is Standing.CONVICTED:
        return _convicted(seen, name)
    if rails := seen.rails.get(name, ()):
        return _bad_rail(seen, name, rails)
    if name in seen.late:
        return _bad_node(name, seen.late[name], seen.late[name])
    if where is Standing.GOOD and name in seen.open_rails:
        return _undecided_rails(seen, name, seen.open_rails[name])
    if where is Standing.GOOD:
        return _behind(name, leaf) if leaf in seen.bad_leaves else _healthy(seen, name)
    return _undecided(seen, name, where)


def _alone(seen: _Seen, name: str) -> NodeVerdict:
    ballot = seen.alone.get((name, None)) or Ballot()
    if ballot.blocked is not None or not ballot.votes:
        return _not_run(name, ballot)
    votes = tuple(ballot.results)
    worst = ballot.wrong or next((r for r in votes if r.outcome.failed), votes[0])
    if seen.alone_where[name] is Standing.CONVICTED:
        return NodeVerdict(
            node=name,
            kind=Kind.BAD_NODE,
            finding=told_alone(votes),
            remedy=worst.remedy or f"test it by hand: `recover` step `mesh` on {name} alone",
            code=worst.code or "mesh.alone",
            votes=votes,
            wrong=ballot.wrong is not None,
        )
    return NodeVerdict(
        node=name,
        kind=Kind.UNKNOWN,
        finding=f"undecided: {told_alone(votes)}",
        remedy="run the mesh again on this node; an intermittent fault is still a fault",
        code="mesh.tie",
        votes=votes,
    )


def _convicted(seen: _Seen, name: str) -> NodeVerdict:
    rails = seen.rails.get(name, ())
    ballot = seen.pairs[name, None]
    if 0 < len(rails) <= seen.state.options.n_rails // 2:
        return _bad_rail(seen, name, rails)
    failed = tuple(r for r in ballot.results if r.outcome.failed)
    return _bad_node(name, failed, tuple(ballot.results))


def _bad_node(name: str, failed: tuple[Result, ...], votes: tuple[Result, ...]) -> NodeVerdict:
    wrong = next((r for r in failed if r.outcome is Outcome.WRONG), None)
    worst = wrong or failed[0]
    return NodeVerdict(
        node=name,
        kind=Kind.BAD_NODE,
        finding=against(name, votes),
        remedy=worst.remedy
        or "take it out; look at its NICs (`recover check ib.state`) and at `mesh` with rails",
        code=worst.code if wrong else "mesh.bad-node",
        votes=votes,
        wrong=wrong is not None,
    )


def _bad_rail(seen: _Seen, name: str, rails: tuple[int, ...]) -> NodeVerdict:
    votes = tuple(r for rail in rails for r in seen.pairs[name, rail].results)
    which = ", ".join(map(str, rails))
    return NodeVerdict(
        node=name,
        kind=Kind.BAD_RAIL,
        finding=f"rail {which} is bad, the other rails pass: {against(name, votes)}",
        remedy=f"look at NIC {which} of {name}: cable, transceiver, switch port; `ibstat`,"
        " `ethtool -S`",
        code="mesh.bad-rail",
        rails=rails,
        votes=votes,
    )


def _undecided_rails(seen: _Seen, name: str, rails: tuple[int, ...]) -> NodeVerdict:
    ballots = [seen.pairs.get((name, rail)) or Ballot() for rail in rails]
    votes = tuple(result for ballot in ballots for result in ballot.results)
    said = against(name, votes) if any(b.votes or b.shared for b in ballots) else "not tested"
    last = votes[-1] if votes else None
    why = f" ({last.finding})" if last and last.outcome is Outcome.NOT_RUN and last.finding else ""
    return NodeVerdict(
        node=name,
        kind=Kind.UNKNOWN,
        finding=f"rail {', '.join(map(str, rails))}: {said}{why}",
        remedy="run the mesh again with the level `rails` on this node",
        code="mesh.rail-undecided",
        votes=votes,
    )


def _behind(name: str, leaf: str) -> NodeVerdict:
    return NodeVerdict(
        node=name,
        kind=Kind.BEHIND_BAD_LEAF,
        finding=f"good itself, but behind {leaf}, whose links to other leaves fail",
        remedy=f"do not drain {name}; read the counters of switch {leaf} and its uplinks",
        code="mesh.behind-bad-leaf",
    )


def _healthy(seen: _Seen, name: str) -> NodeVerdict:
    results = [
        *(seen.pairs[name, None].results if (name, None) in seen.pairs else ()),
        *(seen.alone[name, None].results if (name, None) in seen.alone else ()),
    ]
    passed = [r for r in results if r.outcome is Outcome.PASS]
    best = max((r.busbw_gb_per_s or 0.0 for r in passed), default=0.0)
    words = f"{rate_word(best)}, {len(passed)} test(s) passed" if best else "tests passed"
    return NodeVerdict(node=name, kind=Kind.HEALTHY, finding=words, votes=tuple(results))


def _not_run(name: str, ballot: Ballot) -> NodeVerdict:
    last = ballot.blocked or (ballot.results[-1] if ballot.results else None)
    return NodeVerdict(
        node=name,
        kind=Kind.UNKNOWN,
        finding=(last.finding if last else "") or "it was not tested",
        remedy=(last.remedy if last else "") or "run the mesh again on this node",
        code=(last.code if last else "") or "mesh.not-run",
        votes=tuple(ballot.results),
    )


def _undecided(seen: _Seen, name: str, where: Standing) -> NodeVerdict:
    ballot = seen.pairs.get((name, None)) or Ballot()
    if where is Standing.STUCK:
        return _not_run(name, ballot)
    votes = tuple(ballot.results)
    if where is Standing.FRESH:
        why, remedy = _no_partner(seen)
    elif ballot.wrong is not None:
        why = f"wrong values in a pair with it, not reproduced: {against(name, votes)}"
        remedy = "never start training on it before `dcgmi diag` memory tests pass"
    elif where is Standing.TIED:
        why = f"undecided after {ballot.votes} votes: {against(name, votes)}"
        remedy = "an intermittent fault: keep it out, run the mesh again on it"
    else:
        why = f"{_too_few(seen, name)}: {against(name, votes)}"
        remedy = "run the mesh again with more good nodes, or with the level `suspects`"
    code = "nccl.wrong-values" if ballot.wrong else "mesh.undecided"
    return NodeVerdict(
        node=name,
        kind=Kind.UNKNOWN,
        finding=why,
        remedy=remedy,
        code=code,
        votes=votes,
        wrong=ballot.wrong is not None,
    )


def _too_few(seen: _Seen, name: str) -> str:
    good = sum(1 for where in seen.where.values() if where is Standing.GOOD)
    if not good:
        return "every pair failed, so no partner is known to be good (a common cause?)"
    return f"fewer than {LEAST_FAILURES} votes and no good partner left"


def _no_partner(seen: _Seen) -> tuple[str, str]:
    others = len(seen.state.members) - 1
    if not others:
        return ("no other node to test the network with", "add a node, or use `levels: [alone]`")
    return ("no partner was free to test its network with", "run the mesh again on this node")


def pair_faults(state: State) -> tuple[PairFault, ...]:
    """First pairs that failed though both nodes are good with others.

    One failure may be chance (one in a hundred): it is told, and drains nobody.
    """
    ballots = pair_ballots(state)
    return tuple(_clean_failures(state, ballots))


def _clean_failures(state: State, ballots: Mapping[Key, Ballot]) -> Iterable[PairFault]:
    for played in state.history:
        for result in played.results:
            group = result.group
            if group.level is not Level.PAIRS or group.subject or not result.outcome.failed:
                continue
            one, two = group.nodes
            if ballots[one, None].cleared and ballots[two, None].cleared:
                yield PairFault((one, two), result)
