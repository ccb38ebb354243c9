"""A Grafana dashboard over the runs, the GPUs and the links, as its JSON values.

Source: the dashboard's schema in grafana/grafana, kinds/dashboard/dashboard_kind.cue (version 36).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recovery.monitoring.names import MEM_TEMP, POWER, TEMP, XID, either, share_in_use

SCHEMA_VERSION = 36
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_HOST = "Hostname, hostname"
_LEVELS = ((0, "green"), (1, "yellow"), (2, "purple"), (3, "red"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: its queries, each with the words of its legend."""

    title: str
    about: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    unit: str = "none"
    width: int = 12
    height: int = 8
    steps: tuple[tuple[float, str], ...] = ()


_RUNS = (
    Panel(
        title="How the newest runs ended",
        about="Exit status: 0 done, 1 a gate shut, 3 undecided, 130 interrupted.",
        queries=(('recover_run_exit_code{cluster=~"$cluster"}', "{{cluster}} {{runbook}}"),),
        kind="stat",
        steps=((1, "red"),),
    ),
    Panel(
        title="Nodes by how they stood",
        about="Of the newest run of each runbook.",
        queries=(('recover_run_nodes{cluster=~"$cluster"}', "{{runbook}} {{state}}"),),
        kind="bargauge",
    ),
    Panel(
        title="Nodes that did not pass",
        about="Worst answer: 1 warn, 2 unknown, 3 fail.",
        queries=(('recover_node_level{cluster=~"$cluster"} > 0', "{{node}} {{runbook}}"),),
        kind="stat",
        steps=_LEVELS[1:],
    ),
    Panel(
        title="Findings",
        about="Nodes with a finding, by its code: recover explain CODE.",
        queries=(('topk(20, recover_finding_nodes{cluster=~"$cluster"})', "{{code}} {{level}}"),),
        kind="bargauge",
    ),
    Panel(
        title="Bus bandwidth of the slowest nodes",
        about="Best of each node in the network test.",
        queries=(
            (
                'bottomk(10, recover_node_mesh_busbw_bytes_per_second{cluster=~"$cluster"})',
                "{{node}} {{level}}",
            ),
        ),
        kind="bargauge",
        unit="Bps",
    ),
    Panel(
        title="How long the steps took",
        about="Of the newest run of each runbook.",
        queries=(('recover_step_duration_seconds{cluster=~"$cluster"}', "{{runbook}} {{step}}"),),
        kind="bargauge",
        unit="s",
    ),
)
_GPUS = (
    Panel(
        title="GPU temperature, hottest 10",
        about="Core temperature.",
        queries=((f"topk(10, {either(TEMP)} < 200)", "{{Hostname}}{{hostname}} GPU {{gpu}}"),),
        unit="celsius",
    ),
    Panel(
        title="GPU memory temperature, hottest 10",
        about="Cards that do not know it are left out.",
        queries=((f"topk(10, {either(MEM_TEMP)} < 200)", "{{Hostname}}{{hostname}} GPU {{gpu}}"),),
        unit="celsius",
    ),
    Panel(
        title="Power of all GPUs",
        about="A job that stops takes all of it down at once.",
        queries=((f"sum by (job) ({either(POWER)} < 1e5)", "{{job}}"),),
        unit="watt",
    ),
    Panel(
        title="Memory in use, fullest 10",
        about="Share of the card's memory.",
        queries=(
            (
                f"topk(10, {share_in_use()})",
                "{{Hostname}}{{hostname}} GPU {{gpu}}",
            ),
        ),
        unit="percentunit",
    ),
    Panel(
        title="Last Xid",
        about="recover explain xid N says what each means.",
        queries=((f"{either(XID)} > 0", "{{Hostname}}{{hostname}} GPU {{gpu}}"),),
    ),
    Panel(
        title="GPUs that are heard of, by node",
        about="A line that falls has lost a GPU; one that ends, the node.",
        queries=(
            (
                f"count by ({_HOST}) (count by ({_HOST}, UUID) {either(TEMP)})",
                "{{Hostname}}{{hostname}}",
            ),
        ),
    ),
)
_LINKS = (
    Panel(
        title="Links that went down",
        about="InfiniBand ports, times in 30 minutes.",
        queries=(
            (
                "increase(node_infiniband_link_downed_total[30m]) > 0",
                "{{instance}} {{device}}:{{port}}",
            ),
        ),
    ),
    Panel(
        title="Carrier changes",
        about="Network devices, times in 30 minutes.",
        queries=(
            (
                'increase(node_network_carrier_changes_total{device=~"(en|eth|ib|mlx|roce).*"}[30m])'
                " > 0",
                "{{instance}} {{device}}",
            ),
        ),
    ),
)
ROWS = (("Runs of recover", _RUNS), ("GPUs", _GPUS), ("Links", _LINKS))


def dashboard() -> dict[str, Any]:
    """The dashboard; the source of its data and the cluster are chosen in Grafana."""
    return {
        "uid": "recover-cluster",
        "title": "recover: cluster",
        "description": "Runs of recover, GPUs and links of a training cluster.",
        "tags": ["recover", "gpu"],
        "style": "dark",
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA_VERSION,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_data_source(), _cluster()]},
        "annotations": {"list": []},
        "links": [],
        "panels": _panels(),
    }


def _variable(name: str, kind: str, query: str) -> dict[str, Any]:
    return {
        "id": "00000000-0000-0000-0000-000000000000",
        "name": name,
        "label": name,
        "type": kind,
        "query": query,
        "global": False,
        "hide": 0,
        "skipUrlSync": False,
        "index": -1,
        "state": "NotStarted",
    }


def _data_source() -> dict[str, Any]:
    return _variable("source", "datasource", "prometheus")


def _cluster() -> dict[str, Any]:
    return {
        **_variable("cluster", "query", "label_values(recover_run_info, cluster)"),
        "datasource": _SOURCE,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"selected": True, "text": "All", "value": "$__all"},
        "refresh": 2,
    }


def _panels() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    top = 0
    for title, panels in ROWS:
        made.append(_row(len(made) + 1, title, top))
        top += 1
        for number, panel in enumerate(panels):
            place = {"x": 12 * (number % 2), "y": top, "w": panel.width, "h": panel.height}
            made.append(_panel(len(made) + 1, panel, place))
            top += panel.height if number % 2 or number == len(panels) - 1 else 0
    return made


def _row(number: int, title: str, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": 24, "h": 1}
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": place,
        "panels": [],
    }


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    instant = panel.kind != "timeseries"
    steps = [{"color": "green"}, *({"color": c, "value": v} for v, c in panel.steps)]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "transparent": False,
        "repeatDirection": "h",
        "transformations": [],
        "options": _options(panel.kind),
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "thresholds": {"mode": "absolute", "steps": steps},
                "color": {"mode": "thresholds" if panel.steps else "palette-classic"},
            },
            "overrides": [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + i),
                "datasource": _SOURCE,
                "expr": expr,
                "legendFormat": legend,
                "instant": instant,
                "range": not instant,
            }
            for i, (expr, legend) in enumerate(panel.queries)
        ],
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == "timeseries":
        return {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {"reduceOptions": {"calcs": ["lastNotNull"], "values": False, "fields": ""}}
