"""Robust statistics against values worked out by hand."""

import random
from statistics import fmean

import pytest

from recovery.continuity.robust import (
    correlation,
    fit,
    lag_one,
    mean_variance,
    quantum,
    spread,
    step_spread,
)


def test_spread_is_sigma_and_does_not_see_an_outlier() -> None:
    rng = random.Random(1)
    values = [rng.gauss(0, 2) for _ in range(4000)]

    assert spread(values) == pytest.approx(2, rel=0.05)
    assert spread([*values, 1e9]) == pytest.approx(2, rel=0.05)
    assert spread([]) == 0.0


def test_step_spread_does_not_see_a_drift() -> None:
    rng = random.Random(2)
    values = [5.0 * n / 1000 + rng.gauss(0, 2) for n in range(4000)]

    assert step_spread(values) == pytest.approx(2, rel=0.06)


def test_correlation_of_what_does_not_vary_is_unknown() -> None:
    assert correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert correlation([1, 1, 1], [2, 4, 6]) is None
    assert correlation([1, 2], [2, 4]) is None


def test_a_curve_is_found_under_spikes() -> None:
    xs = [float(x) for x in range(100)]
    ys = [3.0 + 0.5 * x - 0.01 * x * x + (50.0 if x % 25 == 0 else 0.0) for x in xs]

    curve, _ = fit(xs, ys, degree=2)

    assert curve.at(50.5) == pytest.approx(3.0 + 25.25 - 0.01 * 50.5**2, abs=0.1)


def test_the_error_of_a_line_grows_beyond_its_points() -> None:
    xs = [float(x) for x in range(50)]
    curve, _ = fit(xs, xs, degree=1)

    assert curve.mean_error([24.5]) == pytest.approx(1 / 50)
    assert curve.mean_error([99.0]) > 10 / 50


def test_memory_makes_a_mean_less_certain() -> None:
    assert mean_variance(16, 0.0) == pytest.approx(1 / 16)
    assert mean_variance(16, 0.6) > 3 / 16
    rng = random.Random(3)
    series = [0.0]
    for _ in range(4000):
        series.append(0.6 * series[-1] + rng.gauss(0, 1))
    assert lag_one(series) == pytest.approx(0.6, abs=0.05)
    assert fmean(series) == pytest.approx(0, abs=0.2)


def test_quantum_is_the_step_of_the_print() -> None:
    assert quantum([1.25, 1.50, 1.75, 1.25]) == pytest.approx(0.25)
    assert quantum([1.0, 1.0]) == 0.0
