"""A session was lost in the middle of a command: did the node reboot?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Clock

ASK = "cat /proc/sys/kernel/random/boot_id /proc/uptime"
# How long a node is waited for to say; one that is still down ends so much later, no other does.
ASK_S, PAUSE_S = 10.0, 1.0
# How long an old boot has to answer: a node that goes down still lets people in for a while.
STEADY_S = 2.0
_BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Ask = Callable[[Command], Output]


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot: its id and how long it lasts."""

    id: str
    uptime_s: float


def read_boot(output: Output) -> Boot | None:
    """The boot id and uptime; None for anything that does not look like both.

    Source: proc(5); an error text was once taken for a new boot id (ansible issue 83018).
    """
    words = output.text.split()
    if not output.ok or len(words) < 2 or not _BOOT_ID.fullmatch(words[0]):
        return None
    try:
        return Boot(words[0], float(words[1]))
    except ValueError:
        return None


def with_cause(output: Output, clock: Clock, ask: Ask, *, sent_at: float) -> Output:
    """A lost output with the reboot that explains it, if the node tells of one within `ASK_S`.

    ``sent_at`` is when the command was sent (monotonic): a boot that is younger came after it.
    """
    if output.ending is not Ending.LOST or output.trouble:
        return output
    boot = _newer_boot(clock, ask, sent_at)
    if boot is None:
        return output
    reason = f"the node rebooted meanwhile: up {boot.uptime_s:.0f} s, boot id {boot.id}"
    return replace(output, reason=f"{output.reason}; {reason}", trouble="rebooted")


def _newer_boot(clock: Clock, ask: Ask, sent_at: float) -> Boot | None:
    ends_at = clock.monotonic() + ASK_S
    steady_since: float | None = None
    while (left_s := ends_at - clock.monotonic()) > 0:
        boot, now = read_boot(ask(Command(ASK, timeout_s=left_s))), clock.monotonic()
        if boot is not None and boot.uptime_s < now - sent_at:
            return boot
        steady_since = None if boot is None else steady_since or now
        if steady_since is not None and now - steady_since >= STEADY_S:
            return None
        clock.sleep(PAUSE_S)
    return None
