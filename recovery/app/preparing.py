"""Inventory, runbook and profiles, read and joined: the plan and all it was made from."""

from __future__ import annotations

import functools
import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recovery import inventory as inventories
from recovery import plan as plans
from recovery.app import files
from recovery.app.groups import RunGroups
from recovery.errors import InventoryError
from recovery.model.check import Check
from recovery.model.inventory import Inventory
from recovery.model.kind import Verb
from recovery.model.node import Node
from recovery.model.runbook import Plan
from recovery.registry import Shelf, module_names, pick

AnyVerb = Verb[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan, and what it was made from."""

    plan: Plan
    inventory: Inventory
    verbs: Mapping[str, AnyVerb]
    fold: Callable[[Iterable[str]], str]
    inputs: Mapping[str, Any]

    def expectations(self, node: Node) -> Mapping[str, Any]:
        """What healthy means for this node: its hardware profile, inventory variables over it."""
        return inventories.merge_expectations(profile(node.profile), node)


@functools.cache
def profile(name: str | None) -> inventories.Profile | None:
    """The hardware profile called so; None for None.

    Raises:
        InventoryError: there is none, or it cannot be read.
    """
    return inventories.read_profile(*files.find_profile(name)) if name else None


@functools.cache
def verbs() -> Mapping[str, AnyVerb]:
    """All verbs of the runbook language, each imported when a runbook names it."""
    return Shelf("recovery.steps", Verb, one_each=True)


def check(name: str) -> Check[Any, Any]:
    """The check called so.

    Raises:
        RegistryError: there is none.
    """
    return pick("recovery.checks", Check, name)


@functools.cache
def check_names() -> Collection[str]:
    """Names of all checks; asking for one imports that one alone."""
    return Shelf("recovery.checks", Check)


def check_modules() -> tuple[str, ...]:
    """Names of the files on the shelf of checks; cheap, nothing is imported."""
    return module_names("recovery.checks")


def read_inventory(cluster: str) -> Inventory:
    """The inventory called so; a dynamic one is asked through `ansible-inventory`.

    Raises:
        InventoryError: it cannot be found or read.
    """
    path = files.inventory_path(cluster)
    text, source = files.find_inventory(cluster)
    if _is_dynamic(path, text):
        found = inventories.read_ansible_list(_asked_ansible(path), source, name=path.stem)
    else:
        found = inventories.read_inventory(text, source, name=path.stem)
    named = found.variables.get("cluster")
    return replace(found, name=named) if isinstance(named, str) and named else found


def _is_dynamic(path: Path, text: str) -> bool:
    executable = bool(path.stat().st_mode & 0o111) and text.startswith("#!")
    return executable or any(line.startswith("plugin:") for line in text.splitlines()[:50])


def _asked_ansible(path: Path) -> str:
    beside = Path(sys.executable).parent / "ansible-inventory"
    tool = str(beside) if beside.is_file() else shutil.which("ansible-inventory")
    if tool is None:
        raise InventoryError(
            f"{path}: a dynamic inventory needs ansible-inventory",
            remedy="pip install 'recover[ansible]'",
        )
    asked = subprocess.run(
        [tool, "-i", str(path), "--list", "--export"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    try:
        json.loads(asked.stdout)
    except ValueError as error:
        words = (asked.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise InventoryError(
            f"{path}: ansible-inventory failed: {words[:200]}",
            remedy=f"ansible-inventory -i {path} --list --export",
        ) from error
    return asked.stdout


def prepare(
    cluster: str,
    *,
    runbook: str = "power-loss",
    overrides: Mapping[str, str] | None = None,
    nodes: str | None = None,
    seed: int | None = None,
    groups: Mapping[str, Iterable[str]] | None = None,
) -> Prepared:
    """Reads everything and makes the plan; touches no node.

    ``groups`` are the nodes of ``@drained`` and ``@quarantined``; those that are not given are
    found out when an expression names them.

    Raises:
        InputError: whatever is wrong with what we were given, with its place and remedy.
    """
    inventory = read_inventory(cluster)
    chooser = RunGroups(inventory, asked={n: tuple(v) for n, v in (groups or {}).items()})
    book = plans.read_runbook(*files.find_runbook(runbook), verbs())
    chosen = secrets.randbelow(2**31) if seed is None else seed
    plan = plans.build(
        book,
        inventory,
        verbs(),
        overrides=dict(overrides or {}),
        nodes=nodes,
        load=files.find_runbook,
        select=lambda expression: chooser.select(expression, empty_ok=True),
        fold=inventories.fold,
        check_names=check_names(),
        seed=chosen,
    )
    inputs: dict[str, Any] = {
        "cluster": cluster,
        "runbook": runbook,
        "overrides": dict(overrides or {}),
        "nodes": nodes,
        "seed": chosen,
    }
    if chooser.asked:
        inputs["groups"] = {name: list(nodes) for name, nodes in chooser.asked.items()}
    prepared = Prepared(
        plan=plan, inventory=inventory, verbs=verbs(), fold=inventories.fold, inputs=inputs
    )
    for node in plan.nodes:  # a profile that is not there is our mistake: say so now
        prepared.expectations(inventory.nodes[node])
    return prepared
