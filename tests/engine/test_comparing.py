"""Outliers are named; the majority must be as large as the operator says."""

from dataclasses import dataclass

import pytest

from recovery.engine.comparing import compared, read_share, unlike
from recovery.model.check import Check
from recovery.model.node import Node
from recovery.model.verdict import Level, passed, single


@dataclass(frozen=True)
class Kernel:
    version: str | None


ALIKE = Check(
    name="kernel.version",
    question="?",
    command="uname -r",
    parse=lambda printed: Kernel(printed.text),
    expect=lambda raw: None,
    judge=lambda facts, expect: single(passed("read")),
    alike=lambda facts: {"kernel": facts.version},
)


def among(versions, share=2 / 3, profiles=None):
    nodes = {name: Node(name, profile=(profiles or {}).get(name)) for name in versions}
    return compared(ALIKE, {n: Kernel(v) for n, v in versions.items()}, nodes, share)


def test_the_outlier_is_named_with_what_most_have():
    found = among({"a": "6.8", "b": "6.8", "c": "6.8", "d": "5.15"})

    assert list(found) == ["d"]
    assert found["d"][0].finding == "kernel is 5.15; 3 of 4 nodes have 6.8"
    assert found["d"][0].level is Level.WARN


def test_a_majority_below_the_share_names_nobody():
    assert among({"a": "6.8", "b": "6.8", "c": "6.8", "d": "5.15"}, share=0.8) == {}


def test_nodes_that_do_not_know_neither_vote_nor_differ():
    assert among({"a": "6.8", "b": "6.8", "c": "6.8", "d": None}) == {}


def test_nodes_of_another_profile_are_not_compared():
    profiles = {"d": "l40s-pcie"}

    assert among({"a": "6.8", "b": "6.8", "c": "6.8", "d": "5.15"}, profiles=profiles) == {}


def test_two_nodes_have_no_majority():
    assert unlike("kernel.version", {"a": {"kernel": "1"}, "b": {"kernel": "2"}}, 0.9) == {}


def test_without_a_usable_share_every_node_is_unknown():
    found = among({"a": "6.8", "b": "6.8"}, share=None)

    assert {f.level for fs in found.values() for f in fs} == {Level.UNKNOWN}


@pytest.mark.parametrize(
    ("raw", "share"),
    [(None, 2 / 3), (0.9, 0.9), ("80%", 0.8), ("1", 1.0), (0.5, None), ("most", None), (90, None)],
)
def test_a_share_is_a_fraction_or_a_percentage(raw, share):
    assert read_share(raw) == share
