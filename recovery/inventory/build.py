"""Draft -> Inventory: names expanded, variables merged by Ansible's precedence, nodes made."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.errors import InventoryError
from recovery.inventory.draft import Draft, HostLine, show
from recovery.inventory.fields import Fields, fields_of, refuse
from recovery.inventory.hostlist import fold
from recovery.inventory.ranges import PatternError, expand_pattern, split_port
from recovery.inventory.tree import Merged, Tree, tree_of
from recovery.model.inventory import Inventory
from recovery.model.node import Node
from recovery.model.runbook import Place

Mentions = dict[str, tuple[HostLine, ...]]


def build(draft: Draft, name: str) -> Inventory:
    """The inventory that a draft describes.

    Raises:
        InventoryError: a bad host pattern, a group cycle, values that contradict each other, a
            field that cannot be used, two nodes at one address, or no node at all.
    """
    tree = tree_of(draft)
    ports: dict[int, int] = {}
    mentions = _mentions(draft, ports)
    if not mentions:
        raise InventoryError(
            f"{Place(draft.source, 1, 1)}: no node in it", remedy="list nodes under `hosts:`"
        )
    members: dict[str, list[str]] = {group: [] for group in ("all", *draft.groups)}
    nodes: dict[str, Node] = {}
    for node_name, lines in mentions.items():
        merged = tree.merged(tuple(dict.fromkeys(line.group for line in lines)))
        nodes[node_name] = _node(node_name, lines, merged, ports, tree)
        for group in merged.order:
            members.setdefault(group, []).append(node_name)
    variables = dict(draft.variables.get("all", {}))
    if variables.get("shared_addresses") is not True:
        _refuse_shared_addresses(nodes, mentions)
    return Inventory(
        name=name,
        source=draft.source,
        nodes=nodes,
        groups={group: tuple(names) for group, names in members.items()},
        variables=variables,
        warnings=(
            *draft.warnings,
            *_listed_twice(mentions),
            *_named_like_a_group(nodes, draft),
            *tree.warnings,
        ),
    )


def _mentions(draft: Draft, ports: dict[int, int]) -> Mentions:
    found: Mentions = {}
    for line in draft.hosts:
        pattern, port = split_port(line.pattern)
        if port is not None:
            ports[id(line)] = port
        try:
            names = expand_pattern(pattern)
        except PatternError as error:
            raise InventoryError(f"{line.place}: {error.message}", remedy=error.remedy) from error
        alone = (line,)
        for name in names:
            found[name] = (*found[name], line) if name in found else alone
    return found


def _node(
    name: str, lines: tuple[HostLine, ...], merged: Merged, ports: Mapping[int, int], tree: Tree
) -> Node:
    own = _own_variables(name, lines, ports)
    variables = {**merged.variables, **own} if own else merged.variables
    try:
        fields = fields_of(variables)
    except ValueError as error:
        key = str(error)
        raise refuse(_place_of(key, lines, merged, tree), key, variables[key]) from None
    return _with_fields(name, merged, variables, fields)


def _with_fields(
    name: str, merged: Merged, variables: Mapping[str, object], fields: Fields
) -> Node:
    return Node(
        name=name,
        address=fields.address,
        port=fields.port,
        user=fields.user,
        groups=merged.groups,
        profile=fields.profile,
        leaf=fields.leaf,
        rack=fields.rack,
        transport=fields.transport,
        variables=variables,
    )


def _own_variables(
    name: str, lines: tuple[HostLine, ...], ports: Mapping[int, int]
) -> Mapping[str, object]:
    if len(lines) == 1 and not ports:
        return lines[0].variables
    found: dict[str, object] = {}
    setters: dict[str, HostLine] = {}
    for line in lines:
        port = {"ansible_port": ports[id(line)]} if id(line) in ports else {}
        for key, value in {**port, **line.variables}.items():
            if key in found and found[key] != value:
                raise InventoryError(
                    f"{line.where(key)}: node {name!r} gets {key!r} = {show(value)} here and"
                    f" {show(found[key])} at {setters[key].where(key)}",
                    remedy="delete one of the two",
                )
            found[key] = value
            setters.setdefault(key, line)
    return found


def _place_of(key: str, lines: tuple[HostLine, ...], merged: Merged, tree: Tree) -> Place:
    for line in lines:
        if key in line.variables:
            return line.where(key)
    for group in reversed(merged.order):
        if (group, key) in tree.draft.variable_places:
            return tree.draft.variable_places[(group, key)]
    return lines[0].place


def _refuse_shared_addresses(nodes: Mapping[str, Node], mentions: Mentions) -> None:
    seen: dict[tuple[str, int, object], str] = {}
    for name, node in nodes.items():
        bastion = node.variables.get("bastion")  # behind another one, the same address is another
        where = (node.address or name, node.port or 22, str(bastion) if bastion else None)
        first = seen.setdefault(where, name)
        if first is not name:
            raise InventoryError(
                f"{mentions[name][0].where('ansible_host')}: nodes {first!r} and {name!r} are both"
                f" {where[0]}:{where[1]} (the first at"
                f" {mentions[first][0].where('ansible_host')})",
                remedy="correct one address, or set shared_addresses: true in the vars of `all`",
            )


def _listed_twice(mentions: Mentions) -> list[str]:
    """One warning for each two lines of a group that name the same nodes."""
    doubles: dict[tuple[int, int], tuple[HostLine, HostLine, list[str]]] = {}
    for name, lines in mentions.items():
        first_in: dict[str, HostLine] = {}
        for line in lines if len(lines) > 1 else ():
            first = first_in.setdefault(line.group, line)
            if first is not line:
                key = (id(first), id(line))
                doubles.setdefault(key, (first, line, []))[2].append(name)
    return [
        f"{second.place}: {fold(names)} listed twice in group {second.group!r} (first at"
        f" {first.place}); each is one node"
        for first, second, names in doubles.values()
    ]


def _named_like_a_group(nodes: Mapping[str, Node], draft: Draft) -> list[str]:
    return [
        f"{place}: {group!r} is a group and a node; write @{group} for the group"
        for group, place in draft.groups.items()
        if group in nodes
    ]
