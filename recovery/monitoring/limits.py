"""What is healthy for a kind of machine, as far as a monitoring system can see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one hardware profile; None where it says nothing, and no rule is made.

    ``models`` are product names, as the label ``modelName`` of dcgm-exporter has them.
    """

    profile: str
    models: tuple[str, ...]
    temp_warn_c: float | None = None
    temp_max_c: float | None = None
    mem_temp_max_c: float | None = None
    power_limit_w: float | None = None

    @property
    def selector(self) -> str:
        """``{modelName=~"..."}``: the cards of this profile."""
        names = "|".join(re.sub(r"([.+*?()\[\]{}|^$\\])", r"\\\\\1", name) for name in self.models)
        return f'{{modelName=~"{names}"}}'


def limits_of(profile: str, models: tuple[str, ...], expected: Mapping[str, Any]) -> Limits:
    """The limits among a profile's expectations."""
    names = ("temp_warn_c", "temp_max_c", "mem_temp_max_c", "power_limit_w")
    numbers = {
        name: expected[name] for name in names if isinstance(expected.get(name), int | float)
    }
    return Limits(profile=profile, models=models, **numbers)
