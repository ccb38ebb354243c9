"""Limits of the blast radius: seen before anything is done, the strictest counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import RunbookError
from recovery.model.node import Node
from recovery.model.runbook import Limits
from recovery.plan import excess_of
from tests.plan.verbs import book, cluster, plan_of

NAMES = [f"n{i}" for i in range(12)]
NUMBER = st.integers(min_value=0, max_value=6)


def test_a_plan_that_would_reboot_too_many_is_refused_at_its_line():
    with pytest.raises(RunbookError) as error:
        plan_of(book("  - reboot: 5m\n"), cluster(100))

    assert "book.yaml:4:5: reboot-1: 100 nodes in this run" in error.value.message
    assert "limit of 10" in error.value.message
    assert "limits: {disrupt: 100}" in error.value.remedy


def test_steps_count_together_and_a_node_counts_once():
    steps = "  - reboot: 5m\n    nodes: {first}\n  - power: cycle\n    nodes: {second}\n"
    top = "limits: {disrupt: 2}\n"

    plan_of(book(steps.format(first="n1, n2", second="n2"), top), cluster())
    with pytest.raises(RunbookError, match="3 nodes in this run"):
        plan_of(book(steps.format(first="n1, n2", second="n3"), top), cluster())


def test_the_strictest_of_runbook_and_inventory_counts():
    text = book("  - reboot: 5m\n", "limits: {disrupt: all}\n")

    plan_of(text, cluster(100))
    with pytest.raises(RunbookError, match="limit of 5"):
        plan_of(text, cluster(100, limits={"disrupt": "5%"}))


def test_a_limit_may_be_a_variable():
    text = book("  - reboot: 5m\n", 'limits: {disrupt: "{{ most }}"}\nvars: {most: 2}\n')

    with pytest.raises(RunbookError, match="limit of 2"):
        plan_of(text, cluster(4))
    assert plan_of(text, cluster(4), overrides={"most": "4"}).limits.disrupt == 4


@pytest.mark.parametrize("limit", ["0", "-1", "120%", "many", "1.5", "true"])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(RunbookError):
        plan_of(book("  - reboot: 5m\n", f"limits: {{disrupt: {limit}}}\n"))


def test_a_limit_of_the_inventory_that_is_not_known_is_refused():
    with pytest.raises(RunbookError, match="'disrupts' is none"):
        plan_of(book("  - reboot: 5m\n"), cluster(4, limits={"disrupts": 4}))


def test_a_launch_and_what_reads_are_not_held_to_it():
    plan_of(book("  - launch: ./train.sh\n  - check: gpu.count\n"), cluster(100))


def test_a_step_that_runs_on_a_condition_is_held_to_it_when_it_runs():
    plan_of(book('  - reboot: 5m\n    when: "false"\n'), cluster(100))


def test_the_plain_limits_of_a_small_cluster_allow_four_nodes():
    assert plan_of(book("  - reboot: 5m\n"), cluster(4)).limits.disrupt == 4


@given(
    wanted=st.sets(st.sampled_from(NAMES)),
    before=st.sets(st.sampled_from(NAMES)),
    hour=st.sets(st.sampled_from(NAMES)),
    numbers=st.tuples(NUMBER, NUMBER, NUMBER),
)
def test_what_is_allowed_is_never_beyond_a_limit(wanted, before, hour, numbers):
    limits = Limits(disrupt=numbers[0], disrupt_per_rack=numbers[1], disrupt_per_hour=numbers[2])
    racks = {name: f"r{i % 3}" for i, name in enumerate(NAMES)}

    excess = excess_of(wanted, limits, racks, before=before, last_hour=hour)

    run = wanted | before
    by_rack = [sum(racks[n] == rack for n in run) for rack in set(racks.values())]
    beyond = (
        0 < numbers[0] < len(run)
        or 0 < numbers[1] < max(by_rack)
        or 0 < numbers[2] < len(run | hour)
    )
    assert (excess is not None) == beyond


def test_nodes_of_no_rack_are_not_one_rack():
    limits = Limits(disrupt_per_rack=1)

    assert excess_of(["a", "b"], limits, {"a": None, "b": None}) is None
    assert excess_of(["a", "b"], limits, {n: Node(n, rack="r").rack for n in "ab"}) is not None
