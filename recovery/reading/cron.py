"""A cron expression -> the moments it means, and the same moments for systemd.

Source: crontab(5) of Debian's cron 3.0, systemd.time(7).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from recovery.errors import InputError

_NICK = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?P<from>\*|\w+)(?:-(?P<to>\w+))?(?:/(?P<step>\d+))?")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    def number(self, word: str) -> int:
        named = {name: self.first + i for i, name in enumerate(self.names)}
        value = named.get(word.lower())
        if value is None:
            value = int(word) if word.isdecimal() else -1
        if not self.first <= value <= self.last:
            raise _refused(word, f"is no {self.name} ({self.first} to {self.last})")
        return value

    def values(self, text: str) -> frozenset[int]:
        return frozenset(value for part in text.split(",") for value in self.part(part))

    def part(self, text: str) -> range:
        match = _PART.fullmatch(text)
        if match is None:
            raise _refused(text, f"is no {self.name}")
        step = int(match["step"] or 1)
        first, last = self.first, self.last
        if match["from"] != "*":
            first = self.number(match["from"])
            last = self.number(match["to"]) if match["to"] else last if match["step"] else first
        elif match["to"]:
            raise _refused(text, f"is no {self.name}")
        if step < 1 or last < first:
            raise _refused(text, "never comes")
        return range(first, last + 1, step)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class CronTime:
    """When: sets of numbers, Sunday is 0. ``either``: one of the two day fields is enough."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool


def read_cron(text: str) -> CronTime:
    """The moments of five fields, or of ``@daily`` and its like.

    Raises:
        InputError: not five fields, or a value outside its field.
    """
    words = _NICK.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise InputError(
            f"a cron expression has five fields, not {len(words)}: {text[:60]!r}",
            remedy='write minute hour day month weekday: "0 5 * * *" is every day at 05:00',
        )
    minutes, hours, days, months, weekdays = (
        field.values(word) for field, word in zip(_FIELDS, words, strict=True)
    )
    # Where both day fields are named, either is enough; one that begins with a star is not named.
    either = not words[2].startswith("*") and not words[4].startswith("*")
    sundays = frozenset(day % 7 for day in weekdays)
    return CronTime(minutes, hours, days, months, sundays, either)


def as_calendar(time: CronTime) -> tuple[str, ...]:
    """The same moments as ``OnCalendar=`` lines; two, where either day field is enough."""
    clock = f"{_numbers(time.hours, 24)}:{_numbers(time.minutes, 60)}:00"
    weekdays = "" if len(time.weekdays) == 7 else _weekdays(time.weekdays) + " "
    months, days = _numbers(time.months, 12), _numbers(time.days, 31)
    if time.either:
        return f"*-{months}-{days} {clock}", f"{weekdays}*-{months}-* {clock}"
    return (f"{weekdays}*-{months}-{days} {clock}",)


def _numbers(values: frozenset[int], n_all: int) -> str:
    return "*" if len(values) == n_all else ",".join(f"{v:02d}" for v in sorted(values))


def _weekdays(values: frozenset[int]) -> str:
    return ",".join(_DAYS[day].capitalize() for day in sorted(values))


def _refused(text: str, why: str) -> InputError:
    return InputError(
        f"in a cron expression, {text[:40]!r} {why}",
        remedy='write minute hour day month weekday: "0 5 * * *" is every day at 05:00',
    )
