"""A test far behind its kind is slow, whatever the floor; noise is not."""

from recovery.mesh.relative import held_against
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
