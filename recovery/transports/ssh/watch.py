"""One thread that ends what takes too long, for all connections."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


class Watch:
    """Calls functions at their deadlines, unless they are done before."""

    def __init__(self) -> None:
        self._due: dict[int, tuple[float, Callable[[], object]]] = {}
        self._changed = threading.Condition()
        self._last = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextlib.contextmanager
    def at(self, deadline: float, end: Callable[[], object]) -> Iterator[None]:
        """Calls ``end`` when the block is still running at the deadline (monotonic seconds)."""
        with self._changed:
            self._last += 1
            ticket = self._last
            self._due[ticket] = (deadline, end)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ssh-watch", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._due.pop(ticket, None)

    def close(self) -> None:
        """Ends the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                over = [t for t, (when, _) in self._due.items() if when <= now]
                ends = [self._due.pop(ticket)[1] for ticket in over]
                if not ends:
                    soonest = min((when for when, _ in self._due.values()), default=now + 60)
                    self._changed.wait(soonest - now)
            for end in ends:
                end()
