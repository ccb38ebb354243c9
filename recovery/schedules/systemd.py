"""`systemd`: a service and a timer for each schedule; the journal keeps what it prints.

Source: systemd.service(5), systemd.timer(5), systemd.syntax(7) of systemd 252.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recovery.errors import InputError
from recovery.model.schedule import Schedule, TimekeeperKind
from recovery.reading.cron import as_calendar, read_cron
from recovery.reading.schedule_mark import mark_of, read_marks

PREFIX = "recover-"
RUNNING = "/run/systemd/system"  # sd_booted(3): there when systemd is the system's manager
LOCKED = 4  # another run holds the cluster: nothing to wake anybody for
STOP_S = 120  # TERM, then the run cleans up its nodes
LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class Systemd:
    """Units in a folder. Without ``starts`` they are only written."""

    folder: Path
    starts: bool
    is_user: bool

    def text(self, schedule: Schedule) -> str:
        """Both unit files, one after the other."""
        files = self._files(schedule)
        return "\n".join(f"# {self.folder / name}\n{text}" for name, text in files.items())

    def add(self, schedule: Schedule) -> tuple[str, ...]:
        """Checks the units, writes them, and starts the timer."""
        files = self._files(schedule)
        _verify(schedule, files)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                _write(self.folder / name, text)
        except OSError as error:
            raise InputError(
                f"{self.folder}: cannot be written: {error.strerror}",
                remedy="run as root, or as a user for units of your own",
            ) from error
        timer = f"{PREFIX}{schedule.name}.timer"
        self._control("daemon-reload")
        self._control("enable", "--now", timer)
        return tuple(f"written: {self.folder / name}" for name in files)

    def listed(self) -> tuple[Schedule, ...]:
        """Those whose timers are in the folder."""
        timers = sorted(self.folder.glob(f"{PREFIX}*.timer"))
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in timers)
        return tuple(schedule for text in texts for schedule in read_marks(text))

    def remove(self, name: str) -> None:
        """Stops the timer and deletes both files."""
        self._control("disable", "--now", f"{PREFIX}{name}.timer")
        for suffix in ("timer", "service"):
            (self.folder / f"{PREFIX}{name}.{suffix}").unlink(missing_ok=True)
        self._control("daemon-reload")

    def _files(self, schedule: Schedule) -> dict[str, str]:
        unit = f"{PREFIX}{schedule.name}"
        return {
            f"{unit}.service": _service(schedule, is_user=self.is_user),
            f"{unit}.timer": _timer(schedule),
        }

    def _control(self, *words: str) -> None:
        if not self.starts:
            return
        argv = ["systemctl", *(["--user"] if self.is_user else []), *words]
        done = _run(argv)
        if done is None or done.returncode != 0:
            said = (done.stderr.strip() if done else "") or "it does not answer"
            raise InputError(
                f"{' '.join(argv)}: {said[:200]}", remedy="use --with cron, or start it by hand"
            )


def _service(schedule: Schedule, *, is_user: bool) -> str:
    environment = [f"Environment={_quoted(f'{k}={v}')}" for k, v in schedule.environment.items()]
    network = [] if is_user else ["Wants=network-online.target", "After=network-online.target"]
    lines = [
        mark_of(schedule),
        "[Unit]",
        f"Description={schedule.about.replace('%', '%%')}",
        *network,
        "",
        "[Service]",
        "Type=oneshot",
        f"WorkingDirectory={schedule.folder.replace('%', '%%')}",
        *environment,
        f"ExecStart={' '.join(_quoted(word, is_command=True) for word in schedule.argv)}",
        f"TimeoutStartSec={schedule.limit_s}",
        # TERM to the run alone: it ends its commands on the nodes and writes its reports.
        "KillMode=mixed",
        f"TimeoutStopSec={STOP_S}",
        f"SuccessExitStatus={LOCKED}",
        "Nice=5",
    ]
    return "\n".join(lines) + "\n"


def _timer(schedule: Schedule) -> str:
    moments = (schedule.calendar,) if schedule.calendar else as_calendar(read_cron(schedule.cron))
    lines = [
        mark_of(schedule),
        "[Unit]",
        f"Description=When: {schedule.about.replace('%', '%%')}",
        "",
        "[Timer]",
        *(f"OnCalendar={moment}" for moment in moments),
        f"RandomizedDelaySec={schedule.jitter_s}",
        "Persistent=true",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return "\n".join(lines) + "\n"


def _quoted(word: str, *, is_command: bool = False) -> str:
    """One word of a unit file: quotes, specifiers (%) and, in commands, variables ($) escaped."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    escaped = escaped.replace("$", "$$") if is_command else escaped
    return f'"{escaped}"'


def _verify(schedule: Schedule, files: Mapping[str, str]) -> None:
    """Asks systemd itself, where it is installed, before anything is replaced."""
    if schedule.calendar:
        _ask_analyze(["calendar", schedule.calendar], "--calendar: systemd says")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in files]
        for path, text in zip(paths, files.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        _ask_analyze(["verify", "--man=no", *map(str, paths)], "systemd refuses the units")


def _ask_analyze(words: list[str], what: str) -> None:
    done = _run(["systemd-analyze", *words])
    if done is not None and done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InputError(f"{what}: {said[:200]}", remedy="see man systemd.time, systemd.unit")


def _run(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(f"{path.suffix}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _is_here() -> bool:
    return Path(RUNNING).is_dir() and shutil.which("systemctl") is not None


def _open(settings: Mapping[str, Any]) -> Systemd:
    is_user = os.geteuid() != 0
    if settings.get("units"):
        return Systemd(Path(str(settings["units"])), starts=False, is_user=is_user)
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    own = Path(home).expanduser() / "systemd" / "user"
    folder = own if is_user else Path("/etc/systemd/system")
    return Systemd(folder, starts=True, is_user=is_user)


SYSTEMD = TimekeeperKind(
    name="systemd", about="a service and a timer", is_here=_is_here, open=_open
)
