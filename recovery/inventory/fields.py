"""Inventory variables that say how to reach a node -> typed fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from recovery.errors import InventoryError
from recovery.inventory.draft import show
from recovery.model.runbook import Place

# What reaches ssh must not look like an option or carry blanks; a template never was rendered.
_WORD = re.compile(r"[^\s\-{][^\s{]*")
_DIGITS = re.compile(r"[0-9]{1,5}")
_LABEL = re.compile(r"(?!.*\{\{)\S(?:.*\S)?")

_REMEDIES = {
    "ansible_host": "write the address or the name, without templates or blanks",
    "ansible_port": "write a number from 1 to 65535",
    "ansible_user": "write the login name, without templates or blanks",
    "profile": "write the name of a file in inventories/profiles, such as h100-sxm8",
    "leaf": "write the name of the leaf switch",
    "rack": "write the name of the rack",
    "transport": "write ssh, local, srun or replay",
}


@dataclass(frozen=True, slots=True)
class Fields:
    """What `Node` takes from the variables."""

    address: str | None
    port: int | None
    user: str | None
    profile: str | None
    leaf: str | None
    rack: str | None
    transport: str


def fields_of(variables: Mapping[str, object]) -> Fields:
    """The fields of a node.

    Raises:
        ValueError: the name of the variable that cannot be used; `refuse` makes the message.
    """
    return Fields(
        _text(variables, "ansible_host", _WORD),
        _port(variables),
        _text(variables, "ansible_user", _WORD),
        _text(variables, "profile", _WORD),
        _text(variables, "leaf", _LABEL),
        _text(variables, "rack", _LABEL),
        _text(variables, "transport", _WORD) or "ssh",
    )


def refuse(place: Place, key: str, value: object) -> InventoryError:
    """The error for a variable that `fields_of` could not use."""
    return InventoryError(
        f"{place}: {key} cannot be {show(value)}", remedy=_REMEDIES.get(key, "correct it")
    )


def _text(variables: Mapping[str, object], key: str, shape: re.Pattern[str]) -> str | None:
    value = variables.get(key)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not shape.fullmatch(value):
        raise ValueError(key)
    return value


def _port(variables: Mapping[str, object]) -> int | None:
    value = variables.get("ansible_port")
    if value is None:
        return None
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 65535:
        raise ValueError("ansible_port")
    return value
