"""The facts of a kernel log by the names that `recover judge` prints, and how far it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.verdict import Finding, unknown, warned
from recovery.reading.klog import KernelLog
from recovery.reading.klog_event import KernelEvent
from recovery.reading.xid_rules import conclude, root_words, word_of

_SHOWN = ("xid", "aer", "gpu_lost", "gpu_probe_failed")
_PLAIN = ("mce", "thermal", "lockup", "panic", "fs", "disk", "nic", "pcie_down")
_REMEDY = "read all of it: `sudo journalctl -k -b`"


def kernel_facts(log: KernelLog) -> Mapping[str, Any]:
    """All facts, JSON-able; lists keep the order of the log."""
    facts: dict[str, Any] = {
        "events": [_public(e) for e in log.of(*_SHOWN)],
        "xid_counts": dict(log.xid_counts),
        "events_by_xid": dict(log.xid_counts),
        "sxid_events": [_public(e) for e in log.of("sxid")],
        "per_gpu": {
            c.component: word_of(c)
            for c in conclude(log.events, log.driver_version)
            if not c.is_switch
        },
        "root": root_words(log.events, conclude(log.events, log.driver_version)),
        "failed_probes": log.n_failed_probes or len(log.of("gpu_probe_failed")),
        "rate_limited": bool(log.of("rate_limited")),
        "oom_kills": [_public(e) for e in log.of("oom_kill")],
        "segfaults": [_public(e) for e in log.of("segfault")],
        "peermem_noise": log.counts.get("peermem_noise", 0),
        "nfs": [_public(e) for e in log.of("nfs_lost")],
        "kernel_lines": log.n_kernel_lines,
        "driver_version": log.driver_version or None,
        "before_boot": dict(log.earlier),
    }
    facts.update({kind: [_public(e) for e in log.of(kind)] for kind in _PLAIN})
    return {**facts, **_links(log), **_single(log)}


def _public(event: KernelEvent) -> dict[str, Any]:
    return {k: v for k, v in event.values.items() if not k.startswith("_")}


def _links(log: KernelLog) -> dict[str, Any]:
    changed = [link for link in log.links if link.n_flaps or link.went_down]
    return {
        "flaps": {link.name: link.n_flaps for link in changed if link.n_flaps},
        "final_state": {
            link.name: ("ACTIVE" if link.up else "DOWN") if link.rdma_name else _up(link.up)
            for link in changed
        },
    }


def _up(up: bool | None) -> str:  # noqa: FBT001 - a state, not a mode
    return "UP" if up else "DOWN"


def _single(log: KernelLog) -> dict[str, Any]:
    """The device, process and time where the log is about one; ``pci`` lists GPUs."""
    xids = log.of("xid")
    gpus = list(dict.fromkeys(e.device for e in xids))
    ports = [link.pci for link in log.links if link.n_flaps or link.went_down]
    pids = [e.values["pid"] for e in xids if "pid" in e.values]
    names = [e.values["process"] for e in xids if "process" in e.values]
    usec = next((e.usec for e in log.of(*_SHOWN) if e.usec is not None), None)
    return {
        "pci": gpus or (ports[0] if len(ports) == 1 else ports),
        "pid": pids[-1] if pids else None,
        "process": names[-1] if names else None,
        "usec_since_boot": usec,
    }


def reach(log: KernelLog) -> str:
    """From when on the log tells, in words."""
    if log.earlier:
        codes = ", ".join(str(code) for code in log.earlier)
        return f"since the last boot or driver load (before it: Xid {codes})"
    return "since the last boot"


def missing_part(log: KernelLog, *, needs_driver: bool) -> Iterator[Finding]:
    """Why the silence of this log proves nothing, where that is so."""
    if log.filtered:
        # What the filter let through answers the question of another check, not this one.
        make = warned if log.events else unknown
        yield make(
            "the log went through a filter or its command failed: what is absent proves nothing",
            remedy=_REMEDY,
            code="kernel-log.filtered",
        )
    elif log.cut:
        yield unknown("the log ends in the middle of a line", remedy=_REMEDY, code="kernel-log.cut")
    elif not log.from_boot:
        since = log.first_since_boot_s
        when = f"{since / 3600:.1f} h after boot" if since is not None else "at an unknown time"
        yield warned(
            f"no error in it, but the log begins {when}: what came before is not in it",
            remedy=_REMEDY,
            code="kernel-log.partial",
        )
    elif needs_driver and not log.driver_seen:
        yield unknown(
            "the NVIDIA driver wrote nothing to the log since boot: it is not loaded, or this is "
            "not the node's own log",
            remedy="look at `lsmod | grep nvidia` and read the log of the node itself",
            code="kernel-log.no-driver",
        )
