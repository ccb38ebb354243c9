"""Measures a whole process tree: `python -m tests.bench._meter LIMIT_S PROGRAM...`.

Prints one JSON line: wall_s, cpu_s, peak_mb, status, left. Processes that the program leaves behind
(ControlPersist's masters) become our children, are ended, and are counted too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """Children of all threads of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def private_bytes(pid: int) -> int:
    """Resident memory of a process and what descends from it, file pages left out."""
    total = 0
    with contextlib.suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/statm").read_text().split()
        total += (int(words[1]) - int(words[2])) * PAGE_BYTES
    return total + sum(private_bytes(child) for child in children(pid))


def main(limit_s: float, program: list[str]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    peak, over = [0], threading.Event()
    begun = time.perf_counter()
    process = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    def sample() -> None:
        while not over.wait(0.25):
            peak[0] = max(peak[0], private_bytes(process.pid))

    threading.Thread(target=sample, daemon=True).start()
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    wall_s = time.perf_counter() - begun
    over.set()
    left = reap()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "wall_s": wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": peak[0] / 1e6,
        "status": status,
        "left": left,
    }
    print(json.dumps(found))


def reap() -> int:
    """Ends and counts what is left of the program."""
    seen = 0
    for _ in range(200):
        mine = children(os.getpid())
        if not mine:
            break
        seen = max(seen, len(mine))
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.05)  # poll: processes that are not ours end in their time
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    return seen


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
