"""From a run that did not end well to the person who is told: real Prometheus and Alertmanager."""

import json
import shutil
import time
import urllib.request

import pytest
import yaml

from recovery.app.metrics import publish
from recovery.inventory import fold
from recovery.model.events import RunFinished
from recovery.reports.prometheus import PROMETHEUS
from tests.app.receiver import receiving
from tests.monitoring.exported import export
from tests.monitoring.prometheus import LIMIT_S, needs_prometheus, prometheus, serving
from tests.reports.stories import Shelf, events_of

needs_alertmanager = pytest.mark.skipif(
    shutil.which("prometheus-alertmanager") is None, reason="alertmanager is not installed"
)


def shut_run():
    shelf = Shelf()
    events = list(events_of(4, shelf))[:-1]
    end = RunFinished(at=8.0, outcome="shut", exit_code=1, reason="the gate of check-1 is shut")
    return PROMETHEUS.render((*events, end), shelf, fold)


def for_a_test(folder, hook):
    """The exported files, with the waits of a test and its own receiver."""
    export(folder)
    told = yaml.safe_load((folder / "alertmanager-example.yaml").read_text())
    told["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    for receiver in told["receivers"]:
        receiver["webhook_configs"] = [{"url": f"http://{hook}/{receiver['name']}"}]
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(told))


def scraping(target, alertmanager):
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["recover-alerts.yaml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
            "scrape_configs": [{"job_name": "node", "static_configs": [{"targets": [target]}]}],
        }
    )


@needs_prometheus
@needs_alertmanager
def test_a_run_that_was_shut_is_told_with_the_next_command(tmp_path):
    with receiving() as server:
        server.shown = shut_run()
        for_a_test(tmp_path, server.place)

        def command(place):
            return (
                "prometheus-alertmanager",
                f"--config.file={tmp_path / 'alertmanager.yaml'}",
                f"--storage.path={tmp_path / 'alerts'}",
                f"--web.listen-address={place}",
                "--cluster.listen-address=",
            )

        with (
            serving(command, tmp_path) as place,
            prometheus(tmp_path, scraping(server.place, place)),
        ):
            ends_at = time.monotonic() + LIMIT_S
            while not server.taken and time.monotonic() < ends_at:
                time.sleep(0.05)  # poll: two other processes work

    method, path, _, body = server.taken[0]
    alert = json.loads(body)["alerts"][0]
    assert (method, path) == ("POST", "/people")
    assert alert["labels"]["alertname"] == "RunNotDone"
    assert alert["annotations"] == {
        "summary": "power-loss on c ended with status 1",
        "do": "`recover report last`",
    }


@pytest.mark.skipif(
    shutil.which("prometheus-pushgateway") is None, reason="pushgateway is not installed"
)
def test_a_real_push_gateway_takes_a_run_and_forgets_nodes_that_are_gone(tmp_path):
    def command(place):
        return ("prometheus-pushgateway", f"--web.listen-address={place}")

    with serving(command, tmp_path) as place:
        variables = {"metrics_pushgateway": f"http://{place}"}
        first = list(publish(variables, shut_run(), "c", "power-loss"))
        fewer = "".join(x for x in shut_run().splitlines(keepends=True) if "node004" not in x)
        second = list(publish(variables, fewer, "c", "power-loss"))
        with urllib.request.urlopen(f"http://{place}/metrics", timeout=LIMIT_S) as answer:
            kept = answer.read().decode()

    assert (first, second) == ([], [])
    assert 'runbook="power-loss"} 1' in kept
    assert 'node="node003"' in kept
    assert "node004" not in kept
