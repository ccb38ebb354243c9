"""Do the nodes agree? The majority is taken as right only when it is large enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

SHARE = 2 / 3
"""Of the nodes that must say the same before the others are called outliers."""


@dataclass(frozen=True, slots=True)
class Agreement(Generic[T]):
    """What most nodes say, how many of how many, and who says something else."""

    value: T
    n_agree: int
    n_nodes: int
    outliers: Mapping[str, T]


def agree(values: Mapping[str, T | None], *, share: float = SHARE) -> Agreement[T] | None:
    """The majority and its outliers; None with fewer than 3 answers or no such majority.

    Nodes that do not know (None) neither vote nor are outliers.
    """
    known = {node: value for node, value in values.items() if value is not None}
    if len(known) < 3:
        return None
    value, n_agree = Counter(known.values()).most_common(1)[0]
    if n_agree < share * len(known):
        return None
    others = {node: v for node, v in known.items() if v != value}
    return Agreement(value, n_agree, len(known), others)


def far_above(values: Mapping[str, float], *, least: float) -> dict[str, float]:
    """Who is more than 3 MAD-sigma, and at least ``least``, above the median of its peers."""
    if len(values) < 4:
        return {}
    middle = median(values.values())
    sigma = 1.4826 * median(abs(v - middle) for v in values.values())
    return {k: v for k, v in values.items() if v - middle > max(3 * sigma, least)}


def far_below(values: Mapping[str, float], *, least_share: float) -> dict[str, float]:
    """Who is more than 3 MAD-sigma, and at least this share of the median, below its peers."""
    if len(values) < 4:
        return {}
    middle = median(values.values())
    sigma = 1.4826 * median(abs(v - middle) for v in values.values())
    limit = max(3 * sigma, least_share * middle)
    return {k: v for k, v in values.items() if middle - v > limit}
