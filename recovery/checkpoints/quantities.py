"""Durations and amounts as people write them, and back."""

from __future__ import annotations

import re

from recovery.errors import InputError

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIMES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}


def duration_s(text: str) -> float:
    """Seconds of ``45s``, ``150m``, ``24h``, ``1.5d``.

    Raises:
        InputError: no number with a unit.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h|d)\s*", text)
    if not match:
        raise InputError(f"not a duration: {text[:40]!r}", remedy="write it like 45s, 150m, 24h")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def amount(text: str) -> float:
    """The number of ``405B`` (parameters) or ``20GB`` (bytes): powers of ten.

    Raises:
        InputError: not a number with a known letter.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)(B?)(?:/s)?\s*", text, re.I)
    if not match:
        raise InputError(f"not an amount: {text[:40]!r}", remedy="write it like 70B or 20GB")
    letter = match.group(2).upper() or match.group(3).upper()
    return float(match.group(1)) * _TIMES[letter]


def span(seconds: float) -> str:
    """A duration for people, two digits that matter."""
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (172800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:.3g} d"


def volume(n_bytes: float) -> str:
    """A number of bytes for people, powers of ten."""
    for limit, unit, size in ((1e6, "kB", 1e3), (1e9, "MB", 1e6), (1e12, "GB", 1e9)):
        if n_bytes < limit:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes / 1e12:.3g} TB"
