"""Alert rules on dcgm-exporter's, node_exporter's and our own metrics.

Names are those of dcgm-exporter's default collectors, before and after 4.9 renamed them; where an
exporter has neither, `GpuMetricsMissing` says so instead of staying silent. A value that DCGM does
not know comes as a very large number, so temperatures above 200 are none. The node's name is in
``Hostname``, from 4.8.3 on in ``hostname``. Cards are counted by ``UUID``: labels of the job on it
come and go.

Source: etc/default-counters.csv of NVIDIA/dcgm-exporter; the collectors `infiniband`, `netclass` of
node_exporter. Where no source is named, the number is ours: confirm it on your machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from recovery.monitoring.limits import Limits
from recovery.monitoring.names import (
    MEM_TEMP,
    POWER,
    REMAP_FAILED,
    TEMP,
    XID,
    either,
    share_in_use,
)
from recovery.reading.xid import XIDS, Severity

NODE = "{{ or $labels.node $labels.Hostname $labels.hostname $labels.instance }}"
GPU = f"{NODE} GPU {{{{ $labels.gpu }}}}"
_HOST = "by (job, Hostname, hostname)"  # not the instance: a restarted pod has a new address
_CARD = "by (job, Hostname, hostname, UUID)"
_KNOWN = 200  # degrees: DCGM's "blank" is above 1e14
FAIL, WARN = "fail", "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule. ``wait`` is how long the expression must hold; ``do`` the next thing to type."""

    name: str
    group: str
    expr: str
    wait: str
    severity: str
    summary: str
    do: str
    labels: dict[str, str] = field(default_factory=dict)


def alerts(machines: Iterable[Limits]) -> tuple[Alert, ...]:
    """All rules; those with limits of hardware once for each kind of machine."""
    return (
        *(rule for machine in machines for rule in _of_machine(machine)),
        *_of_any_gpu(),
        *_of_silence(),
        *_of_links(),
        *_of_runs(),
    )


def _of_machine(limits: Limits) -> Iterator[Alert]:
    cards, labels = limits.selector, {"profile": limits.profile}
    for name, metric, limit, severity, wait in (
        ("GpuTooHot", TEMP, limits.temp_max_c, FAIL, "2m"),
        ("GpuHot", TEMP, limits.temp_warn_c, WARN, "10m"),
        ("GpuMemoryTooHot", MEM_TEMP, limits.mem_temp_max_c, FAIL, "2m"),
    ):
        if limit is not None:
            yield Alert(
                name=name,
                group="recover-gpu",
                expr=f"{either(metric, cards)} >= {limit:g} < {_KNOWN}",
                wait=wait,
                severity=severity,
                summary=f"{GPU}: {{{{ $value }}}} C, the limit is {limit:g}",
                do="look at fans, filters and the inlet; then `recover preflight CLUSTER`",
                labels=labels,
            )
    if limits.power_limit_w is not None:
        yield from _of_power(limits, limits.power_limit_w)


def _of_power(limits: Limits, limit_w: float) -> Iterator[Alert]:
    cards, labels = limits.selector, {"profile": limits.profile}
    power = either(POWER, cards)
    total = f"sum by (job) ({power} < 1e5)[10m:30s]"
    most, least = f"max_over_time({total})", f"min_over_time({total})"
    busy = f"0.4 * {limit_w:g} * count by (job) ({power})"
    yield Alert(
        name="PowerSwing",
        group="recover-gpu",
        expr=f"({most} - {least}) / {most} > 0.5 and {most} > {busy}",
        wait="0m",
        severity=WARN,
        summary="the power of all GPUs together swung by {{ $value | humanizePercentage }} "
        "within 10 minutes",
        do="all stopped at once: `recover triage LOG`; without a stop ask the site about its feeds",
        labels=labels,
    )
    held = f"avg {_HOST} ({share_in_use(cards)}) > 0.5"
    yield Alert(
        name="TrainingSilent",
        group="recover-silence",
        expr=f"{held} and max {_HOST} ({power} < 1e5) < {0.3 * limit_w:g}",
        wait="15m",
        severity=WARN,
        summary=f"{NODE}: its GPU memory is in use, but no GPU has done work for 15 minutes",
        do="look for a hang: `recover triage LOG`",
        labels=labels,
    )


