"""A fabric in memory that answers a ladder: bad nodes, pairs, leaves, sizes; no noise."""

from dataclasses import dataclass, field

from recovery.mesh.ladder import next_round, record, start
from recovery.mesh.verdicts import verdicts
from recovery.mesh.words import Level, Member, Options, Outcome, Result


@dataclass
class Fabric:
    """What is wrong with it."""

    bad: frozenset = frozenset()
    alone_bad: frozenset = frozenset()
    bad_pairs: frozenset = frozenset()
    bad_rails: dict = field(default_factory=dict)  # node -> rails
    bad_leaf: str = ""
    leaf_of: dict = field(default_factory=dict)
    wrong: frozenset = frozenset()
    stuck: frozenset = frozenset()
    fails_above: dict = field(default_factory=dict)  # collective -> nodes up to which it works

    def play(self, group):
        nodes = set(group.nodes)
        if nodes & self.stuck:
            blamed = tuple(sorted(nodes & self.stuck))
            return Result(
                group=group,
                outcome=Outcome.NOT_RUN,
                blamed=blamed,
                finding="no binary",
                remedy="install it",
            )
        if nodes & self.wrong:
            return Result(
                group=group,
                outcome=Outcome.WRONG,
                code="nccl.wrong-values",
                finding="wrong values",
                remedy="never train on it",
            )
        if self._slow(group, nodes):
            return Result(group=group, outcome=Outcome.SLOW, busbw_gb_per_s=90.0, finding="slow")
        return Result(group=group, outcome=Outcome.PASS, busbw_gb_per_s=380.0)

    def _slow(self, group, nodes):
        if group.level is Level.ALL:
            return len(nodes) > self.fails_above.get(group.collective, len(nodes))
        if len(nodes) == 1:
            return bool(nodes & self.alone_bad)
        if group.rail is not None:
            return any(group.rail in self.bad_rails.get(n, ()) for n in nodes)
        leaves = {self.leaf_of.get(n, "") for n in nodes}
        across = len(leaves) > 1 and self.bad_leaf in leaves
        return bool(nodes & (self.bad | set(self.bad_rails))) or nodes in self.bad_pairs or across


def members(n_nodes, per_leaf=32):
    return [Member(f"n{i:04d}", f"leaf{i // per_leaf}") for i in range(n_nodes)]


def climbed(nodes, fabric, **options):
    """All rounds played; returns the state."""
    state = start(nodes, Options(**options))
    while (played := next_round(state)) is not None:
        state = record(state, played, [fabric.play(g) for g in played.groups])
        assert len(state.history) < 200
    return state


def concluded(nodes, fabric, **options):
    found = verdicts(climbed(nodes, fabric, **options))
    return {v.node: v for v in found.nodes}, found


EVERY = frozenset(Level)
