"""The ladder in words, a round a sentence."""

from recovery.mesh.ladder import next_round, record, start
from recovery.mesh.telling import told_round
from recovery.mesh.words import Group, Level, Member, Options, Outcome, Played, Result, Round, State
from tests.mesh.fabric import Fabric, climbed, members


def played(number, stage, *results):
    groups = tuple(result.group for result in results)
    return Played(Round(number, stage, groups), results)


def one(subject, *others, outcome=Outcome.SLOW, level=Level.SUSPECTS, **more):
    group = Group(level, (subject, *others), subject if level is Level.SUSPECTS else "", **more)
    return Result(group=group, outcome=outcome, finding="slow")


PASS = Outcome.PASS
FIRST = played(
    1, "pairs",
    one("node017", "node003", level=Level.PAIRS),
    one("node042", "node005", level=Level.PAIRS, outcome=PASS),
)  # fmt: skip
SECOND = played(2, "suspects", one("node017", "node042"), one("node003", "node005", outcome=PASS))


def told(*history):
    return told_round(State((), Options(), history))


def test_a_first_pair_that_failed_names_both_and_blames_nobody():
    assert told(FIRST) == "round 1 (pairs): 1 of 2 tests passed; node017 failed with node003"


def test_a_suspect_is_told_with_all_it_failed_with_and_who_of_them_passed_elsewhere():
    assert told(FIRST, SECOND) == (
        "round 2 (suspects): 1 of 2 tests passed; node017 failed with node003 and node042,"
        " node003 and node042 passed elsewhere; node003 passed with node005"
    )


def test_what_gave_no_answer_and_the_witnesses_are_told_too():
    third = played(
        3, "suspects",
        one("node017", "node005", outcome=Outcome.NOT_RUN),
        one("node001", "node002", outcome=PASS, witness=True),
    )  # fmt: skip

    assert told(FIRST, SECOND, third) == (
        "round 3 (suspects): 0 of 1 tests passed; node017+node005 gave no answer (slow);"
        " beside them 1 of 1 pairs of good nodes passed"
    )


def test_a_node_by_itself_a_rail_and_all_nodes_have_words_of_their_own():
    names = tuple(f"n{i}" for i in range(8))
    whole = Result(group=Group(Level.ALL, names, collective="alltoall"), outcome=Outcome.SLOW)
    alone = Result(group=Group(Level.ALONE, ("n1",), "n1"), outcome=Outcome.BROKEN)
    rail = Result(group=Group(Level.RAILS, ("n1", "n2"), "", 3), outcome=Outcome.SLOW)

    assert "alltoall over 8 nodes failed" in told(played(1, "all", whole))
    assert "n1 failed by itself" in told(played(1, "alone", alone))
    assert "n1 failed with n2 on rail 3" in told(played(1, "rails", rail))


def test_many_failures_are_told_by_their_number():
    failed = [one(f"a{i}", f"b{i}", level=Level.PAIRS) for i in range(20)]

    assert told(played(1, "pairs", *failed)).endswith("; and 8 more")


def test_every_round_of_a_mesh_can_be_told():
    state = climbed(members(40), Fabric(bad=frozenset({"n0003"})), seed=3)
    last = told_round(state)

    assert "n0003 failed with" in last
    assert "passed elsewhere" in last


def test_a_round_in_which_all_is_well_is_one_short_line():
    state = start([Member("a"), Member("b")], Options(levels=frozenset({Level.PAIRS})))
    first = next_round(state)
    state = record(state, first, [Fabric().play(group) for group in first.groups])

    assert told_round(state) == "round 1 (pairs): 1 of 1 tests passed"
