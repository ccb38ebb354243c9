"""The values that every layout of nccl-tests output is read into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True, slots=True)
class Row:
    """One payload: bandwidths in GB/s of the out-of-place and the in-place run.

    ``wrong`` counts wrong elements; None where that direction was not validated. ``max_error``
    is the maximal difference of builds before v2.13, where a small number is correct.
    """

    size_bytes: int
    time_us: float
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    wrong: float | None = None
    in_place_busbw_gb_per_s: float | None = None
    in_place_wrong: float | None = None
    max_error: float | None = None

    @property
    def n_wrong(self) -> float:
        """Wrong elements in both directions."""
        return (self.wrong or 0.0) + (self.in_place_wrong or 0.0)

    @property
    def is_measured(self) -> bool:
        """Claims that its numbers are numbers: no ``nan``, no ``inf``."""
        return all(map(isfinite, (self.time_us, self.algbw_gb_per_s, self.busbw_gb_per_s)))

    @property
    def is_checked(self) -> bool:
        """Claims that values were compared, in either direction or as a maximal difference."""
        return any(n is not None for n in (self.wrong, self.in_place_wrong, self.max_error))

    @property
    def n_wrong_directions(self) -> int:
        """How many of the two directions had wrong elements."""
        return sum(1 for n in (self.wrong, self.in_place_wrong) if n)


@dataclass(frozen=True, slots=True)
class Device:
    """One rank: the name its node gave itself and the GPU it used."""

    rank: int
    host: str
    device: int
    model: str = ""
    group: int = 0  # of several communicators in one launch (NCCL_TESTS_SPLIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The report itself, without failures: rows, ranks, closing summary.

    ``started`` claims that nccl-tests printed anything of its own. ``started_size_bytes`` is the
    payload of a row that began and never ended. ``n_runs`` above 1: they stand one behind another.
    ``n_ranks`` are those of one communicator.
    """

    started: bool = False
    collective: str = ""
    devices: tuple[Device, ...] = ()
    n_ranks: int | None = None
    copies: int = 1
    n_runs: int = 1
    rows: tuple[Row, ...] = ()
    started_size_bytes: int | None = None
    out_of_bounds: int | None = None
    mean_busbw_gb_per_s: float | None = None
    reduced_max_bytes: int | None = None
    complete: bool = False
    has_environment: bool = False  # the JSON layout dumps the whole environment, secrets too
    is_json: bool = False

    @property
    def n_groups(self) -> int:
        """Communicators that ran side by side in this one launch."""
        return count_groups(self.devices)

    @property
    def hosts_of_one_group(self) -> tuple[str, ...]:
        """Names of the nodes in the first communicator, in rank order."""
        first = self.devices[0].group if self.devices else 0
        return tuple(dict.fromkeys(d.host for d in self.devices if d.group == first))


def count_groups(devices: Iterable[Device]) -> int:
    """Communicators that these ranks belong to; one where nothing is said."""
    return len({device.group for device in devices}) or 1
