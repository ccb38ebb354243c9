"""Lines that belong together become one event: a PCIe error, a kill, a switch fault, a link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from recovery.reading.klog_event import KernelEvent
from recovery.reading.xid import XIDS, Action

_AER_LINES = 8  # an AER report is at most so many lines; rate limits tear longer ones apart
_BEYOND_THE_DRIVER = (Action.REBOOT_NODE, Action.POWER_CYCLE, Action.ISOLATE)
_BOOTING_S = 300.0  # links come up in this time after a boot, and that is no flap


@dataclass(slots=True)
class LinkHistory:
    """One port's changes: how often it came back, and how it stands at the end of the log."""

    pci: str
    host: str = ""
    rdma_name: str = ""
    net_name: str = ""
    n_flaps: int = 0
    up: bool | None = None
    went_down: bool = False  # down at the end after the time in which links come up
    _rdma: bool = False
    _down: bool = False

    @property
    def name(self) -> str:
        """The HCA's name where the log has it, else the interface's."""
        return self.rdma_name or self.net_name

    def changed(self, event: KernelEvent) -> None:
        """Takes one change; where RDMA and network report the same one, RDMA's counts."""
        rdma, up = bool(event.values["rdma"]), bool(event.values["up"])
        if rdma and not self._rdma:
            self._rdma, self.rdma_name = True, str(event.values["name"])
            self.n_flaps, self._down = 0, False
        elif not rdma:
            self.net_name = self.net_name or str(event.values["name"])
            if self._rdma:
                return
        booting = event.since_boot_s is not None and event.since_boot_s < _BOOTING_S
        if up and self._down:
            self.n_flaps += 1
        self._down = not up and not booting
        self.went_down = self._down
        self.up = up


@dataclass(slots=True)
class _Host:
    events: list[KernelEvent] = field(default_factory=list)
    xids: Counter[int] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    links: dict[str, LinkHistory] = field(default_factory=dict)
    kills: dict[int, KernelEvent] = field(default_factory=dict)
    limit: KernelEvent | None = None
    aer: KernelEvent | None = None
    aer_lines: int = 0
    aer_detailed: bool = False
    named_gpu: str = ""
    nfs: dict[str, KernelEvent] = field(default_factory=dict)


@dataclass(slots=True)
class Joiner:
    """Collects events of one or several nodes and joins the lines of one event."""

    hosts: dict[str, _Host] = field(default_factory=dict)

    def add(self, event: KernelEvent, host: str, *, keep: bool) -> None:
        """Takes one line's event; ``keep`` false only counts it."""
        of_host = self.hosts.setdefault(host, _Host())
        join = _JOINS.get(event.kind)
        made = event if join is None else join(of_host, event)
        if made is None:
            return
        of_host.counts[made.kind] += 1
        if made.kind == "xid":
            of_host.xids[int(made.values["xid"])] += 1
        if keep:
            of_host.events.append(made)

    def forget(self, host: str) -> Counter[int]:
        """Drops what this node reported and returns its Xids; no name means every node."""
        gone: Counter[int] = Counter()
        for name in [host] if host in self.hosts else ([] if host else list(self.hosts)):
            gone.update(self.hosts.pop(name).xids)
        return gone

    def forget_mended(self, host: str, kinds: frozenset[str]) -> Counter[int]:
        """Drops what of this node's events loading the driver mends; returns the Xids among it."""
        of_host = self.hosts.get(host)
        if of_host is None:
            return Counter()
        of_host.events = [e for e in of_host.events if e.kind not in kinds or _outlasts(e.code)]
        gone = Counter({code: n for code, n in of_host.xids.items() if not _outlasts(code)})
        of_host.xids -= gone
        for kind in kinds:
            of_host.counts[kind] = sum(e.kind == kind for e in of_host.events)
        return gone

    def finished(self) -> tuple[KernelEvent, ...]:
        """All events in order; a GPU that the driver lost and gave Xid 79 is one event."""
        return tuple(
            event
            for host in self.hosts.values()
            for event in host.events
            if not (event.kind == "gpu_lost" and _has_79(host, event))
        )

    def counts(self) -> Counter[str]:
        """Events by kind, those that were not kept too."""
        return sum((h.counts for h in self.hosts.values()), Counter())

    def xids(self) -> Counter[int]:
        """Xid lines by code."""
        return sum((h.xids for h in self.hosts.values()), Counter())

    def links(self) -> tuple[LinkHistory, ...]:
        """The history of each port that changed."""
        return tuple(link for h in self.hosts.values() for link in h.links.values())


