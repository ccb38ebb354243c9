"""What the page may read, as functions it is handed: it opens no file by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from recovery.engine.history import RunStory


class Following(Protocol):
    """One run that is followed: its story grows as its journal does."""

    def look(self) -> tuple[RunStory, str, str]:
        """The story so far, the run's state (``running``, ``done``, ``crashed``...), and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Runs for the page. All functions may block; those that take a run raise `StoreError`.

    ``rows``: the newest runs first, as `recover runs --format json` has them. ``follow``: None for
    a run that is not there; so for ``report`` (HTML) and ``evidence`` (bytes of a digest).
    ``report_policy`` is the Content-Security-Policy that the report was made for.
    """

    rows: Callable[[], list[dict[str, Any]]]
    follow: Callable[[str], Following | None]
    report: Callable[[str], str | None]
    evidence: Callable[[str, str], bytes | None]
    report_policy: str
    fold: Callable[[Iterable[str]], str]
    now: Callable[[], float]
