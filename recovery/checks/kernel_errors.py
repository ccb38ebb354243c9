"""Did the kernel report errors of PCIe, memory, CPU, links, file systems or killed programs?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.klog import (
    KERNEL_LOG_COMMAND,
    KernelLog,
    is_kernel_log,
    parse_kernel_log,
)
from recovery.reading.klog_event import KernelEvent
from recovery.reading.klog_facts import kernel_facts, missing_part, reach

_SHOWN = 6  # devices or programs named in one finding


@dataclass(frozen=True, slots=True)
class KernelExpect:
    """``ignored_hcas``: ports that nobody uses; their changes are no fault."""

    ignored_hcas: frozenset[str] = frozenset()


_WORDS: Mapping[str, tuple[str, str]] = {
    "mce": ("memory or CPU error", "look at `ras-mc-ctl --summary` and the BMC's event log; "
            "replace the DIMM or CPU named there"),
    "thermal": ("too hot", "check fans and inlet temperature before loading the node"),
    "lockup": ("stuck", "look at the stack in the log; reboot the node when it repeats"),
    "panic": ("kernel crash", "save the log and /var/crash, reboot, update what it names"),
    "fs": ("file system error", "save the log, unmount and check the file system, look at "
           "`smartctl -a`"),
    "disk": ("disk error", "look at `smartctl -a` and `nvme smart-log`; replace the disk"),
    "nic": ("network card error", "reset or reseat the card, check its firmware and optics"),
    "pcie_down": ("PCIe link down", "power cycle the node; reseat card or riser when it repeats"),
}  # fmt: skip


def expect(raw: Mapping[str, Any]) -> KernelExpect:
    """Reads ``ignored_hcas``."""
    return KernelExpect(frozenset(str(name) for name in raw.get("ignored_hcas") or ()))


def judge(log: KernelLog, expected: KernelExpect) -> Verdict:
    """One finding for each kind of trouble and device."""
    found = [
        *_pcie(log),
        *_plain(log),
        *_killed(log),
        *_crashed(log),
        *_flaps(log, expected),
        *_nfs(log),
    ]
    if not found:
        found.extend(missing_part(log, needs_driver=False))
    return verdict(found, otherwise=f"no error of the machine {reach(log)}")


def _pcie(log: KernelLog) -> Iterator[Finding]:
    by_device: dict[tuple[str, str], list[KernelEvent]] = {}
    for event in log.of("aer"):
        by_device.setdefault((event.device, str(event.values["aer"])), []).append(event)
    for (device, severity), events in by_device.items():
        name = events[0].values.get("error")
        text = f"{device} PCIe {severity}" + (f" ({name})" if name else "") + f", {len(events)} x"
        if severity == "Uncorrected (Fatal)":
            yield failed(
                text,
                remedy="save the evidence, cold power cycle; reseat or replace card and riser if "
                "it repeats",
                component=device,
                code="kernel.errors.aer-fatal",
            )
        else:
            yield warned(
                text,
                remedy="watch the rate; many an hour: reseat the card, check the riser",
                component=device,
                code="kernel.errors.aer",
            )


def _plain(log: KernelLog) -> Iterator[Finding]:
    for kind, (words, remedy) in _WORDS.items():
        for level in ("fail", "warn"):
            events = [e for e in log.of(kind) if e.values["level"] == level]
            if not events:
                continue
            devices = list(dict.fromkeys(e.device for e in events if e.device))[:_SHOWN]
            named = f"{', '.join(devices)} " if devices else ""
            times = f" ({len(events)} x)" if len(events) > 1 else ""
            text = f"{named}{words}{times}: {events[0].text[:100]}"
            make = failed if level == "fail" else warned
            component = devices[0] if len(devices) == 1 else ""
            code = f"kernel.errors.{kind.replace('_', '-')}"
            yield make(text, remedy=remedy, component=component, code=code)


def _killed(log: KernelLog) -> Iterator[Finding]:
    kills = log.of("oom_kill")
    for job in dict.fromkeys(e.values.get("job") for e in kills if e.values["scope"] == "memcg"):
        names = _programs([e for e in kills if e.values.get("job") == job])
        owner = f"job {job}" if job else "a job"
        yield failed(
            f"{owner} reached its memory limit: the kernel killed {names}",
            remedy="give the job more memory or use fewer data loader workers; the node is healthy",
            code="kernel.errors.oom-job",
        )
    of_node = [e for e in kills if e.values["scope"] != "memcg"]
    if of_node:
        yield failed(
            f"the node ran out of memory: the kernel killed {_programs(of_node)}",
            remedy="find what filled memory (`ps aux --sort -rss`, /dev/shm), then restart the job",
            code="kernel.errors.oom-node",
        )


def _programs(events: list[KernelEvent]) -> str:
    names = [f"{e.values.get('process', '?')} ({e.values.get('pid', '?')})" for e in events]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _crashed(log: KernelLog) -> Iterator[Finding]:
    libraries: dict[str, list[KernelEvent]] = {}
    for event in log.of("segfault"):
        libraries.setdefault(str(event.values.get("lib", "")), []).append(event)
    for lib, events in libraries.items():
        where = f" in {lib}" if lib else ""
        yield warned(
            f"{_programs(events)} crashed{where}: software, no sign of broken hardware",
            remedy="read the job's log; check that NCCL, CUDA and driver versions fit together",
            code="kernel.errors.segfault",
        )


def _flaps(log: KernelLog, expected: KernelExpect) -> Iterator[Finding]:
    for link in log.links:
        if link.name in expected.ignored_hcas:
            continue
        if link.went_down:
            yield failed(
                f"{link.name} ({link.pci}) went down and stayed down",
                remedy="check cable, optic and switch port; is the leaf switch powered?",
                component=link.name,
                code="kernel.errors.link-down",
            )
        elif link.n_flaps:
            make = failed if link.n_flaps > 1 else warned
            yield make(
                f"{link.name} ({link.pci}) lost its link {link.n_flaps} times; it is up now",
                remedy="change cable or optic, look at the switch port's FEC errors; keep it out "
                "of NCCL_IB_HCA until it is stable",
                component=link.name,
                code="kernel.errors.link-flap",
            )


def _nfs(log: KernelLog) -> Iterator[Finding]:
    for event in log.of("nfs_lost"):
        server = event.values.get("server", "?")
        if event.values.get("back"):
            yield warned(
                f"NFS server {server} did not answer for a while; it does again",
                remedy="check the storage network; programs waited in the meantime",
                component=str(server),
                code="kernel.errors.nfs",
            )
        else:
            yield failed(
                f"NFS server {server} does not answer",
                remedy=f"`ping {server}`; bring server or network back before starting the job",
                component=str(server),
                code="kernel.errors.nfs",
            )


ERRORS = Check(
    name="kernel.errors",
    question="Did the kernel report errors of PCIe, memory, CPU, links or file systems?",
    command=KERNEL_LOG_COMMAND,
    parse=parse_kernel_log,
    expect=expect,
    judge=judge,
    facts=kernel_facts,
    recognises=is_kernel_log,
    needs_root=True,
    needs="dmesg (util-linux) or journalctl (systemd)",
    expects=("ignored_hcas",),
    timeout_s=30.0,
)
