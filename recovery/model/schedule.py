"""A test of a cluster that a machine starts by itself, again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is started, when, and how long it may take.

    ``argv`` is the whole command with absolute paths, ``folder`` where it starts, ``environment``
    what it needs of the shell that made the schedule (PATH, the state folder). One of ``cron``
    (five fields) and ``calendar`` (as of systemd.time) says when; ``jitter_s`` spreads the starts
    of many clusters, ``limit_s`` ends what hangs, ``lock`` is a file that only one may hold.
    """

    name: str
    about: str
    argv: tuple[str, ...]
    folder: str
    cron: str = ""
    calendar: str = ""
    jitter_s: int = 0
    limit_s: int = 3600
    lock: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


class Timekeeper(Protocol):
    """A system that starts commands at a time."""

    def text(self, schedule: Schedule) -> str:
        """All that would be installed, as text."""

    def add(self, schedule: Schedule) -> tuple[str, ...]:
        """Installs it, in place of one of the same name; returns what was done, a line each.

        Raises:
            InputError: the system refuses; what was there before is still there.
        """

    def listed(self) -> tuple[Schedule, ...]:
        """Those that we installed."""

    def remove(self, name: str) -> None:
        """Takes one away, and nothing else.

        Raises:
            InputError: the system refuses.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TimekeeperKind:
    """A timekeeper on the shelf ``recovery/schedules``.

    ``open`` gets ``units`` (a folder to write to in place of the system's, starting nothing).
    ``is_here`` tells whether this machine has it.
    """

    name: str
    about: str
    is_here: Callable[[], bool]
    open: Callable[[Mapping[str, Any]], Timekeeper]
