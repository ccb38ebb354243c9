"""`cron`: one marked line in the user's crontab; every other line stays as it is.

Source: crontab(1) and crontab(5) of Debian's cron 3.0 and of cronie 1.6.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import InputError
from recovery.model.schedule import Schedule, TimekeeperKind
from recovery.reading.cron import read_cron
from recovery.reading.schedule_mark import mark_of, read_mark, read_marks

LIMIT_S = 30
KILL_AFTER_S = 120
LONGEST = 990  # Debian's cron cuts a command at 1000 characters, without a word
LOCKED = 4  # the exit status of recover when another run holds the cluster


@dataclass(frozen=True, slots=True)
class Cron:
    """The crontab of the user."""

    def text(self, schedule: Schedule) -> str:
        """The two lines."""
        return "\n".join(_lines(schedule)) + "\n"

    def add(self, schedule: Schedule) -> tuple[str, ...]:
        """Puts its lines at the end, in place of those it had."""
        lines = [*_without(_crontab(), schedule.name), *_lines(schedule)]
        _install(lines)
        return ("added to your crontab; see `crontab -l`",)

    def listed(self) -> tuple[Schedule, ...]:
        """Those whose marks are in the crontab."""
        return tuple(read_marks("\n".join(_crontab())))

    def remove(self, name: str) -> None:
        """Takes out its two lines."""
        _install(_without(_crontab(), name))


def _lines(schedule: Schedule) -> tuple[str, str]:
    if schedule.calendar:
        raise InputError(
            "cron knows no calendar expressions", remedy='give --cron "0 5 * * *" instead'
        )
    read_cron(schedule.cron)
    words = ["timeout", f"--kill-after={KILL_AFTER_S}", str(schedule.limit_s), *schedule.argv]
    if schedule.lock:
        words = ["flock", "--nonblock", f"--conflict-exit-code={LOCKED}", schedule.lock, *words]
    assigned = [f"{k}={shlex.quote(v)}" for k, v in schedule.environment.items()]
    parts = [f"cd {shlex.quote(schedule.folder)}"]
    if schedule.jitter_s:
        parts.append(f'sleep "$(shuf -i 0-{schedule.jitter_s} -n 1)"')
    parts.append(" ".join([*assigned, shlex.join(words)]))
    # In a crontab a bare % ends the command and begins its input.
    line = " && ".join(parts).replace("%", "\\%")
    if len(line) > LONGEST:
        raise InputError(
            f"the line is too long for cron: {len(line)} characters, {LONGEST} at most",
            remedy="make PATH shorter before `recover schedule add`, or use --with systemd",
        )
    return mark_of(schedule), f"{' '.join(schedule.cron.split())} {line}"


def _without(lines: list[str], name: str) -> list[str]:
    """All lines but the mark of this schedule and the line after it, if that is still ours."""
    kept: list[str] = []
    before: Schedule | None = None
    for line in lines:
        ours = before is not None and shlex.join(before.argv).replace("%", "\\%") in line
        schedule = read_mark(line)
        before = schedule if schedule is not None and schedule.name == name else None
        if before is None and not ours:
            kept.append(line)
    return kept


def _crontab() -> list[str]:
    """The lines that are there. What cannot be read is never written over."""
    done = _run(["crontab", "-l"], "")
    if done.returncode == 0:
        return done.stdout.splitlines()
    if "no crontab" in done.stderr:
        return []
    raise InputError(
        f"crontab -l: {done.stderr.strip()[:200]}", remedy="see /etc/cron.allow, /etc/cron.deny"
    )


def _install(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    done = _run(["crontab", "-"], text)
    if done.returncode != 0:
        raise InputError(
            f"crontab refuses: {done.stderr.strip()[:200]}", remedy="crontab -e shows what is wrong"
        )


def _run(argv: list[str], given: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, input=given, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"crontab does not answer: {error}", remedy="install cron") from error


def _is_here() -> bool:
    return shutil.which("crontab") is not None


def _open(settings: Mapping[str, Any]) -> Cron:
    if settings.get("units"):
        raise InputError("cron has no unit files", remedy="use --print to see its line")
    return Cron()


CRON = TimekeeperKind(name="cron", about="a line in your crontab", is_here=_is_here, open=_open)
