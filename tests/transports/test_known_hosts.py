"""A known_hosts table means what OpenSSH means by the file."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct

import pytest

from recovery.transports.ssh.known_hosts import Answer, KnownHosts, fingerprint, host_name, parse


def blob(word: str, kind: str = "ssh-ed25519") -> bytes:
    """A public key blob; its content does not matter here."""
    parts = (kind.encode(), word.encode().ljust(32, b"."))
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def line(names: str, word: str, kind: str = "ssh-ed25519", marker: str = "") -> str:
    key = base64.b64encode(blob(word, kind)).decode()
    return f"{marker} {names} {kind} {key} a comment".strip()


def answer(table: KnownHosts, name: str, word: str) -> Answer:
    return table.judge(name, blob(word), now=0.0).answer


@pytest.mark.parametrize(
    ("names", "name", "is_named"),
    [
        ("node5", "node5", True),
        ("node5,10.0.0.5", "10.0.0.5", True),
        ("NODE5", "node5", True),
        ("node5", "node55", False),
        ("*.dc", "a.dc", True),
        ("*.dc", "a.dcx", False),
        ("node?", "node5", True),
        ("!node5,node*", "node5", False),
        ("!node5,node*", "node6", True),
        ("node*,!node5", "node5", False),
        ("[node5]:2222", "[node5]:2222", True),
        ("[node5]:2222", "node5", False),
        ("node5", "[node5]:2222", False),
        ("[10.0.0.*]:*", "[10.0.0.7]:2222", True),
        ("fe80::1", "fe80::1", True),
        ("[fe80::1]:2222", "[fe80::1]:2222", True),
        ("a.c", "abc", False),
    ],
)
def test_names_and_patterns_match_as_in_openssh(names: str, name: str, is_named: bool) -> None:
    table = parse([line(names, "k")])

    wanted = Answer.KNOWN if is_named else Answer.UNKNOWN
    assert answer(table, name, "k") is wanted


def test_a_hashed_name_is_found() -> None:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, b"[node5]:2222", hashlib.sha1).digest()
    hashed = "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))
    table = parse([line(hashed, "k")])

    assert answer(table, "[node5]:2222", "k") is Answer.KNOWN
    assert answer(table, "node5", "k") is Answer.UNKNOWN


def test_another_key_is_a_change_with_the_known_fingerprints() -> None:
    table = parse([line("node5", "old"), line("node*", "older")])

    judged = table.judge("node5", blob("new"), now=0.0)

    assert judged.answer is Answer.CHANGED
    assert judged.known == tuple(f"{fingerprint(blob(w))} (ED25519)" for w in ("old", "older"))


def test_a_revoked_key_is_refused_though_it_is_known() -> None:
    table = parse([line("node5", "k"), line("*", "k", marker="@revoked")])

    assert answer(table, "node5", "k") is Answer.REVOKED


def test_an_authority_line_makes_no_plain_key_known() -> None:
    table = parse([line("*", "k", marker="@cert-authority")])

    assert answer(table, "node5", "k") is Answer.UNKNOWN
    assert table.key_types("node5") == ((), True)


def test_lines_that_cannot_be_read_are_counted_and_hurt_no_other() -> None:
    table = parse(
        ["", "# note", "node5", "node5 ssh-ed25519 %%%", "@odd node5 a b", line("node6", "k")]
    )

    assert table.unread == 3
    assert answer(table, "node6", "k") is Answer.KNOWN


def test_an_rsa_key_is_asked_for_by_its_signatures() -> None:
    table = parse([line("node5", "k", "ssh-rsa")])

    assert table.key_types("node5") == (("rsa-sha2-256", "rsa-sha2-512"), False)


def test_a_port_other_than_22_is_part_of_the_name() -> None:
    assert host_name("Node5", 22) == "node5"
    assert host_name("Node5", 2222) == "[node5]:2222"


def test_ten_thousand_plain_lines_are_found_without_a_search() -> None:
    table = parse(line(f"node{i}", f"k{i}") for i in range(10_000))

    assert table.others == []
    assert answer(table, "node9999", "k9999") is Answer.KNOWN
