"""Kernel messages freed from what dmesg, journald, syslog and collectors put around them.

One message has many coats: ``[ 12.3] text``, ``[Sun Nov 29 02:14:07 2026] text``,
``kern  :warn  : 2026-11-29T08:40:12,100287+00:00 text``, ``3,4711,9021145031877,-;text``,
``Nov 29 04:11:15 node kernel: [315905.1] text``, and those of mpirun, pdsh, kubectl around them.

Source: dmesg(1), journalctl(1), kernel Documentation/ABI/testing/dev-kmsg, RFC 3164 and 5424.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

MAX_LINE = 4096
"""Characters of a line that are read; the kernel itself prints at most about 1,000."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|[@-Z\\-_])")
_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "|".join(_MONTHS)
_OF_MONTHS = tuple(
    {name.casefold(), *others.split()}
    for name, others in zip(
        _MONTHS,
        # German, French, Spanish, Italian, Portuguese, Polish, Russian
        ("ene gen sty янв", "fév fev lut фев", "mär mrz mars mar мар", "avr abr kwi апр",
         "mai may mag maj мая май", "juin giu cze июн", "juil lug lip июл", "aoû ago sie авг",
         "set wrz сен", "okt ott out paź окт", "lis ноя", "dez déc dic gru дек"),
        strict=True,
    )
)  # fmt: skip
# dmesg -T and journalctl write names of days and months in the language of the one who asks.
_ANY_MONTH = r"(?:[^\W\d_]{3,5}\.?|\d{1,2}月)"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"

_NEXT = rf"\[|<|kern|\d|NVRM: |(?:{_MONTH}) [ \d]\d |(?:{_DAYS}) "

_COATS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("kmsg", re.compile(r"(?P<prio>\d{1,5}),(?P<seq>\d+),(?P<usec>\d+),[-c+,=\w]+;")),
    ("since", re.compile(r"\[ *\+?(?P<since>\d+\.\d{3,9})(?: *<[ +]*\d+\.\d+>)?\] ?")),
    ("caller", re.compile(r"\[ *[TC]\d+\] ?")),
    ("delta", re.compile(r"\[(?:<[ +]*\d+\.\d+>|\+? *\d+\.\d+)\] ?")),
    (
        "ctime",
        re.compile(
            rf"\[(?P<ctime>[^\W\d_]{{1,5}}\.? {_ANY_MONTH} +\d{{1,2}} "
            r"\d\d:\d\d:\d\d(?:\.\d+)? \d{4})\] ?"
        ),
    ),
    ("human", re.compile(rf"\[(?:{_MONTH}) ?\d{{1,2}} \d\d:\d\d(?::\d\d)?\] ?")),
    ("decoded", re.compile(r"(?P<facility>[a-z]{2,10}\d?) *:(?P<level>[a-z]{3,6}) *: ")),
    ("dmesg", re.compile(r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d) ")),
    (
        "syslog",
        re.compile(
            rf"(?:<\d{{1,3}}>(?:1 )?)?(?P<stamp>"
            rf"{_ANY_MONTH} [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d+)?"
            rf"|(?:(?:{_DAYS}) )?{_ISO}|\d{{9,11}}\.\d{{3,6}})"
            r" (?P<host>[\w.:-]{0,63}[\w.-]) (?P<tag>[\w./@()+-]{1,64})(?:\[\d+\])?:(?: |$)"
        ),
    ),
    (
        "rfc5424",
        re.compile(
            rf"<\d{{1,3}}>1 (?P<stamp>{_ISO}) (?P<host>\S{{1,64}}) (?P<tag>\S{{1,64}}) "
            r"\S+ \S+ (?:-|\[.{0,200}?\]) "
        ),
    ),
    ("iso", re.compile(rf"(?P<stamp>{_ISO}) ")),
    ("kernel", re.compile(r"(?:(?P<host>[A-Za-z][\w.-]{0,63}) )?kernel: ?")),
    ("priority", re.compile(r"<\d{1,3}>")),
    (
        "tagged",
        re.compile(r"(?:[^\[\n]{0,40})?\[\d+,\d+\](?:\[[^\]\n]{1,80}\])?<std(?:out|err)>: ?"),
    ),
    ("file", re.compile(r"/[\w./-]{1,200}:(?:\d+:)?(?=\S)")),
    ("node", re.compile(rf"\[?(?P<host>[A-Za-z][\w./-]{{0,62}})\]?: (?={_NEXT})")),
    ("label", re.compile(rf" {{0,4}}\d{{1,5}}: (?={_NEXT})")),
)
# Once a stamp was taken off, `mce: [Hardware Error]` is a message and no node called mce.
_OUTER = ("tagged", "file", "node", "label")
_INNER = tuple(coat for coat in _COATS if coat[0] not in _OUTER)
_MAX_COATS = 8
_BOOT_MARK = re.compile(r"-- (?:Boot [0-9a-f]+|Reboot) --")
_NOTE = re.compile(r"-- (?:Journal begins|Logs begin|No entries|.* --$)")


