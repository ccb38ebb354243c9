"""Who agrees, and who is an outlier."""

from __future__ import annotations

from recovery.reading.agreement import agree, far_above, far_below


def test_a_large_majority_names_its_outliers() -> None:
    found = agree({"a": 1, "b": 1, "c": 1, "d": 2})

    assert found is not None
    assert (found.value, found.n_agree, found.n_nodes) == (1, 3, 4)
    assert found.outliers == {"d": 2}


def test_without_a_large_majority_nobody_is_right() -> None:
    assert agree({"a": 1, "b": 1, "c": 2, "d": 2}) is None


def test_two_nodes_are_no_majority() -> None:
    assert agree({"a": 1, "b": 2}) is None


def test_nodes_that_do_not_know_neither_vote_nor_stand_out() -> None:
    found = agree({"a": 1, "b": 1, "c": 1, "d": None})

    assert found is not None
    assert found.n_nodes == 3
    assert found.outliers == {}


def test_far_above_needs_both_the_spread_and_the_least_distance() -> None:
    calm = {"a": 30.0, "b": 30.0, "c": 30.0, "d": 40.0}

    assert far_above(calm, least=15.0) == {}
    assert far_above({**calm, "d": 50.0}, least=15.0) == {"d": 50.0}


def test_values_that_are_spread_have_no_one_far_above() -> None:
    spread = {str(n): float(n) for n in (10, 30, 50, 70, 90)}

    assert far_above(spread, least=15.0) == {}


def test_three_values_are_too_few_to_judge() -> None:
    assert far_above({"a": 1.0, "b": 1.0, "c": 99.0}, least=1.0) == {}


def test_far_below_needs_peers_and_a_real_gap():
    assert far_below({"a": 55.0, "b": 55.1, "c": 20.0}, least_share=0.05) == {}
    assert far_below({"a": 55.0, "b": 55.1, "c": 55.0, "d": 54.0}, least_share=0.05) == {}
    assert far_below({"a": 55.0, "b": 55.1, "c": 55.0, "d": 26.0}, least_share=0.05) == {"d": 26.0}
