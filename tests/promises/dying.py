"""A run that dies by kill -9 after every line of its journal, and is resumed each time.

    python -m tests.promises.dying JOURNALS WORDS...

Starts `recover WORDS`, then `recover resume last`, again and again. Each sitting is a process of
its own; the kernel ends it right after it wrote a line whose like no sitting before it wrote (an
event of a step on a node). The last sitting finds nothing new, and ends by itself with the status
that this program exits with. Prints one line a sitting. Only the moment of death is chosen here;
all else is as always.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recovery.app.running
import recovery.cli.resume
import recovery.cli.run
import recovery.reports.terminal
import recovery.transports.ssh  # noqa: F401 - loaded once here, not once a sitting
from recovery.__main__ import main

Seen = set[tuple[Any, ...]]


def key(line: bytes) -> tuple[Any, ...]:
    """What makes a journal line like another."""
    event = json.loads(line)
    return event["event"], event.get("step"), (event.get("result") or {}).get("node")


def dying(seen: Seen, write: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
    """`os.write` that kills this process after a journal line that is new."""

    def write_and_die(file: int, content: bytes) -> int:
        written = write(file, content)
        if Path(f"/proc/self/fd/{file}").readlink().name == "journal.jsonl":
            assert written == len(content)
            if key(content) not in seen:
                os.kill(os.getpid(), signal.SIGKILL)
        return written

    return write_and_die


def sitting(words: list[str], seen: Seen) -> int:
    """One process's turn; returns how it ended, as `waitpid` says."""
    pid = os.fork()
    if pid == 0:
        os.write = dying(seen, os.write)
        sys.argv[1:] = words
        main()
    return os.waitpid(pid, 0)[1]


def newest_lines(journals: Path) -> list[bytes]:
    """Lines of the newest journal."""
    newest = max(journals.glob("*/journal.jsonl"))
    return newest.read_bytes().splitlines()


def until_the_end(journals: Path, words: list[str]) -> int:
    """Sittings until one ends by itself; its exit status."""
    seen: Seen = set()
    while True:
        status = sitting(words, seen)
        last = key(newest_lines(journals)[-1])
        sys.stdout.write(f"sitting {last} {status}\n")
        sys.stdout.flush()
        if not os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)
        assert last not in seen, f"no progress at {last}"
        seen.add(last)
        words = ["resume", "last", "--yes", "--quiet"]


if __name__ == "__main__":
    raise SystemExit(until_the_end(Path(sys.argv[1]), sys.argv[2:]))
