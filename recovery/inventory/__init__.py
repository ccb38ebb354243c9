"""Inventory text -> Inventory; selecting and folding nodes; hardware profiles."""

from recovery.inventory.hostlist import expand, fold
from recovery.inventory.read import read_ansible_list, read_inventory
from recovery.inventory.selection import select

__all__ = ["expand", "fold", "read_ansible_list", "read_inventory", "select"]
