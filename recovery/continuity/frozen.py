"""A log that grew since it was frozen: which part of it is new."""

from __future__ import annotations

_MARK_BYTES = 4096
_NEAR_BYTES = 1 << 20


def since(frozen: bytes, now: bytes) -> bytes:
    """What was written after the frozen log's end; all of it where that end is not found.

    The end is not found when the log was truncated or rotated at the relaunch, or grew by more
    than what was read of it.
    """
    mark = frozen[-_MARK_BYTES:]
    at = now.rfind(mark) if mark else -1
    return now[at + len(mark) :] if at >= 0 else now


def near_end(frozen: bytes) -> bytes:
    """The last whole lines of a long log, about 1 MiB: enough points for every statistic."""
    if len(frozen) <= _NEAR_BYTES:
        return frozen
    last = frozen[-_NEAR_BYTES:]
    return last[last.find(b"\n") + 1 :]
