"""Inventory text -> Inventory, whatever form it comes in."""

from __future__ import annotations

import re

from recovery.document import read_yaml
from recovery.errors import InventoryError
from recovery.inventory.build import build
from recovery.inventory.draft import Draft
from recovery.inventory.ini_form import draft_from_ini
from recovery.inventory.listing import draft_from_listing
from recovery.inventory.yaml_form import draft_from_yaml
from recovery.model.inventory import Inventory

_YAML_LINE = re.compile(r"---.*|%YAML.*|\{.*|(?:[^\s:#\[]+|\"[^\"]*\"|'[^']*')\s*:(?:\s.*)?")


def read_inventory(text: str, source: str, *, name: str | None = None) -> Inventory:
    """The inventory of an Ansible-compatible YAML or INI text, or of a saved listing.

    The extension of ``source`` decides the form, or else the first line that says something.
    ``name`` is the cluster's; by default the file's without its extension.

    Raises:
        InventoryError: it cannot be used; the message says where and the remedy what to do.
        DocumentError: YAML that cannot be read.
    """
    return build(_draft(text, source), name or _stem(source))


def read_ansible_list(json_text: str, source: str, *, name: str | None = None) -> Inventory:
    """The inventory that ``ansible-inventory --list`` printed (``--export`` keeps group variables).

    Raises:
        InventoryError: it cannot be used.
    """
    return build(draft_from_listing(json_text, source), name or _stem(source))


def _draft(text: str, source: str) -> Draft:
    if text.startswith("#!"):
        raise InventoryError(
            f"{source}:1:1: a program that prints an inventory, not an inventory",
            remedy="pip install 'recover[ansible]', or save the answer of `ansible-inventory"
            f" -i {source} --list --export` and name that file",
        )
    text = text.removeprefix("\ufeff")
    if _is_ini(text, source):
        return draft_from_ini(text, source)
    if '"_meta"' in text and text.lstrip().startswith("{"):
        return draft_from_listing(text, source)
    return draft_from_yaml(read_yaml(text, source))


def _is_ini(text: str, source: str) -> bool:
    extension = source.rpartition("/")[2].rpartition(".")[2].lower()
    if extension in ("yaml", "yml", "json"):
        return False
    if extension in ("ini", "cfg"):
        return True
    said = (line.strip() for line in text.splitlines())
    first = next((line for line in said if line and line[0] not in "#;"), "{")
    return not _YAML_LINE.fullmatch(first)


def _stem(source: str) -> str:
    file = source.rpartition("/")[2]
    return file.rpartition(".")[0] or file
