"""What a mesh costs is known before it runs."""

from recovery.mesh.price import estimate
from recovery.mesh.words import Level

PAIRS = frozenset({Level.PAIRS, Level.SUSPECTS})


def test_a_clean_cluster_costs_one_round_a_level():
    price = estimate(1024, 32, levels=frozenset({Level.ALONE}) | PAIRS)

    assert (price.rounds, price.launches) == (2, 1024 + 512)


def test_suspects_cost_three_more_rounds_whatever_the_size():
    extra = [estimate(n, 1, 2, levels=PAIRS).rounds - estimate(n, 1, levels=PAIRS).rounds
             for n in (8, 1024)]  # fmt: skip

    assert extra == [3, 3]


def test_node_hours_are_all_nodes_for_all_rounds():
    assert str(estimate(60, 1, levels=PAIRS)) == "1 rounds, 30 launches, 1 min, 1.0 node-hours"


def test_one_node_or_one_leaf_has_nothing_to_cross():
    assert estimate(1, 1, levels=frozenset(Level)).rounds == 2
