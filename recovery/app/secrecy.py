"""Secrets: found when a run starts, for the engine alone, struck out of all that is written."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recovery.app.notifying import VARIABLE
from recovery.errors import InputError
from recovery.model.inventory import Inventory
from recovery.model.runbook import Plan

_SECRET_NAME = re.compile(
    r"(?i)(passw|secret|token|passphrase|credential)(?!.*_(file|env|command)$)|_pass$"
    r"|^(notify|metrics_pushgateway)$"  # addresses that hold tokens
)
SHORTEST = 4  # striking out every "a" would leave no text; a shorter secret is none


def resolved(plan: Plan, inventory: Inventory) -> Plan:
    """The plan with the values of its secrets, for the engine only: it is never written.

    Raises:
        InputError: a secret that is nowhere.
    """
    found = {name: _value(plan, name, inventory) for name in plan.secrets}
    return replace(plan, variables={**plan.variables, **found})


def _value(plan: Plan, name: str, inventory: Inventory) -> Any:
    reference = plan.variables.get(name)
    word = str(reference.get("secret", "")) if isinstance(reference, Mapping) else ""
    kind, _, where = word.partition(":")
    if kind == "inventory" and where in inventory.variables:
        return inventory.variables[where]
    if kind == "env" and where in os.environ:
        return os.environ[where]
    raise InputError(
        f"the secret {name!r} is not there: {word or 'it names no source'}",
        remedy=f"export {where}=... before the run" if kind == "env" else "write secret: env:NAME",
    )


def secret_values(plan: Plan, inventory: Inventory) -> tuple[str, ...]:
    """All values to strike out, longest first: of the plan's secrets, and of the inventory's."""
    found = set(_texts({n: plan.variables[n] for n in plan.secrets}, secret=True))
    return _spelled(found | _of_inventory(inventory) | _addresses(plan))


def people_of(plan: Plan) -> tuple[str, ...]:
    """The addresses of people that the plan itself holds: a runbook may name some plainly."""
    return _spelled(_addresses(plan))


def _addresses(plan: Plan) -> set[str]:
    found = _texts(plan.variables.get(VARIABLE, ()), secret=True)
    return {text for text in found if not text.startswith("env:")}


def inventory_secrets(inventory: Inventory) -> tuple[str, ...]:
    """The secret values of an inventory alone, longest first."""
    return _spelled(_of_inventory(inventory))


def _of_inventory(inventory: Inventory) -> set[str]:
    everyone = (inventory.variables, *(n.variables for n in inventory.nodes.values()))
    return {text for variables in everyone for text in _texts(variables, secret=False)}


def _spelled(found: set[str]) -> tuple[str, ...]:
    spelled = {word for f in found if len(f) >= SHORTEST for word in _spellings(f)}
    return tuple(sorted(spelled, key=len, reverse=True))


def _spellings(secret: str) -> tuple[str, ...]:
    """A secret as it stands, as a shell quotes it, and as JSON writes it."""
    quoted = shlex.quote(secret)
    inner = quoted[1:-1] if quoted != secret else secret
    texts = (json.dumps(secret), json.dumps(secret, ensure_ascii=False))
    return (secret, inner, *(t[1:-1] for t in texts))


def _texts(value: Any, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, secret=secret or bool(_SECRET_NAME.search(str(name))))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, secret=secret)
    elif secret and isinstance(value, str):
        yield value
