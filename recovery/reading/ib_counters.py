"""Error counters of RDMA ports and network cards, which count since load or since cleared.

A counter of the InfiniBand standard does not wrap: at its largest value it stays, and a second
sample without a rise then proves nothing.

Source: InfiniBand specification 1.5 volume 1 table PortCounters (widths), sysfs-class-infiniband,
perfquery of infiniband-diags 44.0, ethtool(8), Linux mlx5 ethtool counters documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.plain import ends_with_newline, plain_lines

LARGEST = {
    "symbol_error": 65535,
    "link_error_recovery": 255,
    "link_downed": 255,
    "port_rcv_errors": 65535,
    "port_rcv_remote_physical_errors": 65535,
    "port_rcv_switch_relay_errors": 65535,
    "port_xmit_discards": 65535,
    "port_xmit_constraint_errors": 255,
    "port_rcv_constraint_errors": 255,
    "local_link_integrity_errors": 15,
    "excessive_buffer_overrun_errors": 15,
    "VL15_dropped": 65535,
}
"""The value at which a counter of the standard stays."""

_PERFQUERY = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors",
    "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "VL15Dropped": "VL15_dropped",
}
_SYSFS = re.compile(
    r"/sys/class/infiniband/([^/]+)/ports/(\d+)/(?:hw_)?counters/([^:/]+):(\d+)\s*$"
)
_QUERY_PORT = re.compile(r"# Port (?:extended )?counters: (.*?)\s*port (\d+)")
_QUERY_VALUE = re.compile(r"(\w+):\.+(\d+)\s*$")
_ETHTOOL = re.compile(r"\s+([\w.\[\]: -]+?): (\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters by port (``mlx5_0/1``) and name, in the order printed."""

    by_port: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cut: bool = False

    @property
    def saturated(self) -> tuple[str, ...]:
        """``device/counter`` for each that has reached its largest value."""
        return tuple(
            f"{port.partition('/')[0]}/{name}"
            for port, values in self.by_port.items()
            for name, value in values.items()
            if value == LARGEST.get(name)
        )


def parse_ib_counters(printed: Printed) -> Counters:
    """Counters from ``grep -r . /sys/class/infiniband/...`` or ``perfquery``.

    Raises:
        ParseError: no counter is in it.
    """
    found: dict[str, dict[str, int]] = {}
    port = ""
    for line in plain_lines(printed.text):
        if match := _SYSFS.match(line):
            found.setdefault(f"{match[1]}/{match[2]}", {})[match[3]] = int(match[4][:20])
        elif match := _QUERY_PORT.match(line):
            port = f"{match[1].strip() or 'port'}/{match[2]}"
        elif port and (match := _QUERY_VALUE.match(line)):
            name = _PERFQUERY.get(match[1], match[1])
            found.setdefault(port, {})[name] = int(match[2][:20])
    if not found:
        raise ParseError(
            f"no port counter in {printed.text.strip()[:60]!r}",
            remedy="`grep . /sys/class/infiniband/*/ports/*/counters/*` on the node",
        )
    return Counters(found, cut=not ends_with_newline(printed.text))


def has_ib_counters(text: str) -> bool:
    """Claims that counters of RDMA ports are in the text."""
    head = text[:262144]
    return bool(
        re.search(
            r"^.{0,80}/ports/\d+/(?:hw_)?counters/|# Port (?:extended )?counters: ", head, re.M
        )
    )


def parse_ethtool(printed: Printed) -> Counters:
    """Counters from ``ethtool -S``, by interface where a line ``# NAME`` stands before each.

    Raises:
        ParseError: no statistics are in it; ``ethtool`` said so, or was cut.
    """
    found: dict[str, dict[str, int]] = {}
    name = ""
    for line in plain_lines(printed.text):
        if head := re.match(r"# (\S{1,32})\s*$", line):
            name = head[1]
        elif line.strip() == "NIC statistics:":
            found.setdefault(name, {})
        elif name in found and (match := _ETHTOOL.match(line)):
            found[name][match[1].strip()] = int(match[2][:20])
    if not any(found.values()):
        said = (printed.error_text.strip() or printed.text.strip())[:80]
        raise ParseError(
            f"no statistics of a network card: {said!r}",
            remedy="`ip -br link` names the interfaces; `ethtool -S INTERFACE` on the node",
        )
    return Counters(found, cut=not ends_with_newline(printed.text))
