"""Several read-only lines in one command: one round trip and one leash for all checks of a node.

Each line runs by itself under its own limit between two marks on both streams. A line that hangs
costs its limit and no more; when even KILL does not end it (a stuck driver), the lines after it
are not asked, so there is never more than one stuck process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from shlex import quote

from recovery.model.output import Ending, Output

# Where coreutils is missing, the step's own limit ends a line that hangs, and those after it.
_LIMITED = (
    "limited() { if command -v timeout >/dev/null 2>&1; then "
    'timeout -k 2 "$@"; else shift; "$@"; fi; }'
)
_KILL_GRACE_S = 3.0


def bundle(limits_s: Mapping[str, float], *, seed: str) -> str:
    """One shell line that runs all lines in order; ``limits_s`` gives each its seconds."""
    mark = _mark(limits_s, seed)
    parts = [_LIMITED]
    for number, (line, limit_s) in enumerate(limits_s.items()):
        begin, end = quote(f"{mark} begin {number}"), quote(f"{mark} end {number}")
        parts += [
            f"printf '%s\\n' {begin}; printf '%s\\n' {begin} >&2",
            f"limited {max(1, round(limit_s))} /bin/sh -c {quote(line)} </dev/null; s=$?",
            f"printf '\\n%s %s\\n' {end} \"$s\"; printf '\\n%s %s\\n' {end} \"$s\" >&2",
        ]
    return "\n".join(parts)


def bundle_limit_s(limits_s: Mapping[str, float]) -> float:
    """Seconds that the whole bundle may take when every line hangs."""
    return sum(limits_s.values()) + _KILL_GRACE_S * len(limits_s)


def unbundle(output: Output, limits_s: Mapping[str, float], *, seed: str) -> dict[str, Output]:
    """The output of each line; one that did not end has the ending of the whole."""
    mark = _mark(limits_s, seed).encode()
    found = {}
    for number, (line, limit_s) in enumerate(limits_s.items()):
        stdout, status = _between(output.stdout, mark, number)
        stderr, _ = _between(output.stderr, mark, number)
        found[line] = _one(output, stdout, stderr, status, limit_s)
    return found


def _one(
    output: Output, stdout: bytes | None, stderr: bytes | None, status: int | None, limit_s: float
) -> Output:
    if stdout is None and output.ending is Ending.FINISHED and not output.trouble:
        return replace(
            output,
            ending=Ending.LOST,
            exit_status=None,
            stdout=b"",
            stderr=output.stderr[-2000:],
            reason="the shell on the node ended before this line",
        )
    own = replace(output, stdout=stdout or b"", stderr=stderr or b"")
    if status is None:
        reason = output.reason or f"no end within {limit_s:.0f} s"
        ending = Ending.TIMEOUT if output.ending is Ending.FINISHED else output.ending
        return replace(own, ending=ending, exit_status=None, reason=reason)
    if status in (124, 137):  # GNU timeout: by TERM, by KILL
        reason = f"no end within {limit_s:.0f} s"
        return replace(
            own, ending=Ending.TIMEOUT, exit_status=None, reason=reason, duration_s=limit_s
        )
    return replace(own, ending=Ending.FINISHED, exit_status=status, reason="", trouble="")


def _between(stream: bytes, mark: bytes, number: int) -> tuple[bytes | None, int | None]:
    """The bytes of one line, and its status; None where it did not begin, or did not end."""
    begin = mark + b" begin %d\n" % number
    start = stream.find(begin)
    if start < 0:
        return None, None
    rest = stream[start + len(begin) :]
    end = mark + b" end %d " % number
    stop = rest.find(b"\n" + end)
    if stop < 0:
        return rest, None
    word = rest[stop + 1 + len(end) :].split(b"\n", 1)[0]
    return rest[:stop], int(word) if word.isdigit() else None


def _mark(limits_s: Mapping[str, float], seed: str) -> str:
    return "@@" + hashlib.sha256("\0".join((seed, *limits_s)).encode()).hexdigest()[:24]