def _of_any_gpu() -> Iterator[Alert]:
    fatal = tuple(code for code, xid in XIDS.items() if xid.severity is Severity.FATAL)
    worn = tuple(code for code, xid in XIDS.items() if xid.severity is Severity.DEGRADED)
    for name, codes, severity in (("GpuXid", fatal, FAIL), ("GpuXidDegraded", worn, WARN)):
        yield Alert(
            name=name,
            group="recover-gpu",
            expr=_any_of(either(XID), codes),
            wait="0m",
            severity=severity,
            summary=f"{GPU}: Xid {{{{ $value }}}}",
            do="`recover explain xid {{ $value }}`",
        )
    yield Alert(
        name="GpuMemoryPeak",
        group="recover-gpu",
        expr=f"max_over_time({share_in_use()}[10m:30s]) > 0.98",
        wait="0m",
        severity=WARN,
        summary=f"{GPU}: {{{{ $value | humanizePercentage }}}} of its memory was in use",
        do="the job is near running out of memory: smaller batches, or more sharding",
    )
    yield Alert(
        name="GpuRowRemapFailed",
        group="recover-gpu",
        expr=f"{either(REMAP_FAILED)} > 0",
        wait="0m",
        severity=FAIL,
        summary=f"{GPU}: a bad memory row could not be replaced",
        do="`recover bundle RUN NODE` for the vendor; the card has to go",
    )


def _any_of(metric: str, codes: Sequence[int]) -> str:
    return " or ".join(f"{metric} == {code}" for code in codes)


def _of_silence() -> Iterator[Alert]:
    hour = " or ".join(f"present_over_time({name}[1h])" for name in TEMP)
    seen = f"count {_HOST} (count {_CARD} ({hour}))"
    now = f"count {_HOST} (count {_CARD} {either(TEMP)})"
    rules = (
        ("NodeSilent", f"{seen} unless {now}", "2m", FAIL,
         f"{NODE}: its GPUs have said nothing for 2 minutes",
         "look at its BMC: power, event log; then `recover preflight CLUSTER --nodes NODE`"),
        ("GpuGone", f"{seen} > {now}", "2m", FAIL,
         f"{NODE}: fewer GPUs than within the last hour",
         "`recover preflight CLUSTER --nodes NODE`; often Xid 79: `recover explain xid 79`"),
        ("ManyNodesSilent", f"count({seen} unless {now}) / count({seen}) > 0.2", "1m", FAIL,
         "{{ $value | humanizePercentage }} of the GPU nodes fell silent",
         "was it the power? `recover plan CLUSTER`, then `recover run CLUSTER`"),
        ("ExporterSilent", 'up{job=~".*(dcgm|gpu).*"} == 0', "5m", WARN,
         f"{NODE}: its exporter does not answer", "systemctl status dcgm-exporter on the node"),
        ("GpuMetricsMissing",
         f'up{{job=~".*dcgm.*"}} == 1 unless on (job, instance) {either(TEMP)}', "10m",
         WARN, f"{NODE}: its exporter answers, but without {TEMP[0]}: these rules are blind there",
         "give dcgm-exporter its default collectors file again; look at its log"),
    )  # fmt: skip
    yield from (_plain("recover-silence", *rule) for rule in rules)


def _of_links() -> Iterator[Alert]:
    flaps = "increase(node_infiniband_link_downed_total[30m])"
    port = f"{NODE} {{{{ $labels.device }}}}"
    remedy = "`recover preflight CLUSTER --nodes NODE`; then clean or change cable and optics"
    rules = (
        ("LinkFlap", f"{flaps} >= 1 < 3", "0m", WARN, f"{port}: the link went down", remedy),
        ("LinkFlapping", f"{flaps} >= 3", "0m", FAIL,
         f"{port}: the link went down {{{{ $value | humanize }}}} times in 30 minutes", remedy),
        ("CarrierFlapping",
         'increase(node_network_carrier_changes_total{device=~"(en|eth|ib|mlx|roce).*"}[30m]) >= 4',
         "0m", WARN, f"{port}: the carrier comes and goes", remedy),
    )  # fmt: skip
    yield from (_plain("recover-links", *rule) for rule in rules)


def _of_runs() -> Iterator[Alert]:
    run = "{{ $labels.runbook }} on {{ $labels.cluster }}"
    rules = (
        ("RunNotDone", "recover_run_exit_code > 0", "0m", WARN,
         f"{run} ended with status {{{{ $value }}}}", "`recover report last`"),
        ("PreflightOld",
         'time() - recover_run_finished_timestamp_seconds{runbook="preflight"} > 93600', "0m", WARN,
         f"{run}: the last one ended {{{{ $value | humanizeDuration }}}} ago",
         "`recover schedule list`, then `recover preflight CLUSTER`"),
    )  # fmt: skip
    yield from (_plain("recover-runs", *rule) for rule in rules)


def _plain(group: str, *row: str) -> Alert:
    name, expr, wait, severity, summary, do = row
    return Alert(
        name=name, group=group, expr=expr, wait=wait, severity=severity, summary=summary, do=do
    )
