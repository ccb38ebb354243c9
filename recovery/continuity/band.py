"""The band in which a series should go on: trend and noise before, places of the new points in it.

Needs no iteration twice, so it works where nothing overlaps; it sees only what is larger than the
noise of single batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median

from recovery.continuity.robust import (
    Curve,
    fit,
    lag_one,
    mean_variance,
    quantum,
    spread,
)

WINDOW = 200
AT_LEAST = 20
_BEND = 12.0  # F above which a parabola describes the trend better (early training)
_FIRST = (1, 2, 4, 8, 16, 32)
_SINGLE = 1.6  # one point alone is often a spike
_LAST, _LASTING = 12, 3.0
_AHEAD = 0.25  # of the window: 50 points of 200; a line is wrong further on a bent curve

Series = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Band:
    """Trend, ``sigma`` of the noise and its autocorrelation ``phi``, from the points before.

    The trend is no forecast: beyond ``until`` nothing is compared with it.
    """

    curve: Curve
    sigma: float
    phi: float
    until: float

    def within(self, points: Series) -> list[tuple[int, float]]:
        """The points that the trend still speaks of."""
        return [(x, y) for x, y in points if x <= self.until]

    def rest(self, points: Series) -> list[float]:
        """How far each point lies above the trend."""
        return [y - self.curve.at(x) for x, y in points]


@dataclass(frozen=True, slots=True)
class Place:
    """Where new points lie: the largest z either way, and whether it lasts."""

    highest: float
    lowest: float
    lasts_high: bool
    lasts_low: bool


def band_of(before: Series, *, window: int = WINDOW) -> Band | None:
    """The band of the last points; None of fewer than 20."""
    last = before[-window:]
    if len(last) < AT_LEAST:
        return None
    xs, ys = [float(x) for x, _ in last], [y for _, y in last]
    line, squares = fit(xs, ys, degree=1)
    bent, less = fit(xs, ys, degree=2)
    curve = bent if squares - less > _BEND * less / (len(xs) - 3) else line
    rest = [y - curve.at(x) for x, y in zip(xs, ys, strict=True)]
    floor = max(0.3 * quantum(ys), 1e-9 * abs(median(ys)), 1e-300)
    sigma = max(spread(rest), floor)
    near = [min(max(r, -4 * sigma), 4 * sigma) for r in rest]
    return Band(curve, sigma, lag_one(near), xs[-1] + _AHEAD * (xs[-1] - xs[0]))


def place(band: Band, after: Series) -> Place:
    """Where the new points lie. Give at least one."""
    rest = band.rest(after)
    xs = [float(x) for x, _ in after]
    found = []
    for m in _FIRST:
        if m <= len(rest):
            z = fmean(rest[:m]) / _mean_sigma(band, xs[:m])
            found.append(z / _SINGLE if m == 1 else z)
    return Place(
        max(found),
        min(found),
        lasts_high=_lasts(band, xs, rest),
        lasts_low=_lasts(band, xs, [-r for r in rest]),
    )


def _mean_sigma(band: Band, xs: Sequence[float]) -> float:
    inflated = (1.0 + band.phi) / (1.0 - band.phi)
    variance = mean_variance(len(xs), band.phi) + inflated * band.curve.mean_error(xs)
    return band.sigma * sqrt(variance)


def _lasts(band: Band, xs: Sequence[float], rest: Sequence[float]) -> bool:
    return any(
        median(rest[-n:]) > _LASTING * _mean_sigma(band, xs[-n:])
        for n in {len(rest), min(_LAST, len(rest))}
    )
