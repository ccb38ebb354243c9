"""The journal: what was written comes back, torn tails go, a full disk is said."""

import json
import threading
from pathlib import Path

import pytest

from recovery.errors import StoreError
from recovery.model.events import NodeFinished, Noted, RunFinished, Saved, StepFinished
from recovery.model.kind import Kept, NodeResult
from recovery.model.output import Ending
from recovery.model.verdict import Level, failed, single
from recovery.store.codec import EVENT_TYPES, decode, encode
from recovery.store.journal import FileJournal, read_after, read_journal

BAD = single(failed("GPU3 lost", remedy="drain it", component="GPU3", code="gpu.lost"))
RESULT = NodeResult(
    node="n1",
    verdict=BAD,
    ending=Ending.LOST,
    exit_status=None,
    kept=(Kept("out", "ab" * 32, 12),),
    values={"lines": ["a", "b"]},
    duration_s=1.5,
)
EVENTS = (
    Saved(at=1.0, step="s", name="step", value=[1, {"a": None}]),
    NodeFinished(at=2.0, step="s", attempt=1, result=RESULT),
    StepFinished(at=3.0, step="s", outcome="done", verdict=BAD),
    Noted(at=3.5, step="s", message="hello\nworld", facts={"x": 1}),
    RunFinished(at=4.0, outcome="done", exit_code=0, reason="all \N{SNOWMAN}"),
)


def written(path, events=EVENTS):
    journal = FileJournal(path)
    for event in events:
        journal.append(event)
    journal.close()
    return path


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_survives_json(event):
    assert decode(json.loads(json.dumps(encode(event)))) == event


def test_levels_are_words_in_the_journal():
    line = encode(EVENTS[1])

    assert line["result"]["verdict"]["findings"][0]["level"] == Level.FAIL.word


def test_every_event_type_is_known():
    assert {"RunStarted", "StepStarted", "GateDecided", "Interrupted"} <= set(EVENT_TYPES)


def test_what_was_appended_is_read_again(tmp_path):
    assert read_journal(written(tmp_path / "j")) == EVENTS


def test_a_torn_last_line_is_left_out_and_cut_before_the_next_event(tmp_path):
    path = written(tmp_path / "j", EVENTS[:2])
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[1]) + 1):
        path.write_bytes(whole[:-cut])

        assert read_journal(path) == EVENTS[:1]

        written(path, EVENTS[2:3])
        assert read_journal(path) == (EVENTS[0], EVENTS[2])


def test_a_broken_middle_is_an_error_with_its_place(tmp_path):
    path = written(tmp_path / "j")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{nonsense\n" + lines[2])

    with pytest.raises(StoreError, match=r"j:2: not JSON"):
        read_journal(path)


def test_an_event_of_another_version_is_named(tmp_path):
    path = tmp_path / "j"
    path.write_text('{"event": "Teleported", "at": 1}\n')

    with pytest.raises(StoreError, match="not an event of this version"):
        read_journal(path)


def test_a_missing_journal_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(StoreError) as caught:
        read_journal(tmp_path / "none")

    assert "recover runs" in caught.value.remedy


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be written") as caught:
        FileJournal(tmp_path / "file" / "j")

    assert "--state" in caught.value.remedy


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(tmp_path):
    (tmp_path / "j").symlink_to("/dev/full")
    journal = FileJournal(tmp_path / "j")

    with pytest.raises(StoreError, match="No space left"):
        journal.append(EVENTS[0])


def test_many_threads_write_whole_lines(tmp_path):
    journal = FileJournal(tmp_path / "j")
    event = Noted(at=1.0, step="s", message="x" * 500)
    threads = [
        threading.Thread(target=lambda: [journal.append(event) for _ in range(50)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    journal.close()
    assert read_journal(tmp_path / "j") == (event,) * 400


def test_what_was_read_once_is_not_read_again(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path)
    journal.append(EVENTS[0])
    first, offset = read_after(path, 0)
    journal.append(EVENTS[1])
    second, end = read_after(path, offset)
    journal.close()

    assert (first, second) == (EVENTS[:1], EVENTS[1:2])
    assert read_after(path, end) == ((), end)


def test_half_a_line_is_left_for_later(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path)
    journal.append(EVENTS[0])
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])

    assert read_after(path, 0) == ((), 0)


def test_a_journal_that_became_shorter_or_is_gone_is_said(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"")

    with pytest.raises(StoreError, match="became shorter"):
        read_after(path, 10)
    with pytest.raises(StoreError, match="cannot be read"):
        read_after(tmp_path / "nowhere", 0)
