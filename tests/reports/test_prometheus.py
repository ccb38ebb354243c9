"""Metrics of a run: stable names, and what Prometheus' own tool says of them."""

import re
import shutil
import subprocess

import pytest

from recovery.inventory import fold
from recovery.model.events import RunStarted
from recovery.reports.prometheus import PROMETHEUS
from tests.reports.stories import EVIL, Shelf, events_of

# Dashboards and alert rules stand on these names: a new one is welcome, none may go.
NAMES = {
    "recover_run_info",
    "recover_run_started_timestamp_seconds",
    "recover_run_finished_timestamp_seconds",
    "recover_run_duration_seconds",
    "recover_run_exit_code",
    "recover_run_nodes",
    "recover_step_duration_seconds",
    "recover_step_nodes",
    "recover_node_level",
    "recover_node_set_aside",
    "recover_finding_nodes",
    "recover_node_mesh_busbw_bytes_per_second",
}


def text_of(n_nodes=6, words="GPU 3 fell off the bus", events=None):
    shelf = Shelf()
    told = tuple(events_of(n_nodes, shelf, words)) if events is None else events
    return PROMETHEUS.render(told, shelf, fold)


def sample(text, name, **labels):
    """The one value of a metric with these labels among its own."""
    found = [
        line
        for line in text.splitlines()
        if line.startswith(f"{name}{{") and all(f'{k}="{v}"' in line for k, v in labels.items())
    ]
    assert len(found) == 1, found
    return float(found[0].rpartition(" ")[2])


def test_the_names_stay():
    assert set(re.findall(r"^# TYPE (\S+) gauge$", text_of(), re.MULTILINE)) >= NAMES


def test_a_run_says_how_it_ended_and_how_long_it_took():
    text = text_of()

    assert sample(text, "recover_run_exit_code", cluster="c", runbook="power-loss") == 0
    assert sample(text, "recover_run_duration_seconds") == 8
    assert sample(text, "recover_run_info", outcome="done", run="20261201-000000-c-ab12") == 1


def test_nodes_are_counted_by_how_they_stand():
    text = text_of()

    counts = {s: sample(text, "recover_run_nodes", state=s) for s in ("pass", "warn", "unknown")}
    assert counts == {"pass": 3, "warn": 1, "unknown": 1}
    assert sample(text, "recover_run_nodes", state="set_aside") == 1
    assert sample(text, "recover_node_set_aside", node="node002") == 1
    assert sample(text, "recover_node_level", node="node002") == 3
    assert sample(text, "recover_finding_nodes", code="gpu.lost", level="fail") == 1


def test_bandwidths_are_bytes_per_second():
    name = "recover_node_mesh_busbw_bytes_per_second"

    assert sample(text_of(), name, node="node001", level="pairs") == 371.5e9


def test_a_node_that_no_step_reached_is_unknown():
    started = RunStarted(
        at=0, run="r", cluster="c", runbook="b", digest="d", nodes=("n1",), seed=1, version="0",
        owner="me",
    )  # fmt: skip

    text = text_of(events=(started,))

    assert sample(text, "recover_node_level", node="n1") == 2
    assert "recover_run_exit_code" not in text


def test_a_run_that_never_started_has_no_metrics():
    assert text_of(events=()) == "# the run has not started\n"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("words", ["GPU 3 fell off the bus", EVIL, 'a "quoted" \\ line\nbreak'])
def test_promtool_finds_nothing_to_say(words):
    text = text_of(words=words)

    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, "")
