"""Following the log of each node until it has said enough, or the job has ended, or is silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from shlex import quote

from recovery.continuity.frozen import since, since_tail
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import World
from recovery.reading.train_steps import is_end
from recovery.reading.training_points import Points

TAIL_BYTES = 8 * 1024 * 1024  # what freeze keeps of a log, so its end is found in it
ENOUGH_LINES = 8  # where a line stands for several iterations
_ASK_S = 30.0
_SPARE_S = 10.0  # of the step's time, to judge and to keep what there is
_LINE = (
    'f={log}; m={most}; o={offset}; [ -r "$f" ] || {{ echo "cannot read $f" >&2; exit 3; }}; '
    'set -- $(ls -iL -- "$f"); s=$(($(wc -c <"$f"))); '
    '[ "$1" = "{inode}" ] && [ "$o" -le "$s" ] || o=0; '
    '[ $((s - o)) -le "$m" ] || o=$((s - m)); echo "$1 $o $s"; '
    'tail -c +$((o + 1)) -- "$f" | head -c $((s - o))'
)
Read = Callable[[bytes], Points | None]


class End(StrEnum):
    """Why the following of a log ended."""

    OPEN = "open"
    ENOUGH = "enough"
    SILENT = "silent"  # others log the training, this node does not
    STALLED = "stalled"
    ENDED = "ended"
    LOST = "lost"
    STOPPED = "stopped"
    TIME = "time"


_OVER = {"ended": End.ENDED, "lost": End.LOST, "stopped": End.STOPPED}


def follow_line(log: str, *, inode: str = "", offset: int = 0) -> str:
    """The line that prints ``INODE FROM SIZE`` and the log's bytes between those two.

    It begins anew when the file is another one or shorter than ``offset``: rotated, truncated.
    """
    return _LINE.format(log=quote(log), most=TAIL_BYTES, offset=offset, inode=inode)


@dataclass(slots=True)
class Follow:
    """One node's log as it grows. ``step`` and ``frozen`` tell what of it is new."""

    node: Node
    log: str
    frozen: bytes
    step: int | None = None
    new: bytes = b""
    earlier: Points | None = None
    points: Points | None = None
    output: Output = field(default_factory=lambda: Output(Ending.FINISHED, exit_status=0))
    inode: str = ""
    offset: int = 0
    seen_at: float = 0.0
    end: End = End.OPEN
    job: dict[str, str] = field(default_factory=dict)

    @property
    def n_new(self) -> int:
        """Iterations logged since the relaunch."""
        return len(self.points.starts[-1]) if self.points else 0

    @property
    def last(self) -> int | None:
        """The newest iteration."""
        return self.points.starts[-1][-1].iteration if self.points else None

    def enough(self, wanted: int) -> bool:
        """Claims that there are enough iterations, or lines that stand for enough."""
        if self.points is None:
            return False
        start = self.points.starts[-1]
        span = start[-1].iteration - start[0].iteration
        return len(start) >= wanted or (len(start) >= ENOUGH_LINES and span >= wanted)

    def take(self, output: Output, read: Read) -> None:
        """Takes what the line printed."""
        self.output = output
        heading, newline, content = output.stdout.partition(b"\n")
        words = heading.decode("ascii", "replace").split()
        if not output.ok or not newline or len(words) != 3 or not words[1].isdigit():
            return
        part = since if words[1] == "0" else since_tail
        first = not self.inode
        self.inode, self.offset = words[0], int(words[1]) + len(content)
        fresh = part(self.frozen, content) if first else content
        if fresh:
            self.new += fresh
            self._read(read)

    def _read(self, read: Read) -> None:
        found = read(self.new)
        if found is None or self.frozen:
            self.points = found
            return
        # Nothing frozen here: only a last start that fits the checkpoint can be the new one.
        first = found.starts[-1][0].iteration
        fits = first >= self.step if self.step is not None else len(found.starts) > 1
        if fits:
            self.points = Points(found.starts[-1:], found.format, found.notes)
            older = found.starts[:-1]
            self.earlier = Points(older, found.format, found.notes) if older else None

    @property
    def last_words(self) -> str:
        """The log's last line with words in it."""
        lines = self.new[-4096:].decode("utf-8", "backslashreplace").split("\n")
        return next((line.strip()[:160] for line in reversed(lines) if line.strip()), "")

    @property
    def says_done(self) -> bool:
        """Claims that the log says that the training reached its end."""
        lines = self.new[-8192:].decode("utf-8", "backslashreplace").split("\n")
        return any(is_end(line) for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How much to wait for, how often to look, how long silence may last."""

    wanted: int
    every_s: float
    stall_s: float


def watch(follows: Sequence[Follow], world: World, patience: Patience, read: Read) -> None:
    """Follows all logs until each has an end."""
    began = world.clock.monotonic()
    ends_at = began + max(world.step.timeout_s - _SPARE_S, patience.every_s)
    told = 0
    for follow in follows:
        follow.seen_at = began
    while True:
        waiting = [f for f in follows if f.end is End.OPEN]
        world.each(waiting, lambda follow: _look(follow, world, read))
        now = world.clock.monotonic()
        others_log = any(f.end is End.ENOUGH or f.enough(patience.wanted) for f in follows)
        for follow in waiting:
            _settle(follow, patience, now, others_log=others_log)
        told = _tell(follows, world, patience.wanted, told)
        if all(f.end is not End.OPEN for f in follows):
            return
        if now + patience.every_s > ends_at:
            break
        world.clock.sleep(patience.every_s)
    for follow in follows:
        follow.end = End.TIME if follow.end is End.OPEN else follow.end


def _look(follow: Follow, world: World, read: Read) -> None:
    before = follow.n_new
    _read_on(follow, world, read)
    if follow.n_new > before:
        follow.seen_at = world.clock.monotonic()
        return
    follow.job = _status(follow, world)
    if follow.job.get("state") in _OVER:
        _read_on(follow, world, read)  # what it said between the first look and its end


def _read_on(follow: Follow, world: World, read: Read) -> None:
    line = follow_line(follow.log, inode=follow.inode, offset=follow.offset)
    command = Command(line, timeout_s=_ASK_S, sudo=world.step.sudo)
    follow.take(world.run(follow.node, command), read)


def _status(follow: Follow, world: World) -> dict[str, str]:
    """What became of the job that this run started; nothing where it is not one of ours."""
    name = world.values("launch").get("job")
    if not name:
        return {}
    payload = world.payload("detach.sh").encode()
    line = f"sh -s -- status {quote(str(name))}"
    command = Command(line, timeout_s=_ASK_S, stdin=payload, sudo=world.step.sudo)
    pairs = (row.partition("=") for row in world.run(follow.node, command).text.splitlines())
    return {key: value for key, equals, value in pairs if equals}


def _settle(follow: Follow, patience: Patience, now: float, *, others_log: bool) -> None:
    if follow.enough(patience.wanted):
        follow.end = End.ENOUGH
    elif follow.job.get("state") in _OVER:
        follow.end = _OVER[follow.job["state"]]
    elif others_log and not follow.n_new:
        follow.end = End.SILENT
    elif now - follow.seen_at > patience.stall_s:
        follow.end = End.STALLED


def _tell(follows: Sequence[Follow], world: World, wanted: int, told: int) -> int:
    """Notes the progress of the furthest node, at each quarter of the way."""
    most = max((f.n_new for f in follows), default=0)
    if most and (most * 4 // wanted > told * 4 // wanted or not told):
        last = max((f.last or 0 for f in follows), default=0)
        facts = {"iterations": most, "wanted": wanted, "last": last}
        world.note(f"iteration {last}: {most} new of {wanted}", kind="verify", facts=facts)
        return most
    return told
