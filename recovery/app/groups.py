"""The groups that runs fill: who is drained by the scheduler's word, who is set aside by ours.

Both are answers to questions, asked when an expression names them. A plan keeps the answers among
its inputs, so that a resumed run is the same plan whatever has changed since.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recovery import inventory as inventories
from recovery.app import files
from recovery.app.scheduler import use_of
from recovery.app.stories import stories_of
from recovery.engine.health import histories
from recovery.inventory.selection import RUN_GROUPS
from recovery.model.inventory import Inventory

Groups = Mapping[str, tuple[str, ...]]
DRAINED, QUARANTINED = RUN_GROUPS


@dataclass(slots=True)
class RunGroups:
    """Selects nodes; finds who is in a run's group when an expression names it.

    ``asked`` holds the groups that were found, or that are given from an earlier time.
    """

    inventory: Inventory
    state: Path | None = None
    asked: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def select(self, expression: str, *, empty_ok: bool = False) -> tuple[str, ...]:
        """Names of the nodes that an expression means, in inventory order.

        Raises:
            SelectionError: an expression that cannot be read, or means nobody.
            SchedulerError: nobody says who is drained.
        """
        for name in RUN_GROUPS:
            if f"@{name}" in expression and name not in self.asked:
                self.asked[name] = self._found(name)
        return inventories.select(
            self.inventory, expression, extra_groups=self.asked, empty_ok=empty_ok
        )

    def _found(self, name: str) -> tuple[str, ...]:
        if name == DRAINED:
            use = use_of(self.inventory.variables, self.inventory.nodes)
            return tuple(node for node, seen in use.by_node.items() if seen.out)
        state = self.state or files.state_folder(os.environ.get("RECOVER_STATE"))
        known = histories(stories_of(state, self.inventory.name))
        return tuple(node for node, history in known.items() if history.aside is not None)
