"""Preflights that start by themselves: presets, the command they run, where they are kept."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recovery.app import files, preparing
from recovery.errors import InputError
from recovery.model.schedule import Schedule, Timekeeper, TimekeeperKind
from recovery.registry import collect, did_you_mean, pick

SHELF = "recovery.schedules"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}")


@dataclass(frozen=True, slots=True)
class Preset:
    """What a name stands for; each part can be given otherwise."""

    depth: str
    cron: str
    jitter_s: int
    limit_s: int
    when_busy: str


PRESETS = {
    "daily-quick": Preset("quick", "0 5 * * *", 15 * 60, 30 * 60, "test"),
    "weekly-deep": Preset("full", "0 2 * * 0", 30 * 60, 6 * 3600, "skip"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the operator said; None where the preset decides."""

    cluster: str
    preset: str = "daily-quick"
    name: str | None = None
    depth: str | None = None
    cron: str | None = None
    calendar: str | None = None
    jitter_s: float | None = None
    limit_s: float | None = None
    when_busy: str | None = None
    nodes: str | None = None
    state: str | None = None


def schedule_of(asked: Asked) -> Schedule:
    """The schedule, with all that its command needs written out.

    Raises:
        InputError: the inventory cannot be read, a name that no file can have, two times.
    """
    preset = PRESETS[asked.preset]
    inventory = preparing.read_inventory(asked.cluster)
    if asked.cron and asked.calendar:
        raise InputError("two times: --cron and --calendar", remedy="give one of them")
    depth = asked.depth or preset.depth
    name = asked.name or f"{inventory.name}-{asked.preset if not asked.depth else depth}"
    if not _NAME.fullmatch(name):
        raise InputError(
            f"no name for a schedule: {name!r}", remedy="letters, digits, - and _: --name night"
        )
    state = files.state_folder(asked.state).absolute()
    return Schedule(
        name=name,
        about=f"recover: {depth} preflight of {inventory.name}",
        argv=_argv(asked, preset, depth),
        folder=str(Path.cwd()),
        cron="" if asked.calendar else asked.cron or preset.cron,
        calendar=asked.calendar or "",
        jitter_s=round(preset.jitter_s if asked.jitter_s is None else asked.jitter_s),
        limit_s=round(asked.limit_s or preset.limit_s),
        lock=str(state / "locks" / f"schedule-{name}.lock"),
        environment={"PATH": _path(), "RECOVER_STATE": str(state)},
    )


def _argv(asked: Asked, preset: Preset, depth: str) -> tuple[str, ...]:
    cluster = asked.cluster
    if os.sep in cluster:
        cluster = str(Path(cluster).absolute())
    nodes = ("--nodes", asked.nodes) if asked.nodes else ()
    busy = ("--when-busy", asked.when_busy or preset.when_busy)
    return (_program(), "preflight", cluster, "--depth", depth, *busy, *nodes, "--quiet")


def _path() -> str:
    """PATH of the shell that asks: cron's own holds neither sinfo nor kubectl."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(part for part in parts if part))


def _program() -> str:
    """Where `recover` is: beside the Python that runs, else on PATH."""
    beside = Path(sys.executable).parent / "recover"
    found = str(beside) if beside.is_file() else shutil.which("recover")
    if found is None:
        raise InputError("`recover` is not on PATH", remedy="install it: pip install recover")
    return found


def kinds() -> Mapping[str, TimekeeperKind]:
    """All timekeepers by name."""
    return collect(SHELF, TimekeeperKind)


def timekeeper(name: str | None, settings: Mapping[str, Any]) -> tuple[str, Timekeeper]:
    """The timekeeper called so; unnamed, systemd where it runs, else cron.

    Raises:
        InputError: this machine has none.
    """
    if name is not None or settings.get("units"):
        chosen = name or "systemd"
        return chosen, pick(SHELF, TimekeeperKind, chosen).open(settings)
    for each in ("systemd", "cron"):
        kind = pick(SHELF, TimekeeperKind, each)
        if kind.is_here():
            return each, kind.open(settings)
    raise InputError(
        "neither systemd nor cron runs on this machine",
        remedy="install cron, or `--units DIR` writes unit files for another machine",
    )


def prepare_folders(schedule: Schedule) -> None:
    """Makes the folder of its lock: flock makes only the file."""
    Path(schedule.lock).parent.mkdir(parents=True, exist_ok=True)


def everywhere(settings: Mapping[str, Any]) -> list[tuple[str, Timekeeper, Schedule]]:
    """All schedules of ours on this machine, with who keeps them."""
    names = ("systemd",) if settings.get("units") else tuple(kinds())
    found: list[tuple[str, Timekeeper, Schedule]] = []
    for name in names:
        kind = pick(SHELF, TimekeeperKind, name)
        if settings.get("units") or kind.is_here():
            keeper = kind.open(settings)
            found += [(name, keeper, schedule) for schedule in keeper.listed()]
    return found


def find(name: str, settings: Mapping[str, Any]) -> tuple[str, Timekeeper, Schedule]:
    """The schedule called so.

    Raises:
        InputError: there is none.
    """
    known = everywhere(settings)
    for one in known:
        if one[2].name == name:
            return one
    hint = did_you_mean(name, [schedule.name for _, _, schedule in known])
    raise InputError(f"no schedule {name!r}{hint}", remedy="`recover schedule list` lists them")
