"""An OpenSSH host certificate, read from the bytes that a host shows.

Source: PROTOCOL.certkeys of OpenSSH.
"""

from __future__ import annotations

import fnmatch
import struct
from dataclasses import dataclass

import paramiko
from paramiko.message import Message

_SUFFIX = "-cert-v01@openssh.com"
_FIELDS = {"ssh-rsa": 2, "rsa-sha2-256": 2, "rsa-sha2-512": 2, "ssh-ed25519": 1}  # else ECDSA: 2
_HOST = 2


@dataclass(frozen=True, slots=True)
class Certificate:
    """What an authority says of a host's key. ``key`` and ``authority`` are public key blobs."""

    key: bytes
    authority: bytes
    kind: int
    principals: tuple[str, ...]
    valid_after: int
    valid_before: int
    critical: bytes
    signed: bytes
    signature: bytes

    def problem(self, host: str, *, now: float) -> str:
        """Why it does not speak for this host now; empty when it does."""
        if self.kind != _HOST:
            return "its certificate is not one of a host"
        if not any(fnmatch.fnmatchcase(host, name) for name in self.principals):
            return f"its certificate names {', '.join(self.principals)[:80] or 'nobody'}"
        if not self.valid_after <= now < self.valid_before:
            return "its certificate is not valid at this time; compare the clocks"
        if self.critical:
            return "its certificate has a critical option that is not known here"
        return (
            "" if self._is_signed() else "the signature of its certificate is not the authority's"
        )

    def _is_signed(self) -> bool:
        try:
            kind = Message(self.authority).get_text()
            key = paramiko.PKey.from_type_string(kind, self.authority)
            return bool(key.verify_ssh_sig(self.signed, Message(self.signature)))
        except (paramiko.SSHException, paramiko.pkey.UnknownKeyType, ValueError, struct.error):
            return False


def read_certificate(blob: bytes) -> Certificate | None:
    """The certificate in a host key as sent; None for a plain key."""
    message = Message(blob)
    kind = message.get_text()
    if not kind.endswith(_SUFFIX):
        return None
    plain_kind = kind.removesuffix(_SUFFIX)
    message.get_string()  # nonce
    key = Message()
    key.add_string(plain_kind)
    for _ in range(_FIELDS.get(plain_kind, 2)):
        key.add_string(message.get_string())
    message.get_int64()  # serial
    role = message.get_int()
    message.get_string()  # key id, for people
    principals = _strings(message.get_string())
    after, before = message.get_int64(), message.get_int64()
    critical = message.get_string()
    message.get_string(), message.get_string()  # extensions, reserved
    authority = message.get_string()
    signed = message.get_so_far()
    return Certificate(
        key.asbytes(), authority, role, principals, after, before, critical, signed,
        message.get_string(),
    )  # fmt: skip


def _strings(packed: bytes) -> tuple[str, ...]:
    message = Message(packed)
    found: list[str] = []
    while message.get_remainder():
        found.append(message.get_text())
    return tuple(found)
