"""Statistics that a few spikes do not move: medians, spreads, a line by Huber's weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import fmean, median

MAD_TO_SIGMA = 1.4826  # for normal noise
_HUBER = 1.345  # 95 % efficiency under normal noise
_ROUNDS = 8
_MANY = 16


def spread(values: Sequence[float]) -> float:
    """Sigma of values around their median, by the median absolute deviation; 0 of none."""
    if not values:
        return 0.0
    middle = median(values)
    return MAD_TO_SIGMA * median(abs(v - middle) for v in values)


def step_spread(values: Sequence[float]) -> float:
    """Sigma of a series by the differences of neighbours: a drift does not count."""
    steps = [b - a for a, b in pairwise(values)]
    return MAD_TO_SIGMA * median(abs(s) for s in steps) / sqrt(2) if steps else 0.0


def pair_spread(differences: Sequence[float]) -> float:
    """Sigma of the differences of pairs, a drift not counted.

    Squares are steadier than a median of few values, which is by chance far too small; with many,
    the smaller of both, so that one outlier does not hide a shift (measured: `README.md`).
    """
    steps = [b - a for a, b in pairwise(differences)]
    squares = sqrt(fmean(s * s for s in steps) / 2.0) if steps else 0.0
    return squares if len(differences) < _MANY else min(squares, step_spread(differences))


def quantum(values: Sequence[float]) -> float:
    """The smallest distance of two different values: what the log's rounding can tell apart."""
    ordered = sorted(set(values))
    return min((b - a for a, b in pairwise(ordered)), default=0.0)


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pearson's r of pairs; None of fewer than three, or where one does not vary."""
    if len(one) < 3:
        return None
    mean_a, mean_b = fmean(one), fmean(other)
    a, b = [v - mean_a for v in one], [v - mean_b for v in other]
    norm = sqrt(sum(v * v for v in a) * sum(v * v for v in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm > 0.0 else None


def lag_one(values: Sequence[float]) -> float:
    """Autocorrelation of neighbours, kept within 0 to 0.95."""
    r = correlation(values[:-1], values[1:])
    return min(max(r or 0.0, 0.0), 0.95)


def mean_variance(n: int, phi: float) -> float:
    """Variance of the mean of ``n`` neighbours of an AR(1) series of unit variance."""
    return (1.0 + 2.0 * sum((1.0 - k / n) * phi**k for k in range(1, n) if phi > 0.0)) / n


@dataclass(frozen=True, slots=True)
class Curve:
    """A line or parabola through a series; ``inverse`` is that of the weighted normal matrix."""

    coefficients: tuple[float, ...]
    inverse: tuple[tuple[float, ...], ...]
    centre: float
    scale: float

    def at(self, x: float) -> float:
        """The expected value."""
        return sum(c * b for c, b in zip(self.coefficients, self.basis(x), strict=True))

    def basis(self, x: float) -> tuple[float, ...]:
        """Powers of the scaled place."""
        return _basis((x - self.centre) / self.scale, len(self.coefficients))

    def mean_error(self, xs: Sequence[float]) -> float:
        """Variance of the mean expected at ``xs``, for noise of unit variance."""
        rows = [self.basis(x) for x in xs]
        a = [fmean(column) for column in zip(*rows, strict=True)]
        return sum(a[i] * a[j] * self.inverse[i][j] for i in range(len(a)) for j in range(len(a)))


def fit(xs: Sequence[float], ys: Sequence[float], *, degree: int) -> tuple[Curve, float]:
    """The curve by Huber's weights, and the weighted sum of squared residuals."""
    centre = fmean(xs)
    scale = max(max(xs) - centre, centre - min(xs), 1e-12)
    rows = [_basis((x - centre) / scale, degree + 1) for x in xs]
    weights = [1.0] * len(xs)
    for _ in range(_ROUNDS):
        matrix, right = _normal(rows, ys, weights)
        inverse = _inverse(matrix)
        coefficients = tuple(sum(m * r for m, r in zip(row, right, strict=True)) for row in inverse)
        rest = [
            y - sum(c * b for c, b in zip(coefficients, row, strict=True))
            for row, y in zip(rows, ys, strict=True)
        ]
        limit = _HUBER * MAD_TO_SIGMA * median(abs(r) for r in rest)
        fresh = [1.0 if abs(r) <= limit or limit == 0.0 else limit / abs(r) for r in rest]
        settled = max(abs(a - b) for a, b in zip(fresh, weights, strict=True)) < 1e-3
        weights = fresh
        if settled:
            break
    squares = sum(w * r * r for w, r in zip(weights, rest, strict=True))
    return Curve(coefficients, tuple(map(tuple, inverse)), centre, scale), squares


def _basis(t: float, size: int) -> tuple[float, ...]:
    return (1.0, t, t * t)[:size]


def _normal(
    rows: Sequence[Sequence[float]], ys: Sequence[float], weights: Sequence[float]
) -> tuple[list[list[float]], list[float]]:
    size = range(len(rows[0]))
    matrix = [[0.0 for _ in size] for _ in size]
    right = [0.0 for _ in size]
    for row, y, w in zip(rows, ys, weights, strict=True):
        for i in size:
            right[i] += w * row[i] * y
            for j in size:
                matrix[i][j] += w * row[i] * row[j]
    return matrix, right


def _inverse(matrix: list[list[float]]) -> list[list[float]]:
    """Gauss and Jordan, with pivots; a little is added where a column has nothing of its own."""
    n = len(matrix)
    work = [[*row, *(1.0 if i == j else 0.0 for j in range(n))] for i, row in enumerate(matrix)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(work[k][i]))
        work[i], work[pivot] = work[pivot], work[i]
        head = work[i][i] or 1e-12
        work[i] = [v / head for v in work[i]]
        for k in range(n):
            if k != i:
                factor = work[k][i]
                work[k] = [a - factor * b for a, b in zip(work[k], work[i], strict=True)]
    return [row[n:] for row in work]
