"""The transport: gathers those who ask the same at once, and launches once for all of them."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.reading.leash import Cut, one_line, output, refusal
from recovery.transports.srun.wave import Wave, srun_argv

QUIET_S = 0.03  # nobody joined for so long: the launch begins
GATHER_S = 0.5  # at most
LAUNCHES = 4  # each without the nodes that Slurm could not launch on
ASLEEP = "Slurm did not launch on it in time"


@dataclass(slots=True, eq=False)
class _Group:
    """Nodes that are asked the same; the first of them launches."""

    command: Command
    options: tuple[str, ...]
    started: float = field(default_factory=time.monotonic)
    names: list[str] = field(default_factory=list)
    outputs: dict[str, Output] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    joined: threading.Condition = field(default_factory=threading.Condition)
    is_open: bool = True

    def join(self, name: str) -> bool:
        """Adds a node; False when it is too late, or the node is here already."""
        with self.joined:
            if not self.is_open or name in self.names:
                return False
            self.names.append(name)
            self.joined.notify()
            return True

    def gather(self, width: int) -> None:
        """Waits for the others, who come at the same time."""
        with self.joined:
            until = self.started + GATHER_S
            while len(self.names) < width and time.monotonic() < until:
                if not self.joined.wait(QUIET_S):
                    break
            self.is_open = False


class SrunTransport:
    """Carries commands by `srun`."""

    name = "srun"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._leash = one_line(str(settings["leash"]))
        self._width = int(settings.get("width") or 64)
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._waves: set[Wave] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, node: Node, command: Command) -> Output:
        """Runs a command to one of the four endings, in one launch with all who ask the same."""
        try:
            options = _options(node)
        except ValueError as error:
            return _never(f"srun_options: {error}")
        why_not = refusal(command) or _not_by_srun(node)
        if why_not or self._stopped:
            return _never(why_not or "stopped on request")
        name = str(node.variables.get("slurm_node") or node.name)
        group, is_first = self._group(name, command, options)
        if is_first:
            try:
                self._lead(group)
            finally:
                group.over.set()
        group.over.wait()
        return group.outputs.get(name) or _never(ASLEEP)

    def stop(self, grace_s: float) -> None:
        """Ends all running commands; those asked for later never start."""
        with self._lock:
            self._stopped = True
            for wave in self._waves:
                wave.cut_short(Cut.STOP, grace_s)

    def close(self) -> None:
        """Nothing is kept open."""

    def _group(self, name: str, command: Command, options: tuple[str, ...]) -> tuple[_Group, bool]:
        env = tuple(sorted(command.env.items()))
        what = (command.line, env, command.stdin, command.sudo, command.timeout_s, command.grace_s)
        key = (what, options)
        with self._lock:
            group = self._groups.get(key)
            if group is not None and group.join(name):
                return group, False
            group = self._groups[key] = _Group(command, options, names=[name])
            return group, True

    def _lead(self, group: _Group) -> None:
        group.gather(self._width)
        with self._lock:
            self._groups = {k: g for k, g in self._groups.items() if g is not group}
        names = list(group.names)
        for _ in range(LAUNCHES):
            if not names or self._stopped:
                break
            names = self._launch(group, names)
        for name in names:
            group.outputs[name] = _never("stopped on request" if self._stopped else ASLEEP)

    def _launch(self, group: _Group, names: list[str]) -> list[str]:
        """Carries the command to the nodes; returns those for which it has to be tried again."""
        command = group.command
        try:
            wave = self._start(group, names)
        except OSError as error:
            return _all_never(group, names, f"cannot start srun: {error.strerror}")
        try:
            if wave.is_ready(len(names)):
                for name, ended in wave.carry_out(command, self._leash).items():
                    group.outputs[name] = output(command, wave.mark, ended)
                return []
            return self._without_the_refused(group, names, wave)
        finally:
            with self._lock:
                self._waves.discard(wave)
            wave.close()

    def _start(self, group: _Group, names: list[str]) -> Wave:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            srun_argv(names, group.options, sudo=group.command.sudo),
            stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, bufsize=0,
        )  # fmt: skip
        limit_at = group.started + group.command.timeout_s
        wave = Wave(process, limit_at, limit_at + group.command.grace_s)
        with self._lock:
            self._waves.add(wave)
        if self._stopped:  # between the first look and now
            wave.cut_short(Cut.STOP, group.command.grace_s)
        return wave

    def _without_the_refused(self, group: _Group, names: list[str], wave: Wave) -> list[str]:
        bad = {name: why for name, why in wave.refused.items() if name in names}
        if not bad and wave.names:  # some are ready, the others say nothing
            bad = dict.fromkeys(set(names) - set(wave.names), wave.last_words or ASLEEP)
        if not bad:
            return _all_never(group, names, wave.last_words or ASLEEP)
        for name, why in bad.items():
            group.outputs[name] = _never(f"Slurm cannot launch on it: {why}", "connect")
        return [name for name in names if name not in bad]


def _options(node: Node) -> tuple[str, ...]:
    given = node.variables.get("srun_options")
    if given is not None:
        return tuple(shlex.split(str(given)))
    return ("--no-allocate",) if os.geteuid() == 0 else ()


def _not_by_srun(node: Node) -> str:
    if node.user in (None, os.environ.get("USER"), "root" if os.geteuid() == 0 else None):
        return ""
    return f"srun runs commands as yourself, not as {node.user}"


def _all_never(group: _Group, names: list[str], why: str) -> list[str]:
    for name in names:
        group.outputs[name] = _never(why, "connect")
    return []


def _never(reason: str, trouble: str = "") -> Output:
    return Output(Ending.NEVER_STARTED, reason=reason, trouble=trouble)
