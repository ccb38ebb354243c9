"""What a mesh costs before it runs: rounds, launches, minutes, node-hours."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from recovery.mesh.words import Level, Options

SECONDS_PER_TEST = 60.0
_LEAF_CONFIRMS = 6


@dataclass(frozen=True, slots=True)
class Price:
    """Rounds, launches, and how long all nodes are busy with it."""

    rounds: int
    launches: int
    minutes: float
    node_hours: float

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.launches} launches, {self.minutes:.0f} min,"
            f" {self.node_hours:.1f} node-hours"
        )


def estimate(
    n_nodes: int,
    leaves: int,
    k_suspects: int = 0,
    *,
    levels: Collection[Level] = Options().levels,
    seconds_per_test: float = SECONDS_PER_TEST,
    n_rails: int = 8,
) -> Price:
    """The price for so many nodes and leaves when ``k_suspects`` first pairs fail.

    Suspects cost three more rounds (two votes each and, mostly, one more), and two tests each a
    round, both nodes of a failing pair being in question.
    """
    costs = [_cost(level, n_nodes, leaves, k_suspects, n_rails) for level in levels]
    rounds = sum(cost[0] for cost in costs)
    minutes = rounds * seconds_per_test / 60
    launches = sum(cost[1] for cost in costs)
    return Price(rounds, launches, minutes, minutes / 60 * n_nodes)


def _cost(level: Level, n: int, leaves: int, k: int, n_rails: int) -> tuple[int, int]:
    match level:
        case Level.ALONE:
            return 1, n
        case Level.PAIRS:
            return (1 + n % 2, n // 2 + n % 2) if n > 1 else (0, 0)
        case Level.SUSPECTS:
            return (3, 6 * k) if k else (0, 0)
        case Level.LEAVES:
            return _of_leaves(n, leaves, k)
        case Level.RAILS:
            return (1 + 2 * bool(k), n_rails * (n // 2 + 2 * k))
        case Level.ALL:
            return (2, 2) if n > 2 else (0, 0)


def _of_leaves(n: int, leaves: int, k: int) -> tuple[int, int]:
    if leaves < 2:
        return 0, 0
    sweep = 12 if leaves <= 8 else 8
    confirms = _LEAF_CONFIRMS if k else 0
    return sweep + confirms, sweep * (n // 2) + confirms * (n // leaves)
