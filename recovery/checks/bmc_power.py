"""Is the node on, and will it come back by itself after the next outage?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.bmc import Power, is_asked, parse_power
from recovery.reading.bmc_words import refused_finding

_ASKED = r"(?<!/)\bchassis\b|power (?:status|on|off)|/Systems/[^/]+/?$|SessionService"
_CONTENT = re.compile(
    r"^Chassis Power is |^System Power +:|\"PowerState\"|Unable to establish IPMI"
    r"|\"@Message\.ExtendedInfo\"",
    re.MULTILINE,
)


def expect(raw: Mapping[str, Any]) -> str:
    """Reads ``expected_power``, on unless said; a bare YAML ``on`` is a boolean to many writers."""
    wanted = raw.get("expected_power", "on")
    if isinstance(wanted, bool):
        return "on" if wanted else "off"
    return str(wanted)


def judge(found: Power, wanted: str) -> Verdict:
    """Off is a failure of the machine; a BMC that was not asked is neither."""
    if found.refused is not None:
        return verdict([refused_finding(found.refused, "bmc.power")], otherwise="")
    findings = [*_state(found, wanted), *_faults(found)]
    if not findings and not found.whole:
        findings.append(
            unknown("the status is cut", remedy="ask the BMC again", code="bmc.power.cut")
        )
    return verdict(findings, otherwise=f"the node is {found.power}")


def _state(found: Power, wanted: str) -> Iterator[Finding]:
    stays_off = found.restore_policy in ("always-off", "AlwaysOff")
    if found.power != wanted:
        why = " because of its power restore policy (always-off)" if stays_off else ""
        yield failed(
            f"the node is {found.power}, expected {wanted}{why if wanted == 'on' else ''}",
            remedy="`ipmitool chassis power on`, a few nodes at a time; then `ipmitool chassis "
            "policy previous`"
            if wanted == "on"
            else "`ipmitool chassis power off`",
            code="bmc.power.off",
        )
    elif stays_off and wanted == "on":
        yield warned(
            "the node will stay off after the next outage (power restore policy always-off)",
            remedy="`ipmitool chassis policy previous`",
            code="bmc.power.policy",
        )


def _faults(found: Power) -> Iterator[Finding]:
    for fault in found.faults:
        yield failed(
            f"the BMC reports: {fault}",
            remedy="read sensors and event log (bmc.sensors, bmc.sel); replace the part named",
            component=fault,
            code="bmc.power.fault",
        )


def facts(found: Power) -> Mapping[str, Any]:
    """The facts by the names of `recover judge`; power None: not known."""
    if found.refused is not None:
        return {"power": None, **found.refused.facts()}
    return {
        "power": found.power,
        "restore_policy": found.restore_policy,
        "last_event": found.last_event,
        "faults": list(found.faults),
        "reachable": True,
    }


def recognises(printed: Printed) -> bool:
    """Claims chassis status, power status and a Redfish system."""
    return is_asked(printed, _ASKED, _CONTENT)


POWER = Check(
    name="bmc.power",
    question="Is the node on, and will it come back by itself after the next outage?",
    command="ipmitool chassis status",
    parse=parse_power,
    expect=expect,
    judge=judge,
    facts=facts,
    recognises=recognises,
    needs_root=True,
    needs="ipmitool",
    expects=("expected_power",),
    timeout_s=60.0,
)