def _outlasts(code: int | None) -> bool:
    """Claims that this Xid asks for a reboot or for hands: a driver that loads mends neither."""
    return code in XIDS and XIDS[code].action in _BEYOND_THE_DRIVER


def _has_79(host: _Host, lost: KernelEvent) -> bool:
    gpu = lost.device.partition(".")[0]
    return any(e.code == 79 and e.kind == "xid" and e.device == gpu for e in host.events)


def _named_gpu(host: _Host, event: KernelEvent) -> None:
    host.named_gpu = event.device


def _fallen(host: _Host, event: KernelEvent) -> KernelEvent | None:
    gpu, host.named_gpu = host.named_gpu, ""
    values: dict[str, Any] = {"kind": "gpu_probe_failed", "equivalent_xid": 79}
    return _probe_failed(host, _as(event, "gpu_probe_failed", {**values, "pci": gpu or "unknown"}))


def _probe_failed(host: _Host, event: KernelEvent) -> KernelEvent | None:
    """A GPU that failed to start is reported by several lines: the first tells most."""
    gpu = event.device.partition(".")[0]
    seen = any(
        e.kind == "gpu_probe_failed" and e.device.partition(".")[0] == gpu for e in host.events
    )
    return None if seen else event


def _sxid(host: _Host, event: KernelEvent) -> KernelEvent | None:
    """The lines after the first repeat the number with details: no new event."""
    if not event.values.pop("detail", False):
        return event
    recent = host.events[-8:]
    same = any(e.code == event.code and e.device == event.device for e in recent)
    return None if same else event


def _aer(host: _Host, event: KernelEvent) -> KernelEvent:
    host.aer, host.aer_lines, host.aer_detailed = event, 0, False
    return event


def _aer_detail(host: _Host, event: KernelEvent) -> KernelEvent | None:
    open_aer, host.aer_lines = host.aer, host.aer_lines + 1
    waits = open_aer is not None and not host.aer_detailed and host.aer_lines <= _AER_LINES
    if waits and open_aer is not None and open_aer.values["aer"] == event.values["aer"]:
        host.aer_detailed = True
        return None
    made = _as(event, "aer", dict(event.values))
    host.aer, host.aer_lines, host.aer_detailed = made, 0, True
    return made


def _aer_name(host: _Host, event: KernelEvent) -> None:
    host.aer_lines += 1
    if host.aer is None or host.aer_lines > _AER_LINES:
        return
    if "error" not in host.aer.values or "first" in event.values:
        host.aer.values["error"] = event.values["error"]


def _oom_limit(host: _Host, event: KernelEvent) -> KernelEvent | None:
    pid = event.values.get("pid")
    if pid is None:
        host.limit = event
        return None
    made = _as(event, "oom_kill", dict(event.values))
    return _oom_kill(host, made)


def _oom_kill(host: _Host, event: KernelEvent) -> KernelEvent | None:
    limit, host.limit = host.limit, None
    if limit is not None:
        event.values.update({k: v for k, v in limit.values.items() if k in ("scope", "job")})
    earlier = host.kills.get(int(event.values["pid"]))
    if earlier is not None:
        for name, value in event.values.items():
            earlier.values.setdefault(name, value)
        return None
    if len(host.kills) < 10_000:
        host.kills[int(event.values["pid"])] = event
    return event


def _link(host: _Host, event: KernelEvent) -> None:
    if event.device in host.links or len(host.links) < 4096:
        history = host.links.setdefault(event.device, LinkHistory(event.device))
        history.changed(event)


def _nfs_lost(host: _Host, event: KernelEvent) -> KernelEvent | None:
    server = str(event.values.get("server", ""))
    if server in host.nfs:
        host.nfs[server].values["back"] = False
        return None
    if len(host.nfs) < 4096:
        host.nfs[server] = event
    return event


def _nfs_back(host: _Host, event: KernelEvent) -> None:
    lost = host.nfs.get(str(event.values.get("server", "")))
    if lost is not None:
        lost.values["back"] = True


def _as(event: KernelEvent, kind: str, values: dict[str, Any]) -> KernelEvent:
    return KernelEvent(kind, values, event.text, event.seconds, event.since_boot_s, event.usec)


_JOINS: dict[str, Callable[[_Host, KernelEvent], KernelEvent | None]] = {
    "gpu_named": _named_gpu,
    "fallen": _fallen,
    "gpu_probe_failed": _probe_failed,
    "sxid": _sxid,
    "aer": _aer,
    "aer_detail": _aer_detail,
    "aer_name": _aer_name,
    "oom_limit": _oom_limit,
    "oom_kill": _oom_kill,
    "link": _link,
    "nfs_lost": _nfs_lost,
    "nfs_back": _nfs_back,
}
