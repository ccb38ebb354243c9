"""A session was lost in the middle of a command: did the node reboot?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from recovery.model.output import Command, Ending, Output

ASK = "cat /proc/sys/kernel/random/boot_id /proc/uptime"
ASK_S = 5.0  # a node that is still down costs its own step so much longer, and nobody else's
_BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


def with_cause(
    output: Output, ask: Callable[[Command], Output], elapsed_s: Callable[[], float]
) -> Output:
    """A lost output with the reboot that explains it, if the node tells of one.

    ``elapsed_s`` is the time since the command was sent: a boot that is younger came after it.
    """
    if output.ending is not Ending.LOST or output.trouble:
        return output
    boot = read_boot(ask(Command(ASK, timeout_s=ASK_S)))
    if boot is None or boot.uptime_s >= elapsed_s():
        return output
    reason = f"the node rebooted meanwhile: up {boot.uptime_s:.0f} s, boot id {boot.id}"
    return replace(output, reason=f"{output.reason}; {reason}", trouble="rebooted")
