"""Every report tells the same story, whatever the words in it."""

import json
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from recovery.engine.history import story_of
from recovery.engine.summary import folded_findings, summary_lines, took
from recovery.inventory import fold
from recovery.model.ports import Report
from recovery.registry import collect
from recovery.reports.json import report_schema
from tests.reports.stories import EVIL, Shelf, events_of

REPORTS = collect("recovery.reports", Report)


def rendered(name, n_nodes=8, words="GPU 3 fell off the bus"):
    shelf = Shelf()
    return REPORTS[name].render(tuple(events_of(n_nodes, shelf, words)), shelf, fold)


def test_the_formats_are_these():
    assert set(REPORTS) == {"html", "json", "junit", "md", "prometheus", "text"}


@pytest.mark.parametrize("name", ["html", "md", "text", "junit", "json"])
def test_a_report_names_the_bad_node_its_finding_and_the_remedy(name):
    text = rendered(name)

    for words in ("node002", "GPU 3 fell off the bus", "drain it"):
        assert words in text


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_a_run_without_events_is_rendered_too(name):
    assert REPORTS[name].render((), Shelf(), fold)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_half_a_run_is_rendered_too(name):
    shelf = Shelf()
    events = tuple(events_of(8, shelf))

    for end in range(1, len(events)):
        assert REPORTS[name].render(events[:end], shelf, fold)


def test_words_from_outside_do_no_harm_in_html():
    page = rendered("html", words=EVIL)

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "\x1b" not in page


def test_words_from_outside_do_no_harm_in_xml():
    root = ET.fromstring(rendered("junit", words=EVIL))

    assert "<script>" in root.find(".//failure").get("message")


def test_words_from_outside_do_no_harm_in_markdown():
    table = [line for line in rendered("md", words=EVIL).splitlines() if "alert" in line]

    assert "\\|" in table[0]


def test_junit_counts_failures_and_errors():
    suite = ET.fromstring(rendered("junit")).find("testsuite")

    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "1", "1")


def test_json_has_its_schema_and_folds_the_findings():
    values = json.loads(rendered("json"))

    assert values["schema"] == "recover-report-1"
    assert values["findings"][0]["level"] == "fail"
    assert values["findings"][0]["nodes"] == ["node002"]
    assert values["steps"][0]["gate"]["decision"] == "open-without"


@pytest.mark.parametrize("end", [0, 3, 8, None])
def test_json_keeps_to_its_schema_at_any_point_of_a_run(end):
    shelf = Shelf()
    events = tuple(events_of(8, shelf))[:end]

    report = json.loads(REPORTS["json"].render(events, shelf, fold))

    jsonschema.Draft7Validator.check_schema(report_schema())
    jsonschema.validate(report, report_schema())


def test_findings_come_worst_first_and_folded():
    shelf = Shelf()

    found = folded_findings(story_of(events_of(8, shelf)))

    assert [f.level.word for f in found] == ["fail", "unknown", "warn"]


def test_the_summary_ends_with_the_end_of_the_run():
    lines = summary_lines(story_of(events_of(8, Shelf())), fold)

    assert lines[-1] == "DONE: all steps done (8.0 s)"
    assert "FAIL    check-1: node002: GPU 3 fell off the bus" in lines


def test_the_page_shows_each_topology_once_and_the_mesh():
    page = rendered("html", n_nodes=512)

    assert page.count('aria-label="loss by iteration"') == 1
    assert page.count("node[001-512]") >= 1
    assert "371.5 GB/s" in page


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (12, "12 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")]
)
def test_durations_read_well(seconds, words):
    assert took(seconds) == words
