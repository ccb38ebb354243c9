"""The pictures of a resume."""

import math

from recovery.continuity import curves
from tests.continuity.test_compare import curve


def test_each_curve_has_both_sides_and_at_most_400_points_a_side() -> None:
    drawn = curves(curve(1, 3000), curve(2900, 3900))

    assert set(drawn) == {"loss", "lr", "grad norm"}
    assert all(len(side) <= 400 for one in drawn.values() for side in one.values())
    assert drawn["loss"]["before"][-1][0] == 3000
    assert drawn["loss"]["after"][-1][0] == 3900


def test_what_no_line_has_is_not_drawn_and_no_number_that_is_none() -> None:
    points = [type(p)(iteration=p.iteration, loss=math.nan) for p in curve(1, 3)]

    assert curves(points, []) == {}
