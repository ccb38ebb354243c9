"""One `srun`: one command on many nodes, from launching to the last word of each node.

First all tasks say that they are ready, then they are told to begin. So a node on which Slurm
cannot launch costs a second launch without it, and never a command that began on half of the nodes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from recovery.model.output import Command
from recovery.reading.leash import HOLD_S, Cut, Ended, leashed
from recovery.transports.srun.task import (
    KEY_BYTES,
    PATH,
    READY_S,
    Stream,
    Task,
    labelled,
    lost_node,
    refused_node,
    task_line,
)

PIECE_BYTES = 1 << 16
LAUNCH_S = READY_S - 15.0  # who is ready must still be there when the last one is
OWN_LIMIT_LATER_S = 1.0  # our limit comes first; the leash's own is for when we are gone
SRUN_ENDS_S = 10.0  # it waits for its tasks by itself


def srun_argv(names: Sequence[str], options: Sequence[str], *, sudo: bool) -> list[str]:
    """The command line: one task a node, nobody ended because another one did."""
    count = str(len(names))
    return [
        "srun", *options, f"--nodelist={','.join(names)}", f"--nodes={count}", f"--ntasks={count}",
        "--ntasks-per-node=1", "--label", "--input=all", "--wait=0", "--kill-on-bad-exit=0",
        "--mpi=none", "--chdir=/", f"--export=PATH={PATH}", "/bin/sh", "-c", task_line(sudo=sudo),
    ]  # fmt: skip


@dataclass(slots=True, eq=False)
class Wave:
    """One launch. ``limit_at`` as in `Command`; `cut_short` may be called by any thread."""

    process: subprocess.Popen[bytes]
    limit_at: float
    give_up_at: float
    cut: Cut = Cut.NOT
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    key: str = field(default_factory=lambda: secrets.token_hex(KEY_BYTES // 2))
    tasks: dict[int, Task] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    _rest: dict[int, bytes] = field(default_factory=dict)
    _sending: memoryview = field(default_factory=lambda: memoryview(b""))
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _wake: tuple[int, int] = field(default_factory=os.pipe)

    def __post_init__(self) -> None:
        for stream in (self.process.stdout, self.process.stderr, self._wake[0]):
            if stream is not None:
                self._selector.register(stream, selectors.EVENT_READ)

    def cut_short(self, why: Cut, grace_s: float) -> None:
        """Asks the thread that carries the wave to end it on all nodes."""
        self.cut = why
        self.give_up_at = min(self.give_up_at, time.monotonic() + grace_s)
        with contextlib.suppress(OSError):
            os.write(self._wake[1], b".")

    def is_ready(self, n_nodes: int) -> bool:
        """Waits until all nodes are ready; False when they do not all become it."""
        until = min(self.limit_at, time.monotonic() + LAUNCH_S)
        while len(self.names) < n_nodes and not self.refused and self.cut is Cut.NOT:
            left_s = until - time.monotonic()
            if left_s <= 0 or not self._prints:
                return False
            self._step(left_s)
        return not self.refused and self.cut is Cut.NOT

    def carry_out(self, command: Command, leash: str) -> dict[str, Ended]:
        """Lets all nodes begin and returns how each ended, or where we gave up."""
        limit_s = max(0.1, self.limit_at - time.monotonic()) + OWN_LIMIT_LATER_S
        opening = leashed(command, leash, self.mark, limit_s=limit_s).opening
        self._sending = memoryview(self.key.encode() + opening)
        if self.process.stdin is not None:
            os.set_blocking(self.process.stdin.fileno(), False)
            self._selector.register(self.process.stdin, selectors.EVENT_WRITE)
        while self._prints and not self._is_through():
            now = time.monotonic()
            if now >= self.give_up_at:
                break
            if self.cut is Cut.NOT and now >= self.limit_at:
                self.cut = Cut.LIMIT
            if self.cut is not Cut.NOT:
                self._end_input()  # each leash ends its command when its input ends
            self._step((self.limit_at if self.cut is Cut.NOT else self.give_up_at) - now)
        return {name: self._ended(name) for name in self.names}

    def _is_through(self) -> bool:
        return all(
            self.tasks[n].is_through for name, n in self.names.items() if name not in self.lost
        )

    def _ended(self, name: str) -> Ended:
        task = self.tasks[self.names[name]]
        cut, why = self.cut, ""
        if task.status is None and (name in self.lost or (cut is Cut.NOT and not self._prints)):
            cut, why = Cut.LOST, self.last_words or "Slurm ended the step"
        return Ended(
            status=task.status,
            stdout=task.stdout.take(),
            stderr=task.stderr.take(),
            cut=cut,
            why=why,
            duration_s=time.monotonic() - self.started,
        )

    @property
    def last_words(self) -> str:
        """What `srun` itself said last."""
        return "; ".join(self.words)[-300:]

    @property
    def _prints(self) -> bool:
        return any(key.fileobj is self.process.stdout for key in self._selector.get_map().values())

    def _step(self, patience_s: float) -> None:
        for key, _ in self._selector.select(max(0.0, min(patience_s, 1.0))):
            if key.fileobj is self.process.stdin:
                self._feed()
            elif key.fd == self._wake[0]:
                os.read(key.fd, 64)
            else:
                self._read(key)

    def _feed(self) -> None:
        try:
            self._sending = self._sending[os.write(self._input_fd(), self._sending[:PIECE_BYTES]) :]
        except OSError:  # srun ended, or its input has been ended
            self._sending = memoryview(b"")
        if not self._sending and self.process.stdin is not None:
            self._selector.unregister(self.process.stdin)

    def _input_fd(self) -> int:
        if self.process.stdin is None or self.process.stdin.closed:
            raise OSError("no input")
        return self.process.stdin.fileno()

    def _end_input(self) -> None:
        stdin = self.process.stdin
        if stdin is None or stdin.closed:
            return
        if self._sending:
            self._selector.unregister(stdin)
        with contextlib.suppress(OSError):
            stdin.close()

    def _read(self, key: selectors.SelectorKey) -> None:
        piece = os.read(key.fd, PIECE_BYTES)
        *lines, self._rest[key.fd] = (self._rest.get(key.fd, b"") + piece).split(b"\n")
        is_stdout = key.fileobj is self.process.stdout
        for line in lines:
            self._heed(line, is_stdout=is_stdout)
        if not piece:
            self._selector.unregister(key.fileobj)

    def _heed(self, line: bytes, *, is_stdout: bool) -> None:
        said = labelled(line)
        if said is None:
            self._heed_srun(line.decode("utf-8", "replace").strip())
            return
        number, words = said
        task = self.tasks.get(number)
        if task is not None:
            (task.stdout if is_stdout else task.stderr).add(words)
        elif is_stdout:
            self._greet(number, words.decode("utf-8", "replace").split())

    def _greet(self, number: int, words: list[str]) -> None:
        match words:
            case ["ready", name]:
                self.names[name] = number
                self.tasks[number] = Task(Stream(self.key), Stream(self.key))
            case ["lacks", name, part]:
                self.refused[name] = f"the node lacks {part}"
            case _:
                pass  # a banner of a prolog

    def _heed_srun(self, line: str) -> None:
        if found := refused_node(line):
            self.refused[found[0]] = found[1]
        if name := lost_node(line):
            self.lost.add(name)
        if "error" in line:
            self.words = [*self.words, line.removeprefix("srun: ").removeprefix("error: ")][-3:]

    def close(self) -> None:
        """Ends the input, so that whoever waits goes; then `srun`, and gives the handles back."""
        self._end_input()
        try:
            self.process.wait(HOLD_S)
        except subprocess.TimeoutExpired:  # a process that a command left holds its output
            self.process.terminate()
        try:
            self.process.wait(SRUN_ENDS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._selector.close()
        streams: tuple[IO[bytes] | None, ...] = (self.process.stdout, self.process.stderr)
        for stream in streams:
            if stream is not None:
                stream.close()
        for handle in self._wake:
            os.close(handle)
