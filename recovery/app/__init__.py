"""The one place where parts are joined: files, shelves, ports and the engine."""

from recovery.app.files import (
    find_inventory,
    find_profile,
    find_runbook,
    inventory_names,
    payload,
    profile_names,
    runbook_names,
    state_folder,
)
from recovery.app.preparing import Prepared, check, check_names, prepare, read_inventory, verbs

__all__ = [
    "Prepared",
    "check",
    "check_names",
    "find_inventory",
    "find_profile",
    "find_runbook",
    "inventory_names",
    "payload",
    "prepare",
    "profile_names",
    "read_inventory",
    "runbook_names",
    "state_folder",
    "verbs",
]
