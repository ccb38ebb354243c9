"""The pictures of a resume: loss, rate and gradient norm before and after, thinned."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from recovery.reading.training_point import Point

MOST = 400
Curves = dict[str, dict[str, list[list[float]]]]
_DRAWN = (("loss", "loss"), ("lr", "lr"), ("grad norm", "grad_norm"))


def curves(before: Sequence[Point], after: Sequence[Point]) -> Curves:
    """``{"loss": {"before": [[iteration, y], ...], "after": [...]}, "lr": ..., "grad norm": ...}``.

    Of before, the last points that matter: about four times what is new, at least 200.
    """
    near = before[-max(200, 4 * len(after)) :]
    found: Curves = {}
    for name, field in _DRAWN:
        old, new = _thinned(near, field), _thinned(after, field)
        if old or new:
            found[name] = {"before": old, "after": new}
    return found


def _thinned(points: Sequence[Point], field: str) -> list[list[float]]:
    told = [
        [float(p.iteration), float(y)]
        for p in points
        if (y := getattr(p, field)) is not None and isfinite(y)
    ]
    every = -(-len(told) // MOST)
    return told[::-every][::-1] if every > 1 else told
