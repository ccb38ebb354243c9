"""Choosing nodes for a job: as few leaf switches as possible, and no leaf broken up needlessly."""

from __future__ import annotations

from collections.abc import Iterable

from recovery.model.node import Node


def pick_by_leaf(nodes: Iterable[Node], wanted: int) -> tuple[str, ...]:
    """Names of ``wanted`` nodes (all, when there are fewer), on the fewest leaves.

    The largest leaves first; the last part comes from the smallest leaf that holds it, so that
    large leaves stay whole for the next job. Nodes without a leaf are taken last.
    """
    leaves = _by_leaf(nodes)
    nowhere = leaves.pop("", [])
    picked: list[str] = []
    left = wanted
    while left > 0 and leaves:
        name = _next_leaf({leaf: len(names) for leaf, names in leaves.items()}, left)
        picked += leaves.pop(name)[:left]
        left = wanted - len(picked)
    return tuple(picked + nowhere[: max(0, left)])


def _by_leaf(nodes: Iterable[Node]) -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for node in nodes:
        leaves.setdefault(node.leaf or "", []).append(node.name)
    return leaves


def _next_leaf(sizes: dict[str, int], left: int) -> str:
    enough = [leaf for leaf, size in sizes.items() if size >= left]
    if enough:
        return min(enough, key=lambda leaf: sizes[leaf])
    return max(sizes, key=lambda leaf: sizes[leaf])
