"""When the power went and when memory first went wrong, from the log of the boot before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recovery.errors import ParseError
from recovery.reading.klog import read_kernel_log

# After an uncorrectable memory error numbers may be wrong without a word: 95 is one that was not
# contained; 48 is one that was found, and 94 says that it was contained: the application that
# used the page was ended before it could save. Source: NVIDIA's Xid catalogue.
_UNCONTAINED, _DOUBLE_BIT, _CONTAINED = 95, 48, 94


@dataclass(frozen=True, slots=True)
class Outage:
    """POSIX seconds; None where the log does not say."""

    at_s: float | None = None
    first_error_s: float | None = None


def read_outage(text: str) -> Outage:
    """The last stamp of the log and the first memory error in it that was not contained.

    Source: `journalctl -b -1 -o short-iso`; the last line was written before the power went, so
    the outage was then or a little later.
    """
    lines = text.splitlines()
    last = next((s for s in map(_stamp, reversed(lines)) if s is not None), None)
    return Outage(last, _first_error(lines))


def _stamp(line: str) -> float | None:
    word = line.split(" ", 1)[0]
    try:
        stamp = datetime.fromisoformat(word)
    except ValueError:
        return None
    return stamp.timestamp() if stamp.tzinfo is not None else None


def _first_error(lines: list[str]) -> float | None:
    try:
        events = read_kernel_log(lines).of("xid")
    except ParseError:
        return None
    contained = {e.device for e in events if e.code == _CONTAINED}
    untrusted = (
        e.seconds
        for e in events
        if e.code == _UNCONTAINED or (e.code == _DOUBLE_BIT and e.device not in contained)
    )
    return min((at for at in untrusted if at is not None), default=None)
