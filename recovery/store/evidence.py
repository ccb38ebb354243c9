"""Evidence: each content once, under its sha256, never changed."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from recovery.errors import StoreError


class FileEvidence:
    """A folder of contents by digest; safe for many threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: str) -> Path:
        """Where the content of this digest lies."""
        return self._folder / digest[:2] / digest

    def put(self, content: bytes) -> str:
        """Stores bytes and returns their sha256 as hex.

        Raises:
            StoreError: no space, or no right to write.
        """
        digest = hashlib.sha256(content).hexdigest()
        target = self.path(digest)
        if target.exists():
            return digest
        part = target.with_name(f"{digest}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(content)
            part.replace(target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StoreError(
                f"{target}: cannot be written: {error.strerror}",
                remedy="free space there, then `recover resume`",
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes again.

        Raises:
            StoreError: not there, or altered since.
        """
        try:
            content = self.path(digest).read_bytes()
        except OSError as error:
            raise StoreError(
                f"evidence {digest[:12]} is not there", remedy="was the run's folder moved in part?"
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise StoreError(
                f"evidence {digest[:12]} was altered", remedy="trust only copies made before"
            )
        return content
