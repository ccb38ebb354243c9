"""Orders that look random, differ by round, and are the same again from the same seed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def shuffled(names: Iterable[str], *salt: object) -> list[str]:
    """The names in an order that only they, the seed and the salt decide."""
    prefix = blake2b("/".join(map(str, salt)).encode(), digest_size=16)

    def key(name: str) -> bytes:
        digest = prefix.copy()
        digest.update(name.encode())
        return digest.digest()

    return sorted(names, key=key)
