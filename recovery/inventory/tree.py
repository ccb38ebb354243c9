"""Groups inside groups: who holds whom, how deep, and whose variables win.

Ansible's order: ``all`` first, then by depth, ``ansible_group_priority`` and name; a later group
wins. Depth is the longest way down from ``all``.

Source: ansible-core, inventory/group.py and vars/manager.py (``sort_groups``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recovery.errors import InventoryError
from recovery.inventory.draft import Draft, show

PRIORITY = "ansible_group_priority"


@dataclass(frozen=True, slots=True)
class Merged:
    """For nodes that stand in the same groups: all their groups, and the groups' variables."""

    groups: tuple[str, ...]  # weakest first, without `all`
    variables: Mapping[str, object]
    order: tuple[str, ...]  # the same with `all`


@dataclass(slots=True)
class Tree:
    """The groups of one draft; `merged` answers once per set of groups."""

    draft: Draft
    parents: dict[str, list[str]]
    rank: dict[str, tuple[int, int, str]]
    warnings: list[str] = field(default_factory=list)
    known: dict[tuple[str, ...], Merged] = field(default_factory=dict)
    warned: set[tuple[str, str, str]] = field(default_factory=set)

    def merged(self, direct: tuple[str, ...]) -> Merged:
        """Groups and variables of nodes that are listed in exactly these groups."""
        found = self.known.get(direct)
        if found is None:
            found = self.known[direct] = self._merge(direct)
        return found

    def _merge(self, direct: tuple[str, ...]) -> Merged:
        above = self._above(direct) | {"all"}
        if above == {"all"}:
            above.add("ungrouped")  # as Ansible calls nodes that stand under `all` only
        order = tuple(sorted(above, key=self.rank.__getitem__))
        values: dict[str, object] = {}
        setters: dict[str, str] = {}
        for group in order:
            for name, value in self.draft.variables.get(group, {}).items():
                if name == PRIORITY:
                    continue
                if name in values and values[name] != value:
                    self._compare(setters[name], group, name)
                values[name], setters[name] = value, group
        return Merged(tuple(g for g in order if g not in ("all", "ungrouped")), values, order)

    def _above(self, direct: Iterable[str]) -> set[str]:
        found: set[str] = set()
        ahead = list(direct)
        while ahead:
            group = ahead.pop()
            if group not in found:
                found.add(group)
                ahead.extend(self.parents.get(group, ()))
        return found

    def _compare(self, weaker: str, stronger: str, name: str) -> None:
        key = (weaker, stronger, name)
        if weaker == "all" or weaker in self._above([stronger]) or key in self.warned:
            return
        self.warned.add(key)
        first = self.draft.variable_places[(weaker, name)]
        second = self.draft.variable_places[(stronger, name)]
        values = self.draft.variables
        self.warnings.append(
            f"{second}: {name!r} is {show(values[stronger][name])} by group {stronger!r} and"
            f" {show(values[weaker][name])} by group {weaker!r} ({first}) for the same nodes;"
            f" {stronger!r} wins, as in Ansible"
        )


def tree_of(draft: Draft) -> Tree:
    """The groups of a draft, in order.

    Raises:
        InventoryError: a group that holds itself, or a priority that is not a number.
    """
    parents: dict[str, list[str]] = {}
    for parent, children in draft.children.items():
        for child in children:
            parents.setdefault(child, []).append(parent)
    names = {"all", "ungrouped", *draft.groups, *draft.children, *parents, *draft.variables}
    depths = _depths(draft, parents, names)
    rank = {name: (depths[name], _priority(draft, name), name) for name in names}
    return Tree(draft, parents, rank)


def _depths(draft: Draft, parents: Mapping[str, list[str]], names: set[str]) -> dict[str, int]:
    depths: dict[str, int] = {}
    waiting = dict.fromkeys(["all", *sorted(names)])
    while waiting:
        ready = [n for n in waiting if all(p in depths for p in parents.get(n, ()))]
        if not ready:
            raise _cycle(draft, parents, next(iter(waiting)), set(waiting))
        for name in ready:
            above = [depths[parent] for parent in parents.get(name, ())]
            depths[name] = 0 if name == "all" else 1 + max(above, default=0)
            del waiting[name]
    return depths


def _cycle(
    draft: Draft, parents: Mapping[str, list[str]], start: str, waiting: set[str]
) -> InventoryError:
    way = [start]
    while len(set(way)) == len(way):  # every waiting group has a waiting parent
        way.append(next(p for p in parents[way[-1]] if p in waiting))
    ring = way[way.index(way[-1]) :][::-1]
    place = draft.children[ring[0]][ring[1]]
    return InventoryError(
        f"{place}: group {ring[0]!r} holds itself: {' > '.join(ring)}",
        remedy=f"take {ring[1]!r} out of the children of {ring[0]!r}",
    )


def _priority(draft: Draft, group: str) -> int:
    value = draft.variables.get(group, {}).get(PRIORITY, 1)
    try:
        return int(str(value))
    except ValueError as error:
        place = draft.variable_places[(group, PRIORITY)]
        raise InventoryError(
            f"{place}: {PRIORITY} must be a whole number, not {show(value)}",
            remedy="write a number, or leave it out",
        ) from error
