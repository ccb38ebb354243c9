"""The ladder: disjoint rounds, no pair twice, nobody convicted on fewer votes than stated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.errors import InputError
from recovery.mesh.ballots import LEAST_FAILURES
from recovery.mesh.ladder import join, next_round, record, start
from recovery.mesh.relative import held_against
from recovery.mesh.verdicts import Kind, verdicts
from recovery.mesh.words import Level, Member, Options, Outcome, Result
from tests.mesh.fabric import EVERY, Fabric, climbed, concluded, members

SIZES = st.integers(min_value=1, max_value=70)


def picked(nodes, indexes):
    return frozenset(nodes[i % len(nodes)].name for i in indexes)


@settings(max_examples=60, deadline=None)
@given(
    SIZES, st.lists(st.integers(0, 69), max_size=3), st.integers(0, 99), st.sampled_from([4, 32])
)
def test_groups_of_a_round_are_disjoint_and_no_pair_is_tested_twice(n, bad, seed, per_leaf):
    nodes = members(n, per_leaf)

    state = climbed(nodes, Fabric(bad=picked(nodes, bad)), seed=seed)

    pairs = []
    for played in state.history:
        seen = [name for group in played.round.groups for name in group.nodes]
        assert len(seen) == len(set(seen))
        pairs += [g.pair for g in played.round.groups if len(g.nodes) == 2]
    assert len(pairs) == len(set(pairs))


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=2, max_value=70), st.integers(0, 99))
def test_on_a_good_fabric_everybody_is_tested_and_healthy(n, seed):
    by_node, _ = concluded(members(n), Fabric(), seed=seed)

    assert {v.kind for v in by_node.values()} == {Kind.HEALTHY}


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=8, max_value=70), st.sets(st.integers(0, 69), max_size=2),
       st.integers(0, 99))  # fmt: skip
def test_bad_nodes_are_convicted_on_enough_votes_and_nobody_else_is(n, bad, seed):
    nodes = members(n)
    guilty = picked(nodes, bad)

    by_node, _ = concluded(nodes, Fabric(bad=guilty), seed=seed)

    convicted = {name for name, v in by_node.items() if v.kind is Kind.BAD_NODE}
    assert convicted == guilty
    for name in convicted:
        failures = [r for r in by_node[name].votes if r.outcome.failed and len(r.group.nodes) == 2]
        assert len(failures) >= LEAST_FAILURES


def test_the_same_seed_gives_the_same_rounds():
    nodes, fabric = members(40), Fabric(bad=frozenset({"n0007"}))

    one, two = (climbed(nodes, fabric, seed=5).history for _ in range(2))

    assert one == two
    assert one != climbed(nodes, fabric, seed=6).history


def test_a_node_that_fails_alone_is_convicted_alone_and_never_paired():
    state = climbed(members(8), Fabric(alone_bad=frozenset({"n0003"})))
    by_node, _ = concluded(members(8), Fabric(alone_bad=frozenset({"n0003"})))

    paired = {
        n for p in state.history for g in p.round.groups if len(g.nodes) == 2 for n in g.nodes
    }
    assert by_node["n0003"].kind is Kind.BAD_NODE
    assert "n0003" not in paired


def test_one_node_alone_cannot_be_cleared_of_the_network():
    by_node, _ = concluded(members(1), Fabric())

    assert by_node["n0000"].kind is Kind.UNKNOWN
    assert "no other node" in by_node["n0000"].finding


def test_two_nodes_that_fail_together_are_not_told_apart():
    by_node, _ = concluded(members(2), Fabric(bad=frozenset({"n0000"})))

    assert {v.kind for v in by_node.values()} == {Kind.UNKNOWN}


def test_when_every_pair_fails_nobody_is_convicted():
    nodes = members(8)

    by_node, _ = concluded(nodes, Fabric(bad=frozenset(m.name for m in nodes)))

    assert {v.kind for v in by_node.values()} == {Kind.UNKNOWN}
    assert "common cause" in by_node["n0000"].finding


def test_a_bad_pair_convicts_neither_of_its_nodes():
    nodes, fabric = members(8), Fabric()
    first = next(p for p in climbed(nodes, fabric).history if p.round.stage == "pairs")
    pair = first.round.groups[0].pair

    by_node, found = concluded(nodes, Fabric(bad_pairs=frozenset({pair})))

    assert {by_node[n].kind for n in pair} == {Kind.HEALTHY}
    assert [set(p.nodes) for p in found.pairs] == [set(pair)]


def test_wrong_values_are_the_gravest_and_named_so():
    by_node, _ = concluded(members(8), Fabric(wrong=frozenset({"n0002"})))

    assert by_node["n0002"].wrong
    assert by_node["n0002"].code == "nccl.wrong-values"


def test_a_node_without_the_binary_is_unknown_and_its_partner_is_not_blamed():
    by_node, _ = concluded(members(8), Fabric(stuck=frozenset({"n0001"})))

    assert by_node["n0001"].kind is Kind.UNKNOWN
    assert by_node["n0001"].remedy == "install it"
    assert {v.kind for n, v in by_node.items() if n != "n0001"} == {Kind.HEALTHY}


def test_a_bad_leaf_is_named_and_nobody_is_drained_for_it():
    nodes = members(64, per_leaf=8)
    leaf_of = {m.name: m.leaf for m in nodes}

    by_node, found = concluded(
        nodes, Fabric(bad_leaf="leaf3", leaf_of=leaf_of), levels=EVERY - {Level.RAILS, Level.ALL}
    )

    assert [leaf for one in found.leaves for leaf in one.leaves] == ["leaf3"]
    assert {v.kind for n, v in by_node.items() if leaf_of[n] == "leaf3"} == {Kind.BEHIND_BAD_LEAF}
    assert {v.kind for n, v in by_node.items() if leaf_of[n] != "leaf3"} == {Kind.HEALTHY}


def test_a_bad_rail_is_named():
    by_node, _ = concluded(
        members(16), Fabric(bad_rails={"n0004": (3,)}), levels=EVERY - {Level.LEAVES, Level.ALL}
    )

    assert by_node["n0004"].kind is Kind.BAD_RAIL
    assert by_node["n0004"].rails == (3,)
    assert {v.kind for n, v in by_node.items() if n != "n0004"} == {Kind.HEALTHY}


def test_a_returning_node_is_tested_with_good_partners_only():
    nodes = [Member("new")] + [Member(f"g{i}", known_good=True) for i in range(6)]

    state = climbed(nodes, Fabric())

    tests = [g for p in state.history for g in p.round.groups]
    assert all("new" in g.nodes for g in tests)
    assert len(tests) <= 4


def test_the_partner_of_a_bad_node_waits_for_its_conviction_and_costs_no_more_tests():
    nodes = members(8)
    guilty = "n0003"

    state = climbed(nodes, Fabric(bad=frozenset({guilty})))
    by_node, _ = concluded(nodes, Fabric(bad=frozenset({guilty})))

    first = next(g for g in state.history[1].round.groups if guilty in g.nodes)
    (partner,) = set(first.nodes) - {guilty}
    asked = [g for p in state.history for g in p.round.groups if g.subject == partner]
    assert [g.level for g in asked] == [Level.ALONE, Level.SUSPECTS]
    assert by_node[partner].kind is Kind.HEALTHY
    assert len(state.history) == 4


def test_a_round_about_rails_leaves_what_nodes_were_found_to_be():
    state = start(members(8), Options(levels=EVERY))
    kept = []
    while (played := next_round(state)) is not None:
        state = record(state, played, [Fabric().play(g) for g in played.groups])
        if played.stage == "rails":
            kept.append({name.rpartition(".")[2] for name, _ in state.folds})

    assert kept
    assert all({"standings", "failed_across"} <= names for names in kept)
    assert not any("pair_ballots" in names for names in kept)


def test_a_late_node_is_tested_from_the_next_round_on():
    state = start(members(4), Options())
    played = next_round(state)
    state = record(state, played, [Fabric().play(g) for g in played.groups])
    state = join(state, [Member("late", "leaf0")])
    seen = set()
    while (played := next_round(state)) is not None:
        seen |= {n for g in played.groups for n in g.nodes}
        state = record(state, played, [Fabric().play(g) for g in played.groups])

    assert "late" in seen


def test_a_node_named_twice_is_our_mistake():
    with pytest.raises(InputError, match="twice"):
        start([Member("a"), Member("a")], Options())


def test_results_of_other_groups_are_refused():
    state = start(members(4), Options())
    played = next_round(state)

    with pytest.raises(InputError, match="results are of others"):
        record(state, played, [])


def test_of_a_returning_node_each_rail_is_tested_once_with_a_good_partner():
    nodes = [Member("new"), Member("g1", known_good=True), Member("g2", known_good=True)]

    state = climbed(nodes, Fabric(), levels=EVERY - {Level.LEAVES, Level.ALL}, n_rails=4)

    rails = [g for p in state.history for g in p.round.groups if g.level is Level.RAILS]
    assert [(g.subject, g.rail) for g in rails] == [("new", rail) for rail in range(4)]


def test_a_returning_node_with_one_bad_rail_is_told_which():
    nodes = [Member("new"), *(Member(f"g{i}", known_good=True) for i in range(4))]

    by_node, _ = concluded(
        nodes, Fabric(bad_rails={"new": (2,)}), levels=EVERY - {Level.LEAVES, Level.ALL}
    )

    assert (by_node["new"].kind, by_node["new"].rails) == (Kind.BAD_RAIL, (2,))
    assert {by_node[f"g{i}"].kind for i in range(4)} == {Kind.HEALTHY}


def test_pairs_of_good_nodes_that_never_met_run_beside_suspects_and_are_no_vote():
    nodes = members(16)

    state = climbed(nodes, Fabric(bad=frozenset({"n0003"})))
    by_node, _ = concluded(nodes, Fabric(bad=frozenset({"n0003"})))

    beside = [g for p in state.history for g in p.round.groups if g.witness]
    assert beside
    assert "n0003" not in {name for group in beside for name in group.nodes}
    votes = {result.group for verdict in by_node.values() for result in verdict.votes}
    assert not votes & set(beside)


def starved(state, innocent):
    """Plays a mesh in which whoever tests this node, and good pairs beside it, are slow."""
    while (played := next_round(state)) is not None:
        found = []
        for group in played.groups:
            slow = len(group.nodes) == 2 and (innocent in group.nodes or group.witness)
            outcome = Outcome.SLOW if slow else Outcome.PASS
            found.append(Result(group=group, outcome=outcome, finding="slow" if slow else ""))
        state = record(state, played, held_against(found, state.history))
        assert len(state.history) < 50
    return {verdict.node: verdict for verdict in verdicts(state).nodes}


@pytest.mark.parametrize("n", [6, 8, 64])
def test_nobody_is_convicted_in_rounds_that_were_slow_for_good_nodes_as_well(n):
    by_node = starved(start(members(n), Options()), "n0002")

    assert by_node["n0002"].kind is Kind.UNKNOWN
    assert by_node["n0002"].code == "mesh.starved"
    assert by_node["n0002"].remedy
    assert Kind.BAD_NODE not in {verdict.kind for verdict in by_node.values()}


def test_a_partner_whose_test_did_not_run_is_met_again_only_where_nobody_else_is_left():
    nodes = [Member("new"), Member("g1", known_good=True), Member("g2", known_good=True)]
    state, met = start(nodes, Options(levels=frozenset({Level.PAIRS, Level.SUSPECTS}))), []
    while (played := next_round(state)) is not None:
        met += [group.nodes[1] for group in played.groups]
        lost = [Result(group=group, outcome=Outcome.NOT_RUN) for group in played.groups]
        state = record(state, played, lost)

    assert len(met) == 3
    assert set(met[:2]) == {"g1", "g2"}


def test_all_nodes_run_both_collectives_at_the_end():
    state = climbed(members(16), Fabric(), levels=EVERY - {Level.RAILS, Level.LEAVES})

    whole = [g for p in state.history for g in p.round.groups if g.level is Level.ALL]
    assert [(g.collective, len(g.nodes)) for g in whole] == [("all_reduce", 16), ("alltoall", 16)]


def test_when_only_the_full_size_fails_halves_tell_what_works_and_nobody_is_convicted():
    fabric = Fabric(fails_above={"alltoall": 10})

    by_node, found = concluded(members(32), fabric, levels=EVERY - {Level.RAILS, Level.LEAVES})

    assert [(f.collective, len(f.nodes), f.passes_at) for f in found.sizes] == [
        ("alltoall", 16, 8), ("alltoall", 16, 8)]  # fmt: skip
    assert {verdict.kind for verdict in by_node.values()} == {Kind.HEALTHY}
