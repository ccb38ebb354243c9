"""The table of Xids."""

from __future__ import annotations

from recovery.reading.xid import LADDER, WHAT_TO_DO, XIDS, Action


def test_all_173_codes_are_there_with_meaning_and_source():
    assert list(XIDS) == list(range(1, 174))
    assert all(row.meaning and row.source and row.scope in {"gpu", "link", "node"}
               for row in XIDS.values())  # fmt: skip


def test_every_action_has_words_and_the_ladder_ends_with_giving_up():
    assert set(WHAT_TO_DO) == set(Action)
    assert LADDER[-1] is Action.ISOLATE
