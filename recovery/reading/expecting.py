"""Expectations of profile and inventory as the checks read them: lists, numbers, words."""

from __future__ import annotations

from collections.abc import Mapping


def wanted(raw: Mapping[str, object], name: str) -> tuple[str, ...]:
    """An expectation that is a list, also written as one text with commas; empty: nobody said."""
    value = raw.get(name)
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, Mapping):
        return tuple(str(key) for key in value)
    return tuple(str(part) for part in value) if isinstance(value, list | tuple) else (str(value),)


def number(raw: Mapping[str, object], name: str) -> float | None:
    """An expectation that is a number; None: nobody said."""
    value = raw.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def word(raw: Mapping[str, object], name: str) -> str | None:
    """An expectation that is a word or a version; None: nobody said."""
    value = raw.get(name)
    return None if value is None else str(value).strip()


def flag(raw: Mapping[str, object], name: str) -> bool | None:
    """An expectation that is true or false; None: nobody said."""
    value = raw.get(name)
    return value if isinstance(value, bool) else None
