"""Who reaches whom by what, whatever tool printed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery.reading.smi_errors import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A matrix of links. ``cut`` says why the text cannot be whole; empty where it is.

    ``links`` maps (row, column) to the printed word. Affinities are None where the tool has no
    such column, and None for a GPU where it prints none. ``weights``, ``hops`` and ``numa`` are
    rocm-smi's. ``troubles`` are error lines of the tool beside the matrix.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...] = ()
    links: Mapping[tuple[str, str], str] = field(default_factory=dict)
    nic_names: Mapping[str, str] = field(default_factory=dict)
    cpu_affinity: Mapping[str, str | None] | None = None
    numa_affinity: Mapping[str, str | None] | None = None
    gpu_numa_id: Mapping[str, str | None] | None = None
    n_complete_rows: int = 0
    soc_means: str | None = None
    cut: str = ""
    is_rocm: bool = False
    weights: Mapping[tuple[str, str], str] | None = None
    hops: Mapping[tuple[str, str], str] | None = None
    numa: Mapping[str, int | None] | None = None
    troubles: tuple[Trouble, ...] = ()

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every pair of GPUs once, in the order of the matrix."""
        return tuple(
            (one, other) for i, one in enumerate(self.gpus) for other in self.gpus[i + 1 :]
        )

    def pair_links(self) -> dict[tuple[str, str], str]:
        """The link of every pair that is printed, read from the upper row."""
        return {pair: self.links[pair] for pair in self.pairs() if pair in self.links}
