"""What ``ansible-inventory --list`` printed -> Draft: the way in for plugins and scripts.

Source: ansible-core, cli/inventory.py (``_meta.hostvars`` by host; each group has ``hosts``,
``children`` and, with ``--export``, ``vars``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recovery.errors import InventoryError
from recovery.inventory.draft import Draft, HostLine, show
from recovery.model.runbook import Place


def draft_from_listing(text: str, source: str) -> Draft:
    """The draft of a listing.

    Raises:
        InventoryError: not JSON, or not what ``ansible-inventory --list`` prints.
    """
    try:
        top = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(source, error.lineno, error.colno)
        raise InventoryError(
            f"{place}: not JSON: {error.msg}",
            remedy="save exactly what `ansible-inventory --list --export` prints",
        ) from error
    place = Place(source, 1, 1)
    draft = Draft(source)
    reader = _Reader(draft, place, _hostvars(top, place))
    for name, body in top.items():
        if name != "_meta":
            reader.group(name, body)
    reader.rest()
    if not draft.variables and draft.hosts:
        draft.warnings.append(
            f"{place}: no group variables in this listing, so none for the whole run:"
            " list with --export"
        )
    return draft


def _hostvars(top: Any, place: Place) -> dict[str, Mapping[str, object]]:
    meta = top.get("_meta") if isinstance(top, Mapping) else None
    hostvars = meta.get("hostvars", {}) if isinstance(meta, Mapping) else None
    if not isinstance(hostvars, Mapping):
        raise _strange(place, "_meta", top)
    for host, variables in hostvars.items():
        if not isinstance(variables, Mapping):
            raise _strange(place, host, variables)
    return dict(hostvars)


class _Reader:
    def __init__(self, draft: Draft, place: Place, rest: dict[str, Mapping[str, object]]) -> None:
        self.draft, self.place, self.unlisted = draft, place, rest

    def group(self, name: str, body: Any) -> None:
        if not isinstance(body, Mapping):
            raise _strange(self.place, name, body)
        self.draft.add_group(name, self.place)
        for host in _names(body, "hosts", self.place):
            self.host(host, name)
        for child in _names(body, "children", self.place):
            self.draft.add_child(name, child, self.place)
        variables = body.get("vars", {})
        if not isinstance(variables, Mapping):
            raise _strange(self.place, f"{name}.vars", variables)
        for variable, value in variables.items():
            self.draft.set_variable(name, variable, value, self.place)

    def host(self, host: str, group: str) -> None:
        variables = self.unlisted.pop(host, {})  # once is enough: they are the host's own
        self.draft.hosts.append(HostLine(host, group, variables, self.where))

    def where(self, _name: str) -> Place:
        return self.place

    def rest(self) -> None:
        for host in list(self.unlisted):
            self.draft.add_group("ungrouped", self.place)
            self.host(host, "ungrouped")


def _names(body: Mapping[str, Any], key: str, place: Place) -> list[str]:
    names = body.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _strange(place, key, names)
    return names


def _strange(place: Place, what: str, value: object) -> InventoryError:
    return InventoryError(
        f"{place}: {what!r} is not as `ansible-inventory --list` prints it: {show(value)}",
        remedy="save exactly what `ansible-inventory --list --export` prints",
    )
