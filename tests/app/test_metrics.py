"""Metrics leave the run's folder: whole, readable, and never at the price of the run."""

import base64

import pytest

from recovery.app.metrics import is_wanted, publish
from tests.app.receiver import STRANGE, receiving, strange

TEXT = "recover_run_exit_code 0\n"


def published(**variables):
    return list(publish(variables, TEXT, "cluster a", "preflight"))


def test_nothing_is_wanted_unless_the_inventory_says_so():
    assert not is_wanted({})
    assert is_wanted({"metrics_textfile": "/x"})
    assert is_wanted({"metrics_pushgateway": "http://x"})


def test_a_folder_gets_a_file_for_each_cluster_and_runbook(tmp_path):
    assert published(metrics_textfile=str(tmp_path)) == []

    (written,) = tmp_path.iterdir()
    assert written.name == "recover_cluster_a_preflight.prom"
    assert written.read_text() == TEXT
    assert written.stat().st_mode & 0o777 == 0o644


def test_a_file_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "r.prom"
    target.write_text("old\n")
    held = target.open()

    assert published(metrics_textfile=str(target)) == []

    assert held.read() == "old\n"  # who reads the old one reads it to its end
    held.close()
    assert target.read_text() == TEXT
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_not_there_is_said():
    assert published(metrics_textfile="/nowhere/at/all") == [
        "metrics not written: /nowhere/at/all: No such file or directory"
    ]


def test_a_push_gateway_gets_them_for_one_group():
    with receiving() as gateway:
        said = published(metrics_pushgateway=f"http://{gateway.place}/base/")

    assert said == []
    method, path, headers, body = gateway.taken[0]
    assert (method, path) == (
        "PUT",
        "/base/metrics/job/recover/cluster/cluster%20a/runbook/preflight",
    )
    assert body == TEXT
    assert headers["Content-Type"].startswith("text/plain")


def test_a_login_is_sent_as_a_header_and_never_said():
    with receiving(status=403) as gateway:
        (said,) = published(metrics_pushgateway=f"http://ops:s%20cret@{gateway.place}")

    assert gateway.taken[0][2]["Authorization"] == (
        f"Basic {base64.b64encode(b'ops:s cret').decode()}"
    )
    assert said == f"metrics not pushed to {gateway.place}: Forbidden"


def test_a_gateway_that_is_away_is_said():
    with receiving() as gone:
        place = gone.place

    (said,) = published(metrics_pushgateway=f"http://{place}")

    assert said.startswith(f"metrics not pushed to {place}: ")
    assert "refused" in said


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "nonsense"])
def test_only_http_is_spoken(url):
    assert published(metrics_pushgateway=url) == [
        "metrics not pushed: metrics_pushgateway must be an http or https address"
    ]


@pytest.mark.parametrize("kind", sorted(STRANGE))
def test_what_does_not_speak_http_as_it_should_is_said_and_ends_nothing(kind):
    with strange(STRANGE[kind]) as (place, taken):
        said = published(metrics_pushgateway=f"http://{place}")

    assert len(taken) == 1
    if kind != "half an answer":  # its status came: it took them
        assert [line.partition(":")[0] for line in said] == ["metrics not pushed to 127.0.0.1"]


def test_a_gateway_that_never_answers_costs_its_limit_and_no_more():
    with strange(None) as (place, _):
        variables = {"metrics_pushgateway": f"http://{place}"}
        (said,) = publish(variables, TEXT, "c", "preflight", limit_s=0.2)

    assert said == f"metrics not pushed to {place}: timed out"


def test_an_address_that_is_none_is_said():
    (said,) = published(metrics_pushgateway="http://[::1")

    assert said.startswith("metrics not pushed: metrics_pushgateway is no address")
