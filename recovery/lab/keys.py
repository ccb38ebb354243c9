"""SSH keys of the lab: ed25519, made when needed, kept in files."""

from __future__ import annotations

from pathlib import Path

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def key_at(path: Path) -> paramiko.Ed25519Key:
    """The key in this file; a new one is made when there is none."""
    if not path.exists():
        private = Ed25519PrivateKey.generate()
        text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        path.touch(mode=0o600)
        path.write_bytes(text)
    key = paramiko.Ed25519Key.from_private_key_file(str(path))
    path.with_suffix(".pub").write_text(f"{key.get_name()} {key.get_base64()} lab\n")
    return key


def known_host(port: int, key: paramiko.PKey) -> str:
    """One line of known_hosts."""
    return f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n"
