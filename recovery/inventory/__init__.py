"""Inventory text -> Inventory; selecting and folding nodes; hardware profiles."""

from recovery.inventory.hostlist import expand, fold
from recovery.inventory.profile import Profile, merge_expectations, read_profile
from recovery.inventory.read import read_ansible_list, read_inventory
from recovery.inventory.schema import inventory_schema
from recovery.inventory.selection import select

__all__ = [
    "Profile",
    "expand",
    "fold",
    "inventory_schema",
    "merge_expectations",
    "read_ansible_list",
    "read_inventory",
    "read_profile",
    "select",
]
