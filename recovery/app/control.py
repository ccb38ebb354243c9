"""The operator's hand on a run: signals, the clock that heeds them, questions on the terminal."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from recovery.errors import InterruptedRunError

GRACE_S = 10.0
STOPS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Control:
    """Counts stop signals: first TERM and grace, second KILL, third leave at once."""

    end_commands: Callable[[float], None] = lambda grace_s: None
    say: Callable[[str], None] = lambda words: None
    event: threading.Event = field(default_factory=threading.Event)
    name: str = ""
    count: int = 0

    def install(self) -> None:
        """Takes over SIGINT and SIGTERM; to be called in the main thread.

        They are heeded in a thread of their own: a handler of Python's runs in the main thread,
        which learns of a signal that the kernel gave to another thread (after SIGSTOP and SIGCONT
        it does) only when what it waits for ends.
        """
        numbers, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        for number in STOPS:
            signal.signal(number, _noted)
        threading.Thread(target=self._heed, args=(numbers,), name="signals", daemon=True).start()

    def _heed(self, numbers: int) -> None:
        while arrived := os.read(numbers, 64):
            for number in arrived:
                if number in STOPS:
                    self.take(signal.Signals(number))

    def stopping(self) -> str:
        """The signal that asked to stop, as long as the engine has not heeded it."""
        return self.name

    def heeded(self) -> None:
        """The engine stopped; `finally` may work. A further signal stops that too."""
        self.name = ""
        self.event.clear()

    def take(self, number: signal.Signals) -> None:
        """What the first, the second and the third signal do."""
        self.count += 1
        self.name = number.name
        self.event.set()
        if self.count >= 3:
            self.say("left at once: commands may still run on nodes until their leash ends them")
            os._exit(128 + number)
        words = ("stopping: commands get TERM, then KILL after 10 s", "killing commands now")
        self.say(words[self.count - 1])
        grace = GRACE_S if self.count == 1 else 0.0
        # Beside this thread, which is for the next signal: ending commands may wait for locks.
        threading.Thread(target=self.end_commands, args=(grace,), daemon=True).start()


def _noted(number: int, frame: FrameType | None) -> None:
    """Nothing: its number has gone through the pipe."""


@dataclass(frozen=True, slots=True)
class RealClock:
    """Time; sleeping ends at once when the operator says stop."""

    control: Control

    def now(self) -> float:
        """POSIX seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits.

        Raises:
            InterruptedRunError: the operator said stop.
        """
        if self.control.event.wait(max(0.0, seconds)):
            raise InterruptedRunError(
                f"stopped ({self.control.name})", remedy="`recover resume` goes on"
            )


@dataclass(frozen=True, slots=True)
class TerminalAsker:
    """Asks on the terminal; ``--yes`` and ``--approve ID`` answer beforehand."""

    clock: RealClock
    say: Callable[[str], None]
    yes: bool = False
    approvals: frozenset[str] = frozenset()

    def ask(self, question: str, approval: str, timeout_s: float) -> tuple[bool | None, str]:
        """Returns the answer and how it came; None when nobody answered in time."""
        if self.yes:
            return True, "--yes"
        if approval in self.approvals:
            return True, f"--approve {approval}"
        if not sys.stdin.isatty():
            return None, "no terminal to ask on"
        self.say(f"{question} [y/N] ")
        return self._read(self.clock.monotonic() + timeout_s)

    def _read(self, ends_at: float) -> tuple[bool | None, str]:
        while self.clock.monotonic() < ends_at:
            ready, _, _ = select.select([sys.stdin], [], [], 0)
            if ready:
                word = sys.stdin.readline().strip().lower()
                return word in ("y", "yes"), "the operator at the terminal"
            self.clock.sleep(0.1)
        return None, "no answer in time"
