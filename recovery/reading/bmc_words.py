"""The finding for a BMC that could not be asked: never that the node is off, never health."""

from __future__ import annotations

from recovery.model.verdict import Finding, unknown
from recovery.reading.bmc import NoAnswer

_REMEDY = {
    "unreachable": "host down, firewall, wrong user or password all say this: ping the BMC, try "
    "Redfish, and check the credentials against one BMC that is known to work",
    "no-device": "`modprobe ipmi_devintf ipmi_si` as root, or ask the BMC over the network; a "
    "container has no /dev/ipmi0",
    "no-tool": "install ipmitool",
}
_SESSIONS = "delete sessions that were left open; use one session for a whole sweep"


def refused_finding(refused: NoAnswer, check: str) -> Finding:
    """UNKNOWN, with the BMC's own words and what to try."""
    if refused.kind == "http-error":
        limit = refused.message_id == "SessionLimitExceeded"
        return unknown(
            f"the BMC answered with an error, which says nothing of the machine: {refused.said}",
            remedy=_SESSIONS if limit else "read the message; try again with another account",
            code=f"{check}.http-error",
        )
    return unknown(
        f"the BMC was not asked: {refused.said}",
        remedy=_REMEDY[refused.kind],
        code=f"{check}.{refused.kind}",
    )
