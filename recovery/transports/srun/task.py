"""The far end of one `srun`: what runs on each node, and how its words come back.

`srun --label` tells the nodes apart line by line, cuts long lines and adds line ends, so the task
sends each stream as base64: pieces, each ended by a line with a dot. Nothing is held back between
pieces, so a process that keeps the output open costs no byte. Pure text.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field

from recovery.reading.leash import START, Capture, end_pattern

KEY_BYTES = 16
READY_S = 60  # a task that is not told to begin for so long is gone
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
END_BYTES = 128

# Tells `srun` that it is there, then waits for the key: nothing begins before all nodes are ready.
# Slurm's variables are taken away, or an mpirun below would launch by them.
TASK = f"""
for rs_p in base64 dd head timeout; do
  command -v $rs_p >/dev/null || {{ printf 'lacks %s %s\\n' "$SLURMD_NODENAME" $rs_p; exit 69; }}
done
rs_w=
printf x | base64 -w 760 >/dev/null 2>&1 && rs_w='-w 760'
rs_encode() {{
  while rs_c=$(dd bs=65536 count=1 2>/dev/null | base64 $rs_w) && [ -n "$rs_c" ]; do
    printf '%s\\n.\\n' "$rs_c"
  done
}}
printf 'ready %s\\n' "$SLURMD_NODENAME"
rs_key=$(timeout {READY_S} head -c {KEY_BYTES})
[ ${{#rs_key}} -eq {KEY_BYTES} ] || exit 69
unset $(env | sed -n 's/^\\(SLURM[A-Z0-9_]*\\)=.*/\\1/p' | grep -v '^SLURM_CONF$')
USER=$(id -un)
LOGNAME=$USER
eval "HOME=~$USER"
export USER LOGNAME HOME
cd "$HOME" 2>/dev/null || cd /
rs_run() {{
  ( exec {{before}}{START.replace("{", "{{").replace("}", "}}")} ) 2>&6 3>&- 6>&-
  rs_s=$?
  printf '\\nrecover-leash:%s end\\n' "$rs_key"
  printf '\\nrecover-leash:%s end %s \\n' "$rs_key" "$rs_s" >&6
}}
exec 3>&1
{{ rs_run | rs_encode 6>&- >&3; }} 6>&1 | rs_encode 3>&- >&2
"""

_LABELLED = re.compile(rb" *(\d+): (.*)", re.DOTALL)
_FAILED = re.compile(r"failed on node (\S+?): (.+)")
_GONE = re.compile(r"(?:Node failure on|[Ll]ost connection to|node failed:?) (\S+)")


def task_line(*, sudo: bool) -> str:
    """What `srun` runs on each node by `/bin/sh -c`."""
    return TASK.replace("{before}", "sudo -n " if sudo else "")


def labelled(line: bytes) -> tuple[int, bytes] | None:
    """(task, its words) of a line that `srun --label` printed; None for `srun`'s own words."""
    found = _LABELLED.fullmatch(line)
    return (int(found[1]), found[2]) if found else None


def refused_node(line: str) -> tuple[str, str] | None:
    """(node, why) where `srun` says that it could not launch on one; as Slurm 22 to 24 say it."""
    found = _FAILED.search(line)
    return (found[1], found[2].strip()) if found else None


def lost_node(line: str) -> str:
    """The node that `srun` says it has lost; empty for other words."""
    found = _GONE.search(line)
    return found[1].rstrip(",") if found else ""


@dataclass(slots=True)
class Stream:
    """One stream of one task, put together again."""

    key: str
    captured: Capture = field(default_factory=Capture)
    end: re.Match[bytes] | None = None
    _piece: list[bytes] = field(default_factory=list)
    _last: bytes = b""

    def add(self, line: bytes) -> None:
        """Takes the next line. What is no base64 is dropped: nothing of ours prints it."""
        if line != b".":
            self._piece.append(line)
            return
        try:
            content = binascii.a2b_base64(b"".join(self._piece))
        except binascii.Error:
            content = b""
        self._piece.clear()
        self.captured.add(content)
        seen = self._last + content
        self.end = self.end or end_pattern(self.key).search(seen)
        self._last = seen[-END_BYTES:]

    def take(self) -> tuple[bytes, int]:
        """The bytes kept, without our own end mark, and how many were dropped."""
        content, dropped = self.captured.take()
        return end_pattern(self.key).sub(b"", content), dropped


@dataclass(slots=True)
class Task:
    """What came from one node."""

    stdout: Stream
    stderr: Stream

    @property
    def status(self) -> int | None:
        """The exit status, where it has come."""
        end = self.stderr.end
        return int(end[1]) if end and end[1] else None

    @property
    def is_through(self) -> bool:
        """Claims that all of it is here."""
        return self.status is not None and self.stdout.end is not None
