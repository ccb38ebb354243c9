"""A known_hosts file as a table: parsed once, asked often, and able to say no for each reason.

Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT": patterns with ``*``, ``?`` and ``!``, hashed
names, ``[host]:port``, ``@cert-authority`` and ``@revoked``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from recovery.transports.ssh.certificate import Certificate, read_certificate

_PATTERN = re.compile(r"[*?!]")


class Answer(StrEnum):
    """What the table says of a key that a host shows."""

    KNOWN = "known"
    UNKNOWN = "unknown"  # nothing is known of the host
    CHANGED = "changed"  # the host is known by another key
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: which names, which key."""

    names: tuple[str, ...]
    key_type: str
    key: bytes
    marker: str = ""

    def names_it(self, name: str) -> bool:
        """Claims that a host called ``name`` (``host`` or ``[host]:port``) is meant."""
        said_no = any(n.startswith("!") and _matches(n[1:], name) for n in self.names)
        return not said_no and any(_matches(n, name) for n in self.names if n[:1] != "!")

    @property
    def is_plain(self) -> bool:
        """Claims that the line can be found by looking its names up."""
        return not self.marker and not any(_PATTERN.search(n) or n[0] == "|" for n in self.names)


@dataclass(frozen=True, slots=True)
class Judged:
    """The table's answer, and the fingerprints by which the host was known."""

    answer: Answer
    known: tuple[str, ...] = ()
    remark: str = ""


@dataclass(slots=True)
class KnownHosts:
    """All lines of one or more files; plain names are found without a search."""

    by_name: dict[str, list[Entry]] = field(default_factory=dict)
    others: list[Entry] = field(default_factory=list)
    unread: int = 0

    def add(self, entry: Entry) -> None:
        """Takes one more line."""
        if entry.is_plain:
            for name in entry.names:
                self.by_name.setdefault(name.lower(), []).append(entry)
        else:
            self.others.append(entry)

    def of(self, name: str) -> list[Entry]:
        """All entries that name the host."""
        found = list(self.by_name.get(name.lower(), ()))
        return found + [e for e in self.others if e.names_it(name.lower())]

    def key_types(self, name: str) -> tuple[tuple[str, ...], bool]:
        """Algorithms by which the host is known, and whether an authority speaks for it."""
        entries = self.of(name)
        plain = {algorithm for e in entries if not e.marker for algorithm in _algorithms(e)}
        return tuple(sorted(plain)), any(e.marker == "@cert-authority" for e in entries)

    def judge(self, name: str, blob: bytes, *, now: float) -> Judged:
        """Whether the host may show this key (or certificate, as sent)."""
        entries = self.of(name)
        certificate = read_certificate(blob)
        shown = {blob} if certificate is None else {blob, certificate.key, certificate.authority}
        if any(e.marker == "@revoked" and e.key in shown for e in entries):
            return Judged(Answer.REVOKED)
        if certificate is not None:
            return _judge_certificate(certificate, entries, host_of(name), now)
        return _judge_plain(blob, [e for e in entries if not e.marker])


def _judge_plain(blob: bytes, entries: list[Entry]) -> Judged:
    if any(e.key == blob for e in entries):
        return Judged(Answer.KNOWN)
    known = tuple(f"{fingerprint(e.key)} ({short_type(e.key_type)})" for e in entries)
    return Judged(Answer.CHANGED if known else Answer.UNKNOWN, known)


def _judge_certificate(
    certificate: Certificate, entries: list[Entry], host: str, now: float
) -> Judged:
    trusted = any(e.marker == "@cert-authority" and e.key == certificate.authority for e in entries)
    plain = _judge_plain(certificate.key, [e for e in entries if not e.marker])
    if not trusted or plain.answer is Answer.KNOWN:
        return plain
    problem = certificate.problem(host, now=now)
    return Judged(Answer.UNKNOWN, remark=problem) if problem else Judged(Answer.KNOWN)


def parse(lines: Iterable[str]) -> KnownHosts:
    """A table of the lines that can be read; the others are counted in ``unread``."""
    table = KnownHosts()
    for line in lines:
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        entry = read_entry(words)
        if entry is None:
            table.unread += 1
        else:
            table.add(entry)
    return table


def read_entry(words: list[str]) -> Entry | None:
    """One line's words as an entry; None when it is not one."""
    marker = words[0] if words[0].startswith("@") else ""
    fields = words[1:] if marker else words
    if len(fields) < 3 or marker not in ("", "@cert-authority", "@revoked"):
        return None
    try:
        key = base64.b64decode(fields[2], validate=True)
    except (binascii.Error, ValueError):
        return None
    names = tuple(name.lower() if name[0] != "|" else name for name in fields[0].split(",") if name)
    return Entry(names, fields[1], key, marker) if names and key else None


def host_name(host: str, port: int) -> str:
    """The name under which a host's key is kept: ``host``, or ``[host]:port``."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def host_of(name: str) -> str:
    """The host in such a name."""
    return name[1:].partition("]:")[0] if name.startswith("[") else name


def fingerprint(blob: bytes) -> str:
    """The fingerprint as OpenSSH shows it."""
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def short_type(key_type: str) -> str:
    """ED25519, ECDSA or RSA."""
    return key_type.removeprefix("ssh-").partition("-")[0].upper()


def _algorithms(entry: Entry) -> tuple[str, ...]:
    if entry.key_type == "ssh-rsa":
        return ("rsa-sha2-512", "rsa-sha2-256")
    return (entry.key_type,)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _matches_hash(pattern, name)
    if not _PATTERN.search(pattern):
        return pattern == name
    parts = re.split(r"([*?])", pattern)
    glob = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(glob, name) is not None


def _matches_hash(pattern: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in pattern.split("|")[2:4])
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), digest)
