"""A plan as JSON-able values and back, and the digest that names it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from recovery.model.runbook import (
    Effect,
    Gate,
    GateKind,
    Limits,
    OnFail,
    Place,
    Plan,
    Rerun,
    Retry,
    RetryOn,
    Step,
)

_TUPLES = ("nodes", "batch", "expect", "keep", "late", "commands")
# What a person may change, or a seed decides, without its becoming another plan.
_NOT_IN_DIGEST = frozenset({"place", "describe", "about", "seed", "digest", "n_waves"})


def plan_as_values(plan: Plan) -> dict[str, Any]:
    """The plan for ``--format json`` and the journal; `plan_from_values` reads it again."""
    values: dict[str, Any] = _plain(plan)
    values["finally"] = values.pop("finally_")
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(one) for one in value)
    if isinstance(value, (list, tuple)):
        return [one if type(one) is str else _plain(one) for one in value]  # mostly names
    return value


def plan_from_values(values: Mapping[str, Any]) -> Plan:
    """The plan that `plan_as_values` wrote."""
    rest = {k: v for k, v in values.items() if k != "finally"}
    return Plan(
        **{
            **rest,
            "nodes": tuple(values["nodes"]),
            "steps": tuple(_step(one) for one in values["steps"]),
            "finally_": tuple(_step(one) for one in values["finally"]),
            "limits": Limits(**values["limits"]),
            "secrets": tuple(values["secrets"]),
        }
    )


def _step(values: Mapping[str, Any]) -> Step:
    retry = values["retry"]
    return Step(
        **{
            **values,
            **{name: tuple(values[name]) for name in _TUPLES},
            "place": Place(**values["place"]),
            "retry": Retry(**{**retry, "on": frozenset(map(RetryOn, retry["on"]))}),
            "gate": Gate(GateKind(values["gate"]["kind"]), values["gate"]["number"]),
            "on_fail": OnFail(values["on_fail"]),
            "on_fail_steps": tuple(_step(one) for one in values["on_fail_steps"]),
            "effect": Effect(values["effect"]),
            "rerun": Rerun(values["rerun"]),
        }
    )


def digest_of(plan: Plan) -> str:
    """Sha256 over all that decides what the plan does, as hex."""
    what = _without(plan_as_values(plan))
    text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _without(value: Any, *, top: bool = True) -> Any:
    """Values without the names that do not count; those inside variables and fields do."""
    if isinstance(value, list):
        return [_without(one, top=top) for one in value]
    if not isinstance(value, dict) or not top:
        return value
    return {
        key: _without(one, top=key in ("steps", "finally", "on_fail_steps"))
        for key, one in value.items()
        if key not in _NOT_IN_DIGEST
    }
