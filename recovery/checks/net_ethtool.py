"""Do the statistics of a network card tell of a bad cable or a bad PCIe slot?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Level, Verdict, unknown, verdict
from recovery.reading.asked import tool_asked
from recovery.reading.ib_counters import Counters, parse_ethtool

_DAY_S = 86400.0
DOWNS_A_DAY = 3.0
"""Link drops a day from which on a cable is called bad: a switch reboot a day stays below."""

_DOWN = ("link_down_events_phy", "port.link_down_events", "link_down_events", "link_flaps")
_CABLE = (
    "rx_symbol_err_phy", "rx_crc_errors_phy", "rx_pcs_symbol_err_phy", "rx_crc_errors",
    "rx_fcs_errors", "port.rx_crc_errors", "rx_crc_errors.nic", "rx_fcs_err_frames",
)  # fmt: skip
_PCIE = ("tx_pci_signal_integrity", "rx_pci_signal_integrity")


def expect(raw: Mapping[str, Any]) -> float | None:
    """Reads ``uptime_s``: how long the counters have counted."""
    uptime = raw.get("uptime_s")
    return float(uptime) if isinstance(uptime, int | float) and uptime > 0 else None


def judge(found: Counters, uptime_s: float | None) -> Verdict:
    """Cable and slot are two causes: a finding for each, on each interface."""
    findings = [
        finding
        for name, values in found.by_port.items()
        for finding in (*_cable(name, values, uptime_s), *_slot(name, values))
    ]
    known = {name for values in found.by_port.values() for name in values}
    if not known & {*_DOWN, *_CABLE}:
        findings.append(
            unknown(
                "no counter of the physical layer is in the text",
                remedy="`ethtool -S INTERFACE` whole; a virtual interface has none: ask the port's",
                code="net.ethtool.no-counters",
            )
        )
    elif found.cut and not findings:
        findings.append(unknown("the answer is cut", remedy="run `ethtool -S` again"))
    return verdict(findings, otherwise="no physical error counted")


def _cable(name: str, values: Mapping[str, int], uptime_s: float | None) -> Iterator[Finding]:
    downs = max((values[key] for key in _DOWN if key in values), default=0)
    errors = [f"{key} {values[key]}" for key in _CABLE if values.get(key)]
    if not downs and not errors:
        return
    a_day = downs * _DAY_S / max(uptime_s, _DAY_S) if uptime_s else None
    bad = a_day is not None and a_day >= DOWNS_A_DAY
    since = f" in {uptime_s / 3600:.0f} h" if uptime_s else " since the driver was loaded"
    watch = "read them again in ten minutes under load; change the cable if they rise"
    yield Finding(
        Level.FAIL if bad else Level.WARN,
        f"{name} {', '.join([f'{downs} link drops', *errors])}{since}".lstrip(),
        "change cable or optic, then measure again" if bad else watch,
        name,
        "net.ethtool.cable",
    )


def _slot(name: str, values: Mapping[str, int]) -> Iterator[Finding]:
    shown = ", ".join(f"{key} {values[key]}" for key in _PCIE if values.get(key))
    if shown:
        yield Finding(
            Level.WARN,
            f"{name} {shown}: errors between card and PCIe slot".lstrip(),
            "reseat the card, check the riser; read the counters again after it",
            name,
            "net.ethtool.pcie",
        )


def facts(found: Counters) -> Mapping[str, Any]:
    """All counters by the driver's own names; by interface where there are several."""
    if len(found.by_port) == 1:
        return dict(next(iter(found.by_port.values())))
    return {"interfaces": {name: dict(values) for name, values in found.by_port.items()}}


def recognises(printed: Printed) -> bool:
    """Claims ``ethtool -S``."""
    asked = tool_asked(printed.command)
    return asked == "ethtool" or (not asked and "NIC statistics:" in printed.text[:4096])


ETHTOOL = Check(
    name="net.ethtool",
    question="Do the statistics of the network cards tell of a bad cable or PCIe slot?",
    command="for d in /sys/class/net/*/device; do d=${d%/device}; d=${d##*/}; "
    'echo "# $d"; ethtool -S "$d"; done',
    parse=parse_ethtool,
    expect=expect,
    judge=judge,
    facts=facts,
    recognises=recognises,
    needs="ethtool",
    expects=("uptime_s",),
)
