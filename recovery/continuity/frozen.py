"""A log that grew since it was frozen: which part of it is new."""

from __future__ import annotations

_MARK_BYTES = 4096
_NEAR_BYTES = 1 << 20


def since(frozen: bytes, now: bytes) -> bytes:
    """What stands after the frozen log in the whole log of now; all of it where that is not in it.

    It is not in it when the log was begun anew at the relaunch, or rotated. Lines alone prove
    nothing: a resumed training may log the very lines again.
    """
    at = now.find(frozen) if frozen else -1
    return now[at + len(frozen) :] if at >= 0 else now


def since_tail(frozen: bytes, tail: bytes) -> bytes:
    """The same for the end of a log whose beginning is not known.

    All that the tail has before the place must be the end of what was frozen.
    """
    mark = frozen[-_MARK_BYTES:]
    at = tail.find(mark) if mark else -1
    while at >= 0:
        end = at + len(mark)
        if tail[max(0, end - len(frozen)) : end] == frozen[-end:]:
            return tail[end:]
        at = tail.find(mark, at + 1)
    return tail


def near_end(frozen: bytes) -> bytes:
    """The last whole lines of a long log, about 1 MiB: enough points for every statistic."""
    if len(frozen) <= _NEAR_BYTES:
        return frozen
    last = frozen[-_NEAR_BYTES:]
    return last[last.find(b"\n") + 1 :]
