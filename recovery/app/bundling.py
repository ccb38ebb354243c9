"""A vendor's ticket joined: the run, its evidence, what the inventory knows to be private."""

from __future__ import annotations

import os
from pathlib import Path

import recovery
from recovery.app import preparing
from recovery.app.secrecy import inventory_secrets
from recovery.engine.history import RunStory, story_of
from recovery.errors import InputError, RecoveryError
from recovery.model.inventory import Inventory
from recovery.store.journal import read_journal
from recovery.store.runs import RunFolder
from recovery.tickets import Private, Ticket, packed, ticket_of
from recovery.tickets.striking import known_users


def read_ticket(folder: RunFolder, node: str, also: tuple[str, ...]) -> tuple[Ticket, Private, str]:
    """The ticket, what is private in it, and a warning where the inventory could not be asked.

    Raises:
        InputError: the run has no such node, or no such evidence.
        StoreError: the journal cannot be read.
    """
    story = story_of(read_journal(folder.journal))
    ticket = ticket_of(story, node, also=also)
    try:
        inventory = _inventory(story)
    except RecoveryError as error:
        words = f"its secrets and hosts are not known, the inventory is gone: {error.message}"
        return ticket, _private(story, node, None), words
    return ticket, _private(story, node, inventory), ""


def _inventory(story: RunStory) -> Inventory:
    named = story.started.inputs.get("cluster", "") if story.started else ""
    return preparing.read_inventory(str(named))


def _private(story: RunStory, node: str, inventory: Inventory | None) -> Private:
    started = story.started
    planned, owner = (started.nodes, started.owner) if started else ((), "")
    machines = inventory.nodes if inventory else {}
    bmcs = (str(n.variables.get("bmc") or "") for n in machines.values() if n.name != node)
    others = (*planned, *machines, owner.partition("@")[2].partition(" ")[0], *bmcs)
    own = machines[node].address if node in machines else None
    return Private(
        node=node,
        others=tuple(dict.fromkeys(name for name in others if name and name != node)),
        own_addresses=(own,) if own else (),
        users=known_users([owner, *(n.user or "" for n in machines.values())]),
        secrets=inventory_secrets(inventory) if inventory else (),
    )


def write_ticket(
    folder: RunFolder, ticket: Ticket, private: Private, output: Path
) -> tuple[Path, int]:
    """Writes the archive, readable for its owner alone; returns its path and its size.

    Raises:
        InputError: it cannot be written there, or a file is there already.
    """
    content = packed(ticket, folder.evidence.get, private, version=recovery.__version__)
    try:
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError as error:
        raise InputError(
            f"{output}: cannot be written: {error.strerror}", remedy="name another file with -o"
        ) from error
    return output, len(content)
