"""What the kernel reported around the moment when a training failed."""

from __future__ import annotations

from collections.abc import Iterator

from recovery.reading.klog import KernelLog
from recovery.reading.klog_event import KernelEvent
from recovery.reading.trainlog_lines import in_year

WINDOW_S = 120.0  # an event this near to the first error is named beside it
_KINDS = ("xid", "sxid", "gpu_lost", "aer", "oom_kill", "nic", "mce")
_LOOKED_AT = 200


def candidates(
    log: KernelLog, at: float | None, *, ahead_s: float = 0.0
) -> Iterator[tuple[KernelEvent, bool]]:
    """Events that may belong to a failure, and whether their time says so.

    ``at`` is the failure in seconds of its year (`Said.seconds`), ``ahead_s`` how far the clock
    that stamped the kernel log is ahead. Events far from it are left out; where either time is not
    known, events come with False.
    """
    for event in log.of(*_KINDS)[:_LOOKED_AT]:
        wall = in_year(event.seconds) if event.since_boot_s is None else None
        if at is None or wall is None:
            yield event, False
        elif abs(wall - ahead_s - at) <= WINDOW_S:
            yield event, True
