"""A test far behind its kind is slow, whatever the floor; noise is not."""

from dataclasses import replace

import pytest

from recovery.mesh.relative import HANG, held_against, unless_starved
from recovery.mesh.words import Group, Level, Outcome, Played, Result, Round


def results(*speeds, level=Level.PAIRS):
    return [
        Result(group=Group(level, (f"a{i}", f"b{i}")), outcome=Outcome.PASS, busbw_gb_per_s=speed)
        for i, speed in enumerate(speeds)
    ]


def outcomes(found):
    return [result.outcome for result in found]


def test_one_far_behind_is_slow_and_told_with_the_median():
    found = held_against(results(380.0, 379.0, 381.0, 300.0), ())

    assert outcomes(found) == [Outcome.PASS] * 3 + [Outcome.SLOW]
    assert found[3].finding == "300.0 GB/s, the median of such tests is 379.5 GB/s"


def test_a_few_percent_or_a_wide_spread_is_noise():
    assert Outcome.SLOW not in outcomes(held_against(results(380.0, 379.0, 381.0, 360.0), ()))
    assert Outcome.SLOW not in outcomes(held_against(results(380.0, 300.0, 250.0, 210.0), ()))


def test_what_counts_as_far_behind_can_be_said():
    found = held_against(results(380.0, 379.0, 381.0, 300.0), (), 0.5)

    assert Outcome.SLOW not in outcomes(found)


def test_two_tests_have_no_median_of_their_own_but_earlier_ones_count():
    before = results(380.0, 381.0, 379.0)
    played = Played(Round(1, "pairs", tuple(r.group for r in before)), tuple(before))

    assert Outcome.SLOW not in outcomes(held_against(results(380.0, 200.0), ()))
    assert outcomes(held_against(results(380.0, 200.0), [played])) == [Outcome.PASS, Outcome.SLOW]


def suspects(*slow, witnesses=(), code=""):
    """Tests of suspects and of witnesses beside them, slow or not."""
    found = results(*(90.0 if bad else 380.0 for bad in (*slow, *witnesses)), level=Level.SUSPECTS)
    slow_ones = [
        replace(result, outcome=Outcome.BROKEN if code else Outcome.SLOW, code=code)
        if result.busbw_gb_per_s == 90.0
        else result
        for result in found
    ]
    asked = slow_ones[: len(slow)]
    return [
        *asked,
        *(replace(r, group=replace(r.group, witness=True)) for r in slow_ones[len(slow) :]),
    ]


def test_a_suspect_is_slow_where_its_witnesses_are_not():
    found = unless_starved(suspects(True, False, witnesses=(False, True, False)))

    assert outcomes(found)[:2] == [Outcome.SLOW, Outcome.PASS]


@pytest.mark.parametrize("code", ["", HANG])
def test_in_a_starved_round_a_slow_or_hung_suspect_is_no_vote(code):
    found = unless_starved(suspects(True, False, witnesses=(True, True, False), code=code))

    assert outcomes(found)[:2] == [Outcome.NOT_RUN, Outcome.PASS]
    assert "2 of 3 pairs of good nodes were slow at the same time" in found[0].finding
    assert (found[0].code, bool(found[0].remedy)) == ("mesh.starved", True)


def test_without_witnesses_a_round_in_which_all_suspects_fail_is_no_vote():
    assert outcomes(unless_starved(suspects(True, True))) == [Outcome.NOT_RUN] * 2
    assert outcomes(unless_starved(suspects(True, False))) == [Outcome.SLOW, Outcome.PASS]
    assert outcomes(unless_starved(suspects(True))) == [Outcome.SLOW]


def test_an_error_or_wrong_values_count_in_a_starved_round_too():
    found = suspects(True, witnesses=(True,))
    wrong = [replace(found[0], outcome=Outcome.WRONG), found[1]]
    broken = [replace(found[0], outcome=Outcome.BROKEN, code="nccl.ib"), found[1]]

    assert outcomes(unless_starved(wrong))[0] is Outcome.WRONG
    assert outcomes(unless_starved(broken))[0] is Outcome.BROKEN
