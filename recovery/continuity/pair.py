"""The same iterations before and after, point by point: sees what is far below the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from recovery.continuity.band import Band
from recovery.continuity.robust import correlation, fit, pair_spread, quantum, step_spread

AT_LEAST = 4
SAME_DATA = 0.6  # correlation above which both saw the same batches
_WINDOWS = (4, 8, 16, 32)
_FLOOR = 0.05  # of the batch noise: kernels that add in another order
_FIRST_EQUAL = 3.0


@dataclass(frozen=True, slots=True)
class Pair:
    """What paired points say of one quantity.

    ``z`` is that of the window that differs most (its sign says which way), ``mean`` that
    window's mean difference in sigmas, ``r`` the correlation of what both have beside the trend
    (None: neither varies). ``first_equal``: the first pair agrees.
    """

    n: int
    r: float | None
    z: float
    mean: float
    first_equal: bool
    equal: bool

    @property
    def same_data(self) -> bool:
        """Claims that both saw the same batches."""
        return self.equal or (self.r is not None and self.r > SAME_DATA)


def paired(
    iterations: Sequence[int], before: Sequence[float], after: Sequence[float], band: Band | None
) -> Pair | None:
    """Compares values at the same iterations; None of fewer than four."""
    n = len(iterations)
    if n < AT_LEAST:
        return None
    differences = [b - a for a, b in zip(before, after, strict=True)]
    coarse = max(0.3 * quantum([*before, *after]), 1e-9 * max(abs(v) for v in before), 1e-300)
    sigma = max(band.sigma if band else step_spread(before), coarse)
    s = max(pair_spread(differences), _FLOOR * sigma, 0.3 * coarse)
    z, mean = _largest(differences, s)
    return Pair(
        n=n,
        r=_agreement(iterations, before, after, band),
        z=z,
        mean=mean / sigma,
        first_equal=abs(differences[0]) < _FIRST_EQUAL * s,
        equal=max(abs(d) for d in differences) <= _FLOOR * sigma,
    )


def _largest(differences: Sequence[float], s: float) -> tuple[float, float]:
    """The z and mean of the window that differs most from zero."""
    n = len(differences)
    best = (0.0, 0.0)
    for m in sorted({*(w for w in _WINDOWS if w < n), n}):
        for start in range(n - m + 1):
            mean = fmean(differences[start : start + m])
            z = mean * sqrt(m) / s
            if abs(z) > abs(best[0]):
                best = (z, mean)
    return best


def _agreement(
    iterations: Sequence[int], before: Sequence[float], after: Sequence[float], band: Band | None
) -> float | None:
    """Correlation beside the trend: two falling curves correlate whatever the data."""
    xs = [float(x) for x in iterations]
    curve = band.curve if band else fit(xs, before, degree=1)[0]
    beside = [b - curve.at(x) for x, b in zip(xs, before, strict=True)]
    other = [a - curve.at(x) for x, a in zip(xs, after, strict=True)]
    return correlation(beside, other)
