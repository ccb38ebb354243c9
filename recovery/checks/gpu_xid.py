"""Did the kernel report GPU errors since the last boot?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Level, Verdict, failed, unknown, verdict, warned
from recovery.reading.klog import KERNEL_LOG_COMMAND, KernelLog, is_kernel_log, parse_kernel_log
from recovery.reading.klog_facts import kernel_facts, missing_part, reach
from recovery.reading.xid import WHAT_TO_DO, XIDS, Action, Severity
from recovery.reading.xid_rules import Conclusion, conclude


@dataclass(frozen=True, slots=True)
class XidExpect:
    """``has_gpus`` False: the profile says that this node has none, so the driver may be silent."""

    has_gpus: bool = True


def expect(raw: Mapping[str, Any]) -> XidExpect:
    """Reads ``expected_gpus``: 0 means a node without GPUs."""
    return XidExpect(has_gpus=raw.get("expected_gpus") != 0)


def judge(log: KernelLog, expected: XidExpect) -> Verdict:
    """One finding for each GPU and switch that reported something, echoes folded into one."""
    found = [*_lost(log), *_concluded(log), *_torn(log)]
    if not found:
        found.extend(missing_part(log, needs_driver=expected.has_gpus))
    return verdict(found, otherwise=f"no GPU error {reach(log)}")


def _lost(log: KernelLog) -> Iterator[Finding]:
    for event in log.of("gpu_lost", "gpu_probe_failed"):
        words = "fell off the bus" if event.kind == "gpu_lost" else "did not answer at driver load"
        yield failed(
            f"GPU {event.device} {words}",
            remedy="save nvidia-bug-report, power cycle by the BMC; if it does not come back check "
            "seating and auxiliary power, then replace it",
            component=event.device,
            code="gpu.xid.lost",
        )
    for event in log.of("driver_refused"):
        yield failed(
            f"the NVIDIA driver did not start: {event.text[6:90]}",
            remedy="make driver, kernel module and user libraries one version, then load it again",
            code="gpu.xid.driver",
        )


def _concluded(log: KernelLog) -> Iterator[Finding]:
    concluded = conclude(log.events, log.driver_version)
    echoes = [c for c in concluded if c.echo_of]
    for one in concluded:
        if not one.echo_of:
            yield _finding(one)
    if echoes:
        names = ", ".join(c.component for c in echoes[:8])
        more = f" and {len(echoes) - 8} more" if len(echoes) > 8 else ""
        yield warned(
            f"{names}{more}: {echoes[0].meaning}, not a fault of their own",
            remedy="act on that one; these need nothing",
            code="gpu.xid.echo",
        )


def _finding(one: Conclusion) -> Finding:
    prefix = "" if one.is_switch else f"Xid {'+'.join(str(c) for c in one.codes)}: "
    lines = f" ({one.n_lines} lines)" if one.n_lines > 1 else ""
    text = f"{one.component} {prefix}{one.meaning}{lines}"
    remedy = WHAT_TO_DO[one.action].format(gpu=one.component)
    if one.is_switch and one.severity is Severity.FATAL:
        remedy = "stop the jobs, reset all GPUs and switches of the node or reboot it; check cable "
        remedy += "and baseboard when it repeats"
    if one.note:
        remedy = f"{remedy} ({one.note})"
    return Finding(_level(one), text, remedy, one.component, _code(one))


def _code(one: Conclusion) -> str:
    return f"gpu.sxid.{one.codes[0]}" if one.is_switch else f"gpu.xid.{one.codes[0]}"


def _level(one: Conclusion) -> Level:
    if one.severity is None:
        return Level.UNKNOWN
    if one.severity is Severity.FATAL:
        return Level.FAIL
    drastic = one.action in (Action.ISOLATE, Action.REBOOT_NODE, Action.RESET_GPU)
    if one.severity is Severity.DEGRADED and drastic:
        # A retired part (156) works on until the reset that it waits for.
        return Level.WARN if one.codes[0] == 156 else Level.FAIL
    if one.codes[0] in (106, 107, 162) and one.severity is Severity.INFO:
        return Level.PASS
    return Level.WARN


def _torn(log: KernelLog) -> Iterator[Finding]:
    if log.of("xid_unreadable"):
        yield unknown(
            "a line of the driver begins with Xid and cannot be read: it may be cut",
            remedy="read the kernel log again, whole: `sudo journalctl -k -b`",
            code="gpu.xid.unreadable",
        )
    if log.of("rate_limited") and not log.xid_counts:
        yield warned(
            "the kernel left out messages (rate limit): errors may be missing",
            remedy="look at `journalctl -k -b` around the gap",
            code="gpu.xid.rate-limited",
        )


def meanings() -> Mapping[str, str]:
    """What the codes of these findings mean."""
    return {f"gpu.xid.{code}": row.meaning for code, row in XIDS.items()}


XID = Check(
    name="gpu.xid",
    question="Did the kernel report GPU errors since the last boot?",
    command=KERNEL_LOG_COMMAND,
    parse=parse_kernel_log,
    expect=expect,
    judge=judge,
    facts=kernel_facts,
    recognises=is_kernel_log,
    needs_root=True,
    needs="dmesg (util-linux) or journalctl (systemd)",
    expects=("expected_gpus",),
    timeout_s=30.0,
)
