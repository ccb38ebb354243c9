"""The page shows the runs and nothing else, to those who may see them, and changes nothing."""

import json
import re

import pytest

from tests.reports.stories import EVIL, Shelf, events_of
from tests.stored_runs import store
from tests.web.runs import running
from tests.web.serving import basic, served

RUN = "20261201-000000-c-ab12"
LIVE = "20261201-000001-live-cd34"
TOKEN = "0123456789abcdef-token"
pytest.importorskip("starlette", reason="needs recover[serve]")
pytest.importorskip("uvicorn", reason="needs recover[serve]")


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    kept = store(folder, RUN, lambda evidence: events_of(4, evidence, EVIL))
    kept.evidence.put(b"<script>alert(1)</script>\n")
    kept.evidence.put(b"\x7fELF\0\0")
    (folder / "secret.txt").write_text("not for the web")
    return folder


@pytest.fixture(scope="module")
def server(state):
    with served(state) as running_server:
        yield running_server


@pytest.fixture(scope="module")
def guarded(state):
    with served(state, "--token-env", "PAGE_TOKEN", PAGE_TOKEN=TOKEN) as running_server:
        yield running_server


def digests(state):
    return sorted(p.name for p in (state / "runs" / RUN / "evidence").rglob("*") if p.is_file())


def test_the_runs_are_listed_with_how_they_ended(server):
    page = server.ask("/")

    assert page.status == 200
    assert f'<a href="/runs/{RUN}/">{RUN}</a>' in page.text
    assert "power-loss" in page.text
    assert "all steps done" in page.text


def test_the_report_is_there_under_its_own_rule(server):
    page = server.ask(f"/runs/{RUN}/reports/report.html")

    assert page.status == 200
    assert "<script>alert" not in page.text
    rule = page.headers["content-security-policy"]
    inside = re.search(r'Content-Security-Policy" content="([^"]*)"', page.text)[1]
    assert rule == f"{inside.replace('&#39;', chr(39))}; frame-ancestors 'none'"


def test_evidence_is_shown_as_text_and_may_do_nothing(server, state):
    found = [server.ask(f"/runs/{RUN}/evidence/{d[:2]}/{d}") for d in digests(state)]

    kinds = {a.headers["content-type"].partition(";")[0] for a in found}
    assert kinds == {"text/plain", "application/octet-stream"}
    assert all("sandbox" in a.headers["content-security-policy"] for a in found)
    binary = next(a for a in found if "octet" in a.headers["content-type"])
    assert binary.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("path", ["/", f"/runs/{RUN}/", "/static/live.js", "/nothing", "/runs/x/"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_every_answer_tells_the_browser_to_be_strict(server, path, method):
    answer = server.ask(path, method)

    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(server, method):
    assert server.ask("/", method).status == 405
    assert server.ask(f"/runs/{RUN}/", method).status == 405


DIGEST = "a" * 64


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/runs/../secret.txt",
        "/runs/..%2fsecret.txt/",
        "/runs/%2e%2e/",
        "/runs/%2e%2e/evidence/aa/" + DIGEST,
        f"/runs/{RUN}/evidence/../../../secret.txt",
        f"/runs/{RUN}/evidence/..%2f..%2f..%2fsecret.txt/x",
        f"/runs/{RUN}/evidence/aa/..%2f..%2f..%2f..%2fsecret.txt",
        f"/runs/{RUN}/evidence/ab/{DIGEST}",
        f"/runs/{RUN}/evidence/aa/{DIGEST}",
        f"/runs/{RUN}/evidence/AA/{DIGEST.upper()}",
        f"/runs/{RUN}/evidence/aa/{'a' * 63}%00",
        f"/runs/{RUN}/journal.jsonl",
        f"/runs/{RUN}/reports/..%2fjournal.jsonl",
        f"/runs/{RUN[:8]}/",
        "/runs/last/",
        "/runs//",
        "/static/..%2fsite.py",
        "/static/%2e%2e",
        "//etc/passwd",
    ],
)
def test_no_path_leads_to_anything_else(server, path):
    answer = server.ask(path)

    assert answer.status == 404
    assert "not for the web" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_is_not_of_this_machine_is_refused(server, host):
    assert server.ask("/", Host=host).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost:8787", "127.0.0.1", "[::1]:8787"])
