"""Nodes for a job: the fewest leaves."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from recovery.inventory.picking import pick_by_leaf
from recovery.model.node import Node


def cluster(**sizes):
    return [Node(f"{leaf}-{i}", leaf=leaf) for leaf, n in sizes.items() for i in range(n)]


def leaves(names):
    return [name.partition("-")[0] for name in names]


def test_one_leaf_that_holds_all_is_enough_and_the_smallest_such_leaf_is_taken():
    picked = pick_by_leaf(cluster(a=8, b=4, c=3), 4)

    assert set(leaves(picked)) == {"b"}


def test_over_several_leaves_the_largest_come_first_and_the_rest_from_the_smallest():
    picked = pick_by_leaf(cluster(a=2, b=8, c=6), 10)

    assert leaves(picked) == ["b"] * 8 + ["a"] * 2


def test_nodes_without_a_leaf_are_taken_last():
    nodes = [Node("x"), Node("y"), *cluster(a=2)]

    assert pick_by_leaf(nodes, 3) == ("a-0", "a-1", "x")


def test_when_there_are_too_few_all_are_picked():
    assert len(pick_by_leaf(cluster(a=2, b=1), 9)) == 3


def test_nothing_is_picked_of_nothing():
    assert pick_by_leaf([], 3) == ()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 20))
def test_no_choice_needs_fewer_leaves(sizes, wanted):
    nodes = cluster(**{f"l{i}": n for i, n in enumerate(sizes)})

    picked = pick_by_leaf(nodes, wanted)

    assert len(picked) == len(set(picked)) == min(wanted, sum(sizes))
    used = len(set(leaves(picked)))
    fewer = combinations(sizes, used - 1)
    assert all(sum(some) < len(picked) for some in fewer)
