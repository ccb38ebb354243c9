"""The files of `recover monitoring export`: name -> text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from recovery.monitoring.alerts import Alert, alerts
from recovery.monitoring.dashboard import dashboard
from recovery.monitoring.limits import Limits

_HEAD = "# Written by `recover monitoring export`; limits of hardware are those of the profiles.\n"
_README = """# Monitoring for recover

1. Prometheus: copy `recover-alerts.yaml` beside prometheus.yml and name it there
   (`rule_files: [recover-alerts.yaml]`), then `promtool check config prometheus.yml` and reload.
   The jobs that scrape dcgm-exporter should have `dcgm` in their name; node_exporter brings the
   links (collectors infiniband, netclass) and recover's own metrics (textfile).
2. Alertmanager: `alertmanager-example.yaml` shows routes and inhibitions; write in who is told.
   `amtool check-config alertmanager-example.yaml`
3. Grafana: Dashboards, Import, `grafana-dashboard.json`; choose your Prometheus.
4. Metrics of the runs: `metrics_textfile:` or `metrics_pushgateway:` in the inventory.

Metric names are those of dcgm-exporter up to 4.8 with its default collectors; 4.9 renamed them:
give it the collectors file of 4.8, else the alert GpuMetricsMissing fires.
"""


def rendered(machines: Iterable[Limits]) -> dict[str, str]:
    """All files, for these kinds of machines."""
    kinds = tuple(machines)
    return {
        "README.md": _README,
        "alertmanager-example.yaml": _HEAD + _yaml(_alertmanager()),
        "grafana-dashboard.json": json.dumps(dashboard(), indent=1) + "\n",
        "recover-alerts.yaml": _HEAD + _yaml(_rules(alerts(kinds))),
    }


def _yaml(values: Any) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)


def _rules(rules: Sequence[Alert]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for rule in rules:
        groups.setdefault(rule.group, []).append(_rule(rule))
    return {"groups": [{"name": name, "rules": group} for name, group in groups.items()]}


def _rule(rule: Alert) -> dict[str, Any]:
    return {
        "alert": rule.name,
        "expr": rule.expr,
        "for": rule.wait,
        "labels": {"severity": rule.severity, **rule.labels},
        "annotations": {"summary": rule.summary, "do": rule.do},
    }


def _alertmanager() -> dict[str, Any]:
    """One message a cause: what follows from a cause is held back while the cause is told."""
    hook = "http://127.0.0.1:9099/write-in-your-own"
    return {
        "route": {
            "receiver": "people",
            "group_by": ["alertname", "cluster"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "routes": [{"receiver": "on-call", "matchers": ['severity="fail"']}],
        },
        "inhibit_rules": [
            _held("ManyNodesSilent", "NodeSilent|ExporterSilent|GpuGone|PowerSwing", []),
            _held("NodeSilent", "GpuGone|TrainingSilent", ["Hostname", "hostname"]),
            _held("GpuTooHot", "GpuHot", ["Hostname", "hostname", "gpu"]),
            _held("GpuXid", "GpuXidDegraded|GpuGone|TrainingSilent", ["Hostname", "hostname"]),
        ],
        "receivers": [
            {"name": "people", "webhook_configs": [{"url": hook}]},
            {"name": "on-call", "webhook_configs": [{"url": hook}]},
        ],
    }


def _held(cause: str, effects: str, equal: list[str]) -> dict[str, Any]:
    return {
        "source_matchers": [f'alertname="{cause}"'],
        "target_matchers": [f'alertname=~"{effects}"'],
        "equal": equal,
    }
