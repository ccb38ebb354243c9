"""What the web page reads: nothing twice, and whatever state a run is in."""

import pytest

from recovery.errors import InputError
from recovery.store.journal import FileJournal
from tests.reports.stories import Shelf, events_of
from tests.stored_runs import store
from tests.web.runs import running

serving = pytest.importorskip("recovery.app.serving", reason="needs recover[serve]")
RUN = "20261201-000000-c-ab12"


def cut(n_events):
    return lambda evidence: list(events_of(4, evidence))[:n_events]


def states(runs):
    return {row["run"]: row["state"] for row in runs.rows()}


def test_the_newest_run_comes_first_and_each_has_its_state(tmp_path):
    store(tmp_path, "1-done", lambda evidence: events_of(4, evidence))
    store(tmp_path, "2-crashed", cut(3))
    store(tmp_path, "3-empty", cut(0))
    (store(tmp_path, "4-torn", cut(3)).journal).write_text("nonsense\n")

    assert list(states(serving.Runs(tmp_path)).items()) == [
        ("4-torn", "unreadable"),
        ("3-empty", "never started"),
        ("2-crashed", "crashed"),
        ("1-done", "done"),
    ]


def test_a_run_that_goes_on_is_seen_to_end_and_one_that_is_resumed_to_run_again(tmp_path):
    events = list(events_of(4, Shelf()))
    runs = serving.Runs(tmp_path)
    with running(tmp_path, RUN) as journal:
        for event in events[:3]:
            journal.append(event)
        assert states(runs) == {RUN: "running"}
    assert states(runs) == {RUN: "crashed"}
    with running(tmp_path, RUN) as journal:
        assert states(runs) == {RUN: "running"}
        for event in events[3:]:
            journal.append(event)

    assert states(runs) == {RUN: "done"}


def test_many_open_runs_are_all_told_right(tmp_path):
    names = [f"{i}-crashed" for i in range(9)]
    for name in names:
        store(tmp_path, name, cut(3))
    runs = serving.Runs(tmp_path)

    assert set(states(runs).values()) == {"crashed"}
    assert set(states(runs).values()) == {"crashed"}


def test_a_follower_sees_each_event_once_and_half_a_line_not_yet(tmp_path):
    folder = store(tmp_path, RUN, cut(3))
    follower = serving.Runs(tmp_path).follow(RUN)
    assert len(follower.look()[0].steps["check-1"].results) == 1

    whole = list(events_of(4, Shelf()))[3]
    journal = FileJournal(folder.journal)
    journal.append(whole)
    journal.close()
    text = folder.journal.read_bytes()
    folder.journal.write_bytes(text[:-10])
    assert len(follower.look()[0].steps["check-1"].results) == 1
    folder.journal.write_bytes(text)

    assert len(follower.look()[0].steps["check-1"].results) == 2


@pytest.mark.parametrize("name", ["last", RUN[:6], "..", "", f"../runs/{RUN}"])
def test_only_a_runs_whole_name_is_one(tmp_path, name):
    store(tmp_path, RUN, cut(3))
    runs = serving.Runs(tmp_path)

    assert runs.follow(RUN) is not None
    assert (runs.follow(name), runs.report(name), runs.evidence(name, "a" * 64)) == (None,) * 3


def test_a_report_is_made_once_for_what_is_known_and_anew_for_more(tmp_path):
    folder = store(tmp_path, RUN, cut(3))
    runs = serving.Runs(tmp_path)
    first = runs.report(RUN)
    journal = FileJournal(folder.journal)
    journal.append(list(events_of(4, Shelf()))[3])
    journal.close()

    assert runs.report(RUN) is not first
    assert runs.report(RUN) is runs.report(RUN)


def test_an_address_that_is_not_ours_is_our_input():
    with pytest.raises(InputError, match=r"192\.0\.2\.1 port 0: Cannot assign"):
        serving.listening("192.0.2.1", 0)
