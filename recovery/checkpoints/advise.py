"""How often to save, how large a save is, what it costs: the numbers behind the advice.

Source: J. W. Young, CACM 17 (1974) 530; J. T. Daly, Future Generation Computer Systems 22 (2006)
303. The lost time is Daly's complete model with exponentially distributed interruptions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery.errors import InputError

# fp32 weights and two Adam moments; bf16 training that saves its bf16 weights beside them: 14.
BYTES_FP32 = 12
BYTES_BF16 = 14


@dataclass(frozen=True, slots=True)
class Interval:
    """A way to save: seconds of training between saves, and the part of the time that is lost."""

    name: str
    every_s: float
    lost: float
    lost_hours_per_day: float


@dataclass(frozen=True, slots=True)
class Tier:
    """A place to save to: what a save takes there, and how often it pays."""

    name: str
    bytes_per_s: float
    save_s: float
    every_s: float
    survives: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked about.

    ``stall_s`` is the time that training stops for one save (asynchronous saving: the stall
    alone). ``tiers`` gives bytes per second of each place to save to.
    """

    stall_s: float
    mtbf_s: float
    restart_s: float = 600.0
    size_bytes: float | None = None
    n_gpus: int | None = None
    gpu_hour_price: float | None = None
    tiers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Intervals side by side, the best first; money and GPU-hours are per day at the best one."""

    stall_s: float
    mtbf_s: float
    restart_s: float
    intervals: tuple[Interval, ...]
    size_bytes: float | None = None
    bytes_per_s: float | None = None  # what a save needs in `stall_s`
    gpu_hours_lost_per_day: float | None = None
    money_lost_per_day: float | None = None
    tiers: tuple[Tier, ...] = ()

    @property
    def best(self) -> Interval:
        """The interval to use."""
        return self.intervals[0]


def young(stall_s: float, mtbf_s: float) -> float:
    """Young's interval: training time between the ends of saves, in seconds."""
    return math.sqrt(2 * stall_s * mtbf_s)


def daly(stall_s: float, mtbf_s: float) -> float:
    """Daly's higher-order interval; the time between failures itself when a save takes 2 of it."""
    if stall_s >= 2 * mtbf_s:
        return mtbf_s
    root = math.sqrt(stall_s / (2 * mtbf_s))
    return young(stall_s, mtbf_s) * (1 + root / 3 + root * root / 9) - stall_s


def lost_part(every_s: float, stall_s: float, mtbf_s: float, restart_s: float) -> float:
    """The part of all time (0..1) that saves, restarts and repeated work take."""
    power = (every_s + stall_s) / mtbf_s
    if power > 700:  # e**700: nothing gets done
        return 1.0
    wall_s = mtbf_s * math.exp(min(restart_s / mtbf_s, 700)) * math.expm1(power)
    return 1 - every_s / wall_s


def checkpoint_bytes(parameters: float, bytes_per_parameter: float) -> float:
    """The size of one checkpoint."""
    return parameters * bytes_per_parameter


def advise(workload: Workload) -> Advice:
    """Compares Young's, Daly's and the MTBF/10 rule.

    Raises:
        InputError: a time or a speed that is not above zero.
    """
    for name, value in _positive(workload):
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"the {name} must be above zero: {value}", remedy="say it like 45s")
    stall_s, mtbf_s = workload.stall_s, workload.mtbf_s
    ways = {
        "Young": young(stall_s, mtbf_s),
        "Daly": daly(stall_s, mtbf_s),
        "MTBF/10": mtbf_s / 10,
    }
    found = [_interval(name, every, workload) for name, every in ways.items()]
    intervals = tuple(sorted(found, key=lambda i: i.lost))
    hours = workload.n_gpus * intervals[0].lost_hours_per_day if workload.n_gpus else None
    price = workload.gpu_hour_price
    return Advice(
        stall_s=stall_s,
        mtbf_s=mtbf_s,
        restart_s=workload.restart_s,
        intervals=intervals,
        size_bytes=workload.size_bytes,
        bytes_per_s=workload.size_bytes / stall_s if workload.size_bytes else None,
        gpu_hours_lost_per_day=hours,
        money_lost_per_day=hours * price if hours and price else None,
        tiers=_tiers(workload),
    )


def _positive(workload: Workload) -> list[tuple[str, float]]:
    found = [("save time", workload.stall_s), ("MTBF", workload.mtbf_s)]
    return [*found, *((f"speed of {name}", speed) for name, speed in workload.tiers.items())]


def _interval(name: str, every_s: float, workload: Workload) -> Interval:
    lost = lost_part(every_s, workload.stall_s, workload.mtbf_s, workload.restart_s)
    return Interval(name, every_s, lost, lost * 24)


# What people call them.
_ALSO = {
    **dict.fromkeys(("local", "ssd", "disk", "scratch"), "nvme"),
    **dict.fromkeys(("lustre", "gpfs", "weka", "nfs", "beegfs", "ceph", "vast", "daos"), "pfs"),
    **dict.fromkeys(("s3", "gcs", "gs", "minio", "azure", "blob", "swift"), "object"),
}
_SURVIVES = {
    "nvme": "a crashed job; not a lost node",
    "pfs": "lost nodes; not the loss of the file system",
    "object": "the loss of the cluster",
}
# A rarer failure needs a rarer save: how much rarer than an interruption each tier's failure is.
_RARER = {"nvme": 1.0, "pfs": 1.0, "object": 100.0}


def _tiers(workload: Workload) -> tuple[Tier, ...]:
    size = workload.size_bytes
    if not size:
        return ()
    found = []
    for name, speed in workload.tiers.items():
        save_s = size / speed
        kind = _ALSO.get(name.lower(), name.lower())
        every_s = young(save_s, workload.mtbf_s * _RARER.get(kind, 1.0))
        survives = _SURVIVES.get(kind, "what you know of it: call it nvme, pfs or object")
        found.append(Tier(name, speed, save_s, max(every_s, save_s), survives))
    return tuple(found)