def test_names_of_this_machine_are_answered(server, host):
    assert server.ask("/", Host=host).status == 200


@pytest.mark.parametrize("path", ["/", "/static/live.js", f"/runs/{RUN}/events", "/nothing"])
def test_without_the_token_nothing_is_told(guarded, path):
    for wrong in ({}, {"Authorization": basic("wrong")}, {"Authorization": "Basic !!!"},
                  {"Authorization": f"Digest {TOKEN}"}, {"Authorization": "Bearer"}):  # fmt: skip
        answer = guarded.ask(path, **wrong)

        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
        assert RUN not in answer.text


def test_with_the_token_it_answers_under_any_name(guarded):
    assert guarded.ask("/", Authorization=basic(TOKEN), Host="head.example").status == 200
    assert guarded.ask("/", Authorization=f"Bearer {TOKEN}").status == 200


def pictures(answer):
    """What a stream tells, event by event: (name, values)."""
    name = ""
    for raw in answer:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_run_that_ended_is_told_once(server):
    line, answer = server.following(RUN)

    told = list(pictures(answer))
    line.close()

    assert [name for name, _ in told] == ["progress", "end"]
    assert told[0][1]["state"] == "done"
    assert told[0][1]["next"] == f"recover report {RUN}"
    assert "\x1b" not in json.dumps(told)


def test_a_running_run_is_told_as_it_grows(server, state):
    events = list(events_of(4, Shelf()))
    with running(state, LIVE) as journal:
        for event in events[:3]:
            journal.append(event)
        line, answer = server.following(LIVE)
        told = pictures(answer)
        first = next(told)[1]
        for event in events[3:]:
            journal.append(event)
        last = [values for name, values in told if name == "progress"][-1]
        line.close()

    assert first["state"] == "running"
    assert first["steps"][0]["of"] == 4
    assert first["steps"][0]["done"] == 1
    assert last["state"] == "done"
    assert [s["outcome"] for s in last["steps"]] == ["done"] * 3


def test_a_run_whose_owner_is_gone_is_crashed(server, state):
    def cut(evidence):
        return list(events_of(4, evidence))[:3]

    store(state, "20261201-000002-gone", cut)

    line, answer = server.following("20261201-000002-gone")
    told = list(pictures(answer))
    line.close()

    assert told[0][1]["state"] == "crashed"
    assert told[0][1]["next"].startswith("recover resume ")


def test_a_broken_journal_is_said_and_does_not_end_the_page(server, state):
    folder = store(state, "20261201-000003-torn", lambda evidence: events_of(2, evidence))
    text = folder.journal.read_text().splitlines(keepends=True)
    folder.journal.write_text(text[0] + "not json\n" + "".join(text[1:]))

    line, answer = server.following("20261201-000003-torn")
    told = list(pictures(answer))
    line.close()

    assert told[0][0] == "trouble"
    assert "not JSON" in told[0][1]
    assert server.ask("/runs/20261201-000003-torn/reports/report.html").status == 500
    assert "unreadable" in server.ask("/").text


def test_too_many_open_pages_are_refused_and_stopping_does_not_wait_for_them(state):
    run = "20261201-000004-many"
    with running(state, run) as journal, served(state) as server:
        for event in list(events_of(4, Shelf()))[:3]:
            journal.append(event)
        open_lines = [server.following(run) for _ in range(32)]
        for _, answer in open_lines:
            assert next(pictures(answer))[0] == "progress"
        line, refused = server.following(run)

        assert (refused.status, refused.getheader("retry-after")) == (503, "30")
        assert server.stop() == (0, "")
        for each, _ in (*open_lines, (line, refused)):
            each.close()
