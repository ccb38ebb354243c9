from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recovery.checkpoints.inspection import fold_numbers, read_inspection
from recovery.errors import ParseError
from recovery.model.verdict import Level
from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import trees
from tests.checkpoints.clusters import inspection_of


def document(path: Path) -> dict[str, Any]:
    inspector.Options.deep = False
    rest = {"inspector": 1, "power": "full", "deep": False, "now": 5.0, "end": True}
    return {**inspector.inspect([str(path)], 40), **rest}


def test_what_the_inspector_prints_is_read_back(tmp_path: Path) -> None:
    trees.write("deepspeed", tmp_path)

    inspection = inspection_of(tmp_path)

    newest = inspection.checkpoints[-1]
    assert (newest.step, newest.level, newest.framework) == (300, Level.PASS, "deepspeed")
    assert newest.ranks is not None
    assert newest.ranks.want == frozenset({0, 1})
    assert newest.series == ""
    assert newest.size_bytes > 0
    assert inspection.pointers[0].step == 300
    assert inspection.places[0].storage_known


def test_a_login_banner_before_the_document_is_passed_over(tmp_path: Path) -> None:
    text = "Welcome to n1\n" + json.dumps(document(tmp_path)) + "\n"

    assert read_inspection(text).checkpoints == ()


@pytest.mark.parametrize("text", ["", "bash: python3: command not found\n", "[]", "null\n"])
def test_no_document_is_not_read(text: str) -> None:
    with pytest.raises(ParseError, match="no inspection"):
        read_inspection(text)


def test_every_cut_of_a_document_is_refused(tmp_path: Path) -> None:
    trees.write("plain", tmp_path, (100,))
    text = json.dumps(document(tmp_path))

    for end in range(1, len(text), 97):
        with pytest.raises(ParseError):
            read_inspection(text[:end])


def test_a_document_without_its_last_word_is_refused(tmp_path: Path) -> None:
    raw = document(tmp_path)
    del raw["end"]

    with pytest.raises(ParseError, match="no whole inspection"):
        read_inspection(json.dumps(raw))


def test_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="version 2"):
        read_inspection(json.dumps({**document(tmp_path), "inspector": 2}))


@pytest.mark.parametrize("key", ["checkpoints", "paths", "pointers", "now", "power"])
def test_a_document_with_a_part_missing_is_refused(key: str, tmp_path: Path) -> None:
    raw = document(tmp_path)
    del raw[key]

    with pytest.raises(ParseError, match=f"part missing.*{key}"):
        read_inspection(json.dumps(raw))


def test_a_level_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    trees.write("plain", tmp_path, (100,))
    raw = document(tmp_path)
    raw["checkpoints"][0]["level"] = "fine"

    with pytest.raises(ParseError):
        read_inspection(json.dumps(raw))


def test_numbers_fold() -> None:
    assert fold_numbers({0, 1, 2, 7}) == "0-2,7"
