"""Errors and retransmissions that the NICs counted while a round ran.

Packet loss does not show in bandwidth until it is severe: it shows here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.ib_counters import parse_ib_counters

COUNTERS_LINE = (
    "grep -s . /sys/class/infiniband/*/ports/*/counters/*"
    " /sys/class/infiniband/*/ports/*/hw_counters/*; cat /proc/net/snmp 2>/dev/null; true"
)
"""Reads them; what is not there is left out. Source: sysfs-class-infiniband, proc(5)."""

_BROKEN = ("link_downed", "link_error_recovery")
_LOSSY = (
    "symbol_error", "port_rcv_errors", "port_xmit_discards", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors", "out_of_sequence", "packet_seq_err",
    "local_ack_timeout_err", "rnr_nak_retry_err", "implied_nak_seq_err", "roce_adp_retrans",
    "req_transport_retries_exceeded",
)  # fmt: skip
_LEAST = 10  # fewer of them in one round are the noise of a healthy fabric
_RETRANSMITTED = 0.01  # of all segments
_LEAST_SEGMENTS = 1000
_TCP = re.compile(r"^Tcp: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters by ``port/name``, and TCP segments sent and sent again."""

    counters: Mapping[str, int]
    segments: int = 0
    resent: int = 0

    @property
    def empty(self) -> bool:
        """Claims that the node has no counter that we know."""
        return not self.counters and not self.segments


@dataclass(frozen=True, slots=True)
class Rise:
    """What rose on a node between two samples; ``broken`` where a link went down."""

    words: str
    component: str
    broken: bool


def read_sample(text: str) -> Sample:
    """One sample from what the line printed."""
    try:
        ports = parse_ib_counters(Printed(text + "\n")).by_port
    except ParseError:
        ports = {}
    known = {
        f"{port} {name}": value
        for port, values in ports.items()
        for name, value in values.items()
        if name in _BROKEN or name in _LOSSY
    }
    sent, resent = _tcp(text)
    return Sample(known, sent, resent)


def _tcp(text: str) -> tuple[int, int]:
    rows = [found.group(1).split() for found in _TCP.finditer(text)]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        return 0, 0
    values = dict(zip(*rows, strict=True))
    sent, resent = values.get("OutSegs", "0"), values.get("RetransSegs", "0")
    return (int(sent), int(resent)) if sent.isdigit() and resent.isdigit() else (0, 0)


def rises(before: Sample, after: Sample) -> tuple[Rise, ...]:
    """What went wrong between two samples of one node, links that went down first."""
    found = []
    for key, value in after.counters.items():
        port, _, name = key.partition(" ")
        delta = value - before.counters.get(key, value)
        device = port.partition("/")[0]
        if name in _BROKEN and delta > 0:
            found.append(Rise(f"{port}: {name} rose by {delta}", device, broken=True))
        elif name in _LOSSY and delta >= _LEAST:
            found.append(Rise(f"{port}: {name} rose by {delta}", device, broken=False))
    sent, resent = after.segments - before.segments, after.resent - before.resent
    if sent >= _LEAST_SEGMENTS and resent > _RETRANSMITTED * sent:
        share = 100 * resent / sent
        words = f"{share:.1f} % of TCP segments were sent again ({resent} of {sent})"
        found.append(Rise(words, "tcp", broken=False))
    return tuple(sorted(found, key=lambda rise: not rise.broken))