@dataclass(frozen=True, slots=True)
class Line:
    """One message. ``is_kernel`` is false for what another program wrote into the same log.

    ``since_boot_s`` and ``wall`` are the stamps that the text shows; ``usec`` those of kmsg.
    ``stamped`` tells that a coat of the kernel's log was really there.
    """

    text: str
    is_kernel: bool = True
    stamped: bool = False
    host: str = ""
    since_boot_s: float | None = None
    wall: str = ""
    usec: int | None = None
    boot_mark: bool = False
    note: bool = False

    @property
    def seconds(self) -> float | None:
        """A time that compares with those of the same log: since boot, else of the calendar."""
        if self.since_boot_s is not None:
            return self.since_boot_s
        return wall_seconds(self.wall) if self.wall else None


def undress(line: str) -> Line:
    """The message of one line of a log, and what its coats said."""
    text = _ESCAPE.sub("", line[:MAX_LINE].rstrip("\r\n"))
    if text.startswith("{") and text.rstrip().endswith("}"):
        return _from_json(text)
    if text.startswith("-- "):
        return Line(text, is_kernel=False, boot_mark=bool(_BOOT_MARK.match(text)), note=True)
    return _Undressing().of(text)


@dataclass(slots=True)
class _Undressing:
    is_kernel: bool = True
    stamped: bool = False
    host: str = ""
    since: float | None = None
    wall: str = ""
    usec: int | None = None

    def of(self, text: str) -> Line:
        for _ in range(_MAX_COATS):
            coats = _INNER if self.stamped else _COATS
            name, match = next(
                ((n, m) for n, pattern in coats if (m := pattern.match(text))), ("", None)
            )
            if match is None:
                break
            self.note(name, match.groupdict())
            text = text[match.end() :]
        return Line(
            text.strip(), self.is_kernel, self.stamped, self.host, self.since, self.wall, self.usec
        )

    def note(self, name: str, said: dict[str, str | None]) -> None:
        self.stamped = self.stamped or name not in (*_OUTER, "priority", "iso")
        self.host = said.get("host") or self.host
        self.wall = said.get("stamp") or said.get("ctime") or self.wall
        if since := said.get("since"):
            self.since = float(since)
        if usec := said.get("usec"):
            self.usec = int(usec)
            self.since = self.usec / 1e6
        self.is_kernel = self.is_kernel and _from_kernel(said)


def _from_kernel(said: dict[str, str | None]) -> bool:
    tag, facility, priority = said.get("tag"), said.get("facility"), said.get("prio")
    if tag is not None and tag != "kernel":
        return False
    if facility is not None and facility != "kern":
        return False
    return priority is None or int(priority) >> 3 == 0


