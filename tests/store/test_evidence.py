"""Evidence: once, by digest, and never silently altered."""

import hashlib

import pytest

from recovery.errors import StoreError
from recovery.store.evidence import FileEvidence


def test_content_is_found_by_its_digest(tmp_path):
    evidence = FileEvidence(tmp_path)

    digest = evidence.put(b"\x00\xff")

    assert digest == hashlib.sha256(b"\x00\xff").hexdigest()
    assert evidence.get(digest) == b"\x00\xff"


def test_equal_content_is_stored_once(tmp_path):
    evidence = FileEvidence(tmp_path)

    evidence.put(b"x")
    evidence.put(b"x")

    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 1


def test_altered_content_is_refused(tmp_path):
    evidence = FileEvidence(tmp_path)
    digest = evidence.put(b"x")
    evidence.path(digest).write_bytes(b"y")

    with pytest.raises(StoreError, match="was altered"):
        evidence.get(digest)


def test_missing_content_is_said(tmp_path):
    with pytest.raises(StoreError, match="is not there"):
        FileEvidence(tmp_path).get("ab" * 32)
