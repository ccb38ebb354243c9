"""The dashboard is one that Grafana reads, and each of its queries answers on a real Prometheus."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from recovery.inventory import fold
from recovery.monitoring import dashboard, names
from recovery.reports.prometheus import PROMETHEUS
from tests.monitoring.prometheus import needs_prometheus, prometheus, stored
from tests.reports.stories import Shelf, events_of

SCHEMA = json.loads(Path(__file__).with_name("dashboard.schema.json").read_text())
END = 1_790_000_000  # the time of the last sample
GPU = 'job="dcgm",instance="n1:9400",Hostname="n1",UUID="GPU-1",gpu="1",modelName="NVIDIA H100"'
CONSTANT = {
    f"DCGM_FI_DEV_GPU_TEMP{{{GPU}}}": 61,
    f"DCGM_FI_DEV_MEMORY_TEMP{{{GPU}}}": 70,
    f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}}": 400,
    f"DCGM_FI_DEV_FB_USED{{{GPU}}}": 70000,
    f"DCGM_FI_DEV_FB_FREE{{{GPU}}}": 10000,
    f"DCGM_FI_DEV_XID_ERRORS{{{GPU}}}": 79,
}
# The second node has dcgm-exporter 4.9.
RENAMED = dict((names.TEMP, names.MEM_TEMP, names.POWER, names.XID, names.USED, names.FREE))
NEWER = {
    name.replace(old, new).replace("n1", "n2").replace('job="dcgm"', 'job="dcgm49"'): value
    for name, value in CONSTANT.items()
    for old, new in RENAMED.items()
    if name.startswith(f"{old}{{")
}
RISING = (
    'node_infiniband_link_downed_total{job="node",instance="n1:9100",device="mlx5_0",port="1"}',
    'node_network_carrier_changes_total{job="node",instance="n1:9100",device="eth0"}',
)


def samples():
    shelf = Shelf()
    run = PROMETHEUS.render(tuple(events_of(8, shelf)), shelf, fold)
    ours = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in run.splitlines()
        if not line.startswith("#")
    }
    for at in range(END - 3600, END + 1, 60):
        yield from ((name, value, at) for name, value in {**ours, **CONSTANT, **NEWER}.items())
        yield from ((name, (at - END + 3600) // 600, at) for name in RISING)


def queries():
    return [
        (panel["title"], target)
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    stored(folder, samples())
    with prometheus(folder) as running:
        yield running


def test_the_dashboard_keeps_to_grafanas_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(dashboard(), SCHEMA)


def test_no_two_panels_share_a_number_or_a_place():
    panels = dashboard()["panels"]
    cells = [
        (x, y)
        for p in panels
        for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
        for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])
    ]

    assert len({p["id"] for p in panels}) == len(panels)
    assert len(set(cells)) == len(cells)


@needs_prometheus
def test_every_query_has_an_answer_with_the_labels_of_its_legend(server):
    wrong = []
    for title, target in queries():
        expr = target["expr"].replace("$cluster", ".*")
        answer = server.get("/api/v1/query_range", query=expr, start=END - 900, end=END, step=60)
        found = answer.get("data", {}).get("result", [])
        labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - {"hostname"}
        if not found or not all(labels <= set(one["metric"]) for one in found):
            wrong.append((title, expr, answer))

    assert wrong == []


@needs_prometheus
def test_every_query_of_gpus_sees_nodes_of_both_versions_of_the_exporter(server):
    blind = []
    for title, target in queries():
        if "DCGM" not in target["expr"]:
            continue
        answer = server.get("/api/v1/query", query=target["expr"], time=END)
        seen = [one["metric"] for one in answer["data"]["result"]]
        if len({one.get("Hostname", one.get("job")) for one in seen}) != 2:
            blind.append((title, seen))

    assert blind == []


@needs_prometheus
def test_a_cluster_can_be_chosen(server):
    answer = server.get("/api/v1/label/cluster/values", start=END - 900, end=END)

    assert answer["data"] == ["c"]