def _from_json(text: str) -> Line:
    """A record of ``journalctl -o json`` or of a container's log driver."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return Line(text, is_kernel=False)
    message = record.get("MESSAGE", record.get("log")) if isinstance(record, dict) else None
    if not isinstance(message, str):
        return Line(text, is_kernel=False)
    inner = _Undressing().of(message[:MAX_LINE].rstrip("\n"))
    transport = record.get("_TRANSPORT", record.get("SYSLOG_IDENTIFIER", "kernel"))
    stamp = str(record.get("_SOURCE_MONOTONIC_TIMESTAMP", ""))
    since = int(stamp) / 1e6 if stamp.isdecimal() and len(stamp) < 20 else inner.since_boot_s
    return Line(
        inner.text,
        is_kernel=inner.is_kernel and transport == "kernel",
        stamped=True,
        host=str(record.get("_HOSTNAME", inner.host)),
        since_boot_s=since,
        wall=inner.wall,
    )


_PROGRAM = re.compile(
    rf"(?:{_ANY_MONTH} [ \d]\d \d\d:\d\d:\d\d|{_ISO}) [\w.:-]{{0,63}}[\w.-] "
    r"(?P<tag>[\w./@()+-]{1,64})(?:\[\d+\])?: ?"
)


def without_collector(lines: list[str]) -> list[str]:
    """The lines without the tag of the one program that passed all of them on.

    A line of another program is no message of the kernel, unless that program wrote every line.
    """
    filled = [line for line in lines if line.strip()]
    found = [_PROGRAM.match(line) for line in filled]
    tags = {match["tag"] if match else "" for match in found}
    if len(tags) != 1 or tags & {"", "kernel"}:
        return lines
    return [_PROGRAM.sub("", line, count=1) for line in lines]


def undress_all(lines: Iterable[str]) -> Iterator[Line]:
    """All messages in order; dictionary lines of ``/dev/kmsg`` are left out."""
    in_kmsg = False
    for raw in lines:
        if in_kmsg and re.match(r" [A-Z_]+=", raw):
            continue
        line = undress(raw)
        in_kmsg = line.usec is not None
        if line.text:
            yield line


def wall_seconds(stamp: str) -> float | None:
    """Seconds of a calendar stamp; one without a year counts from a fixed leap year."""
    if re.fullmatch(r"\d{9,11}\.\d+", stamp):
        return float(stamp)
    for read in (_iso_seconds, _ctime_seconds, _syslog_seconds):
        found = read(stamp)
        if found is not None:
            return found
    return None


def _iso_seconds(stamp: str) -> float | None:
    match = re.search(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?(.*)$", stamp)
    if match is None:
        return None
    zone = match[4].replace("UTC", "Z").replace("Z", "+00:00") or "+00:00"
    zone = zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
    micro = (match[3] or "0")[:6].ljust(6, "0")
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}.{micro}{zone}").timestamp()
    except ValueError:
        return None


def _ctime_seconds(stamp: str) -> float | None:
    match = re.fullmatch(
        rf"\S+ ({_ANY_MONTH}) +(\d+) (\d\d):(\d\d):(\d\d)(?:\.(\d+))? (\d{{4}})", stamp
    )
    if match is None:
        return None
    return _date(int(match[7]), match[1], match[2], (match[3], match[4], match[5]))


def _syslog_seconds(stamp: str) -> float | None:
    match = re.match(
        rf"({_ANY_MONTH}) +(\d+) (?:(\d{{4}}) )?(\d\d):(\d\d):(\d\d)(?:\.(\d+))?", stamp
    )
    if match is None:
        return None
    found = _date(int(match[3] or 2024), match[1], match[2], (match[4], match[5], match[6]))
    return None if found is None else found + float(f"0.{match[7] or 0}")


def _month_number(month: str) -> int | None:
    """1 to 12; None for the name in a language that is not known."""
    if month.endswith("月"):
        return int(month[:-1])
    word = month.rstrip(".").casefold()[:3]
    return next((n for n, words in enumerate(_OF_MONTHS, 1) if word in words), None)


def _date(year: int, month: str, day: str, clock: tuple[str, str, str]) -> float | None:
    hour, minute, second = (int(part) for part in clock)
    number = _month_number(month)
    if number is None:
        return None
    try:
        at = datetime(year, number, int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return at.timestamp()
