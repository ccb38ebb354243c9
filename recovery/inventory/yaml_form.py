"""An Ansible YAML inventory -> Draft.

Source: ansible-core, plugins/inventory/yaml.py (groups at the top; ``hosts``, ``vars`` and
``children`` inside each).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from recovery.document import Document, Path
from recovery.errors import InventoryError
from recovery.inventory.draft import Draft, HostLine, show
from recovery.registry import did_you_mean

_SECTIONS = ("hosts", "vars", "children")


def draft_from_yaml(document: Document) -> Draft:
    """The draft of a YAML inventory.

    Raises:
        InventoryError: not groups of hosts, children and vars, or a file for a plugin of Ansible.
    """
    top = document.value
    if not isinstance(top, Mapping):
        found = "empty" if top is None else show(top)
        raise InventoryError(
            f"{document.place()}: an inventory is groups by name, this is {found}",
            remedy="begin with `all:` and, under it, `hosts:` or `children:`",
        )
    if isinstance(top.get("plugin"), str):
        raise _plugin(document, top["plugin"])
    draft = Draft(document.source)
    for name in top:
        _group(draft, document, (name,), top[name])
    return draft


def _plugin(document: Document, plugin: str) -> InventoryError:
    return InventoryError(
        f"{document.place('plugin')}: a file for Ansible's inventory plugin {plugin!r}, not a list"
        " of nodes",
        remedy="pip install 'recover[ansible]', or save the answer of `ansible-inventory"
        f" -i {document.source} --list --export` and name that file",
    )


def _group(draft: Draft, document: Document, path: Path, body: Any) -> None:
    name = str(path[-1])
    draft.add_group(name, document.place(*path))
    for section, value in _mapping(document, path, body, "a group").items():
        here = (*path, section)
        if section == "hosts":
            _hosts(draft, document, here, value)
        elif section == "vars":
            _vars(draft, document, here, value)
        elif section == "children":
            _children(draft, document, here, value)
        else:
            raise InventoryError(
                f"{document.place(*here)}: group {name!r} cannot have"
                f" {section!r}{did_you_mean(str(section), _SECTIONS)}",
                remedy="a group has `hosts:`, `vars:` and `children:`; put the rest under one",
            )


def _hosts(draft: Draft, document: Document, path: Path, body: Any) -> None:
    group = str(path[-2])
    for pattern, variables in _mapping(document, path, body, "`hosts`").items():
        here = (*path, pattern)
        if variables is not None:
            variables = _mapping(document, here, variables, f"host {pattern!r}")
            _refuse_numbers_as_names(document, here, variables)
        where = partial(document.place, *here)
        draft.hosts.append(HostLine(str(pattern), group, variables or {}, where))


def _vars(draft: Draft, document: Document, path: Path, body: Any) -> None:
    variables = _mapping(document, path, body, "`vars`")
    _refuse_numbers_as_names(document, path, variables)
    for name, value in variables.items():
        draft.set_variable(str(path[-2]), name, value, document.place(*path, name))


def _children(draft: Draft, document: Document, path: Path, body: Any) -> None:
    for child, value in _mapping(document, path, body, "`children`").items():
        here = (*path, child)
        draft.add_child(str(path[-2]), str(child), document.place(*here))
        _group(draft, document, here, value)


def _refuse_numbers_as_names(document: Document, path: Path, variables: Mapping[Any, Any]) -> None:
    for name in variables:
        if not isinstance(name, str) or not name:
            raise InventoryError(
                f"{document.place(*path, name)}: {name!r} cannot be a variable's name",
                remedy="begin it with a letter",
            )


def _mapping(document: Document, path: Path, body: Any, what: str) -> Mapping[Any, Any]:
    if isinstance(body, Mapping):
        return body
    if body is None:
        return {}
    if isinstance(body, str) and path[-1] in ("hosts", "children"):
        return {body: None}  # Ansible takes `hosts: node1` too
    place = document.place(*path)
    if isinstance(body, list):
        remedy = "Ansible wants names as keys: write `node1:` instead of `- node1`"
    else:
        remedy = "write names as keys, one a line, each ending in a colon"
    raise InventoryError(f"{place}: {what} must be names, not {show(body)}", remedy=remedy)
