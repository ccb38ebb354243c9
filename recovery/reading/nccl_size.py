"""Payloads and rates in words; ``8G`` is 8 x 1024^3 bytes, as nccl-tests takes them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*$", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def size_bytes(size: object) -> int | None:
    """Bytes of a payload written as ``8G``, ``512M`` or a number; None when it is none of these.

    Source: nccl-tests ``parsesize`` in ``src/common.cu`` (powers of 1024).
    """
    match = _SIZE.match(str(size)) if size is not None else None
    if match is None:
        return None
    return int(float(match.group(1)) * 1024 ** _POWERS[match.group(2).upper()])


def size_word(n_bytes: int) -> str:
    """The shortest exact spelling: ``8G``, ``512M``, ``6871947673``."""
    for unit, power in (("T", 4), ("G", 3), ("M", 2), ("K", 1)):
        if n_bytes and n_bytes % 1024**power == 0:
            return f"{n_bytes // 1024**power}{unit}"
    return str(n_bytes)


def rate_word(gb_per_s: float) -> str:
    """A bandwidth for people: ``92.6 GB/s``; below 1 with three digits that say something."""
    return f"{gb_per_s:.1f} GB/s" if gb_per_s >= 1 else f"{gb_per_s:.3g} GB/s"
