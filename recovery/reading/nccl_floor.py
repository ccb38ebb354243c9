"""Which bandwidth a launch of nccl-tests must reach, and which of its rows is held against it.

A floor compares only at the same collective, payload, node count and GPU count. The line
"Avg bus bandwidth" is never compared: it averages every size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.reading.nccl import NcclResult, Row
from recovery.reading.nccl_size import size_bytes


@dataclass(frozen=True, slots=True)
class Floor:
    """The least bus bandwidth in GB/s at a payload (None: at the largest one that ran)."""

    busbw_gb_per_s: float
    payload_bytes: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What ran: collective, nodes, GPUs of a node (None: not known), algorithm if forced."""

    collective: str
    n_nodes: int
    gpus_per_node: int | None = None
    algorithm: str = ""


def floors_for(rows: Iterable[Mapping[str, Any]], shape: Shape) -> tuple[Floor, ...]:
    """The floors among a profile's ``busbw`` rows that hold for this shape.

    A row that names an algorithm holds only for a launch that forced it, one that names none only
    for a launch that forced none: the same NICs give other numbers.
    """
    return tuple(_floor(row) for row in rows if _fits(row, shape) and _same_algorithm(row, shape))


def _fits(row: Mapping[str, Any], shape: Shape) -> bool:
    gpus, each = row.get("gpus"), shape.gpus_per_node
    right_gpus = gpus is None or each is None or int(gpus) in (each, each * shape.n_nodes)
    nodes = int(row.get("nodes") or 1)
    return (
        row.get("kind", "floor") == "floor"
        and row.get("collective") == shape.collective
        and nodes == shape.n_nodes
        and right_gpus
    )


def _same_algorithm(row: Mapping[str, Any], shape: Shape) -> bool:
    return str(row.get("algorithm") or "").lower() == shape.algorithm.lower()


def _floor(row: Mapping[str, Any]) -> Floor:
    payload = size_bytes(str(row.get("payload")).split("/")[0]) if row.get("payload") else None
    return Floor(float(row["value"]), payload, str(row.get("source") or ""))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row against one floor. ``reached`` is None where the two do not compare."""

    row: Row
    floor: Floor
    reached: bool | None


def compare(result: NcclResult, floors: Iterable[Floor]) -> Comparison | None:
    """The comparison at one payload row; None without a finished row or without a floor.

    A floor of exactly a payload that ran is taken first, the lowest of several. A larger payload
    may stand in, since bandwidth grows with it; a smaller one only where it already reaches the
    floor.
    """
    options = sorted(floors, key=lambda floor: floor.busbw_gb_per_s)
    largest = result.largest
    if largest is None or not options:
        return None
    for floor in options:
        row = None if floor.payload_bytes is None else result.row_at(floor.payload_bytes)
        if row is not None:
            return Comparison(row, floor, row.busbw_gb_per_s >= floor.busbw_gb_per_s)
    floor = options[0]
    reached = largest.busbw_gb_per_s >= floor.busbw_gb_per_s
    too_small = floor.payload_bytes is not None and largest.size_bytes < floor.payload_bytes
    return Comparison(largest, floor, None if too_small and not reached else reached)
