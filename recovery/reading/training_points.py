"""A training log of any known format -> its iterations, one list for each start of the job.

Many ranks may write into one file, a progress bar may precede a line, an iteration may be logged
several times; an iteration that goes back is a new start.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from recovery.errors import InputError, ParseError
from recovery.reading.train_steps import resume_in, save_in
from recovery.reading.training_files import (
    lightning,
    looks_like_lightning,
    looks_like_trainer_state,
    trainer_state,
)
from recovery.reading.training_lines import (
    BY_LINE,
    LineReader,
    by_regex,
    hugging_face,
    progress_bar,
)
from recovery.reading.training_point import Point, filled, made
from recovery.reading.trainlog_lines import Said, said_lines

FORMATS = ("auto", *BY_LINE, "hf", "trainer-state", "lightning", "regex")

_FROM_FOLDER = re.compile(r"(?i:resum\w+)(?: training)? from \S*checkpoint-(\d{1,15})\b")
_KEYWORDS = (
    "loss", "lr", "learning_rate", "grad", "step", "iter", "checkpoint", "ontinuing", "Loss", "%|",
)  # fmt: skip
_PARTS_OF_EPOCH = 10**6
BY_EPOCH = "hf by epoch"
"""The format of lines that are numbered by their epoch, in millionths."""


@dataclass(frozen=True, slots=True)
class Points:
    """What a log holds. ``starts`` has a list for each start of the job, in order.

    ``format`` is the one most of the lines are in; ``notes`` say what was assumed or left out.
    """

    starts: tuple[tuple[Point, ...], ...]
    format: str
    notes: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Point, ...]:
        """Every iteration once, by number; as the last start logged it."""
        newest = {point.iteration: point for start in self.starts for point in start}
        return tuple(newest[n] for n in sorted(newest))

    @property
    def interval(self) -> int:
        """Iterations between two lines, as a rule."""
        return log_interval(self.all)


def log_interval(points: Sequence[Point]) -> int:
    """The usual distance between two logged iterations; 1 where it cannot be told."""
    gaps = [b.iteration - a.iteration for a, b in pairwise(points) if b.iteration > a.iteration]
    return max(1, int(median(gaps))) if gaps else 1


def read_points(text: str, *, fmt: str = "auto", regex: str = "") -> Points:
    """Reads a log.

    A last line without its newline is left out: a number in it may be cut.

    Raises:
        ParseError: not one line about a training iteration, or only lines without its number.
        InputError: an unknown format, or a bad expression.
    """
    if fmt not in FORMATS:
        raise InputError(f"no log format {fmt!r}", remedy=f"one of: {', '.join(FORMATS)}")
    if regex:
        return _by_lines(text, {"regex": by_regex(regex)}, dictionaries=False)
    if fmt == "trainer-state" or (fmt == "auto" and looks_like_trainer_state(text)):
        return _whole(trainer_state(text), "trainer-state")
    if fmt == "lightning" or (fmt == "auto" and looks_like_lightning(text)):
        return _whole(lightning(text), "lightning")
    readers = (
        BY_LINE if fmt in ("auto", "regex") else {k: r for k, r in BY_LINE.items() if k == fmt}
    )
    return _by_lines(text, dict(readers), dictionaries=fmt in ("auto", "hf"))


def _whole(points: Sequence[Point], fmt: str) -> Points:
    if not points:
        raise _nothing()
    return Points(_starts([_Row(point) for point in points]), fmt)


def _nothing() -> ParseError:
    return ParseError(
        "no line about a training iteration",
        remedy="is it the training's log? name its format, or describe a line by a regex",
    )


@dataclass(slots=True)
class _Row:
    """A point and who logged it; ``fresh`` where the job said before that it starts or resumes."""

    point: Point
    who: str = ""
    fresh: bool = False


@dataclass(slots=True)
class _Lines:
    """Reads line after line; keeps what helps to number lines that name no iteration."""

    readers: dict[str, LineReader]
    dictionaries: bool
    rows: list[_Row] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    unnumbered: list[dict[str, float]] = field(default_factory=list)
    anchors: list[tuple[int, int, bool]] = field(default_factory=list)
    bars: list[_Row] = field(default_factory=list)
    bar_step: int | None = None
    bars_follow: bool = False
    fresh: bool = False

    def read(self, said: Said) -> None:
        if said.bar_step is not None:
            self._bar(said, said.bar_step)
        if not said.text.strip() or self._is_mark(said.text):
            return
        if self.dictionaries and (values := hugging_face(said.text)) is not None:
            self._dictionary(dict(values))
            return
        for name, reader in self.readers.items():
            point = reader(said.text)
            if point is not None:
                who = str(said.rank if said.rank is not None else said.local_rank)
                self.rows.append(_Row(point, f"{said.host} {who}", self.fresh))
                self.seen[name] += 1
                self.fresh = False
                return

    def _bar(self, said: Said, step: int) -> None:
        if self.bars_follow and step and self.anchors[-1:] != [(len(self.unnumbered), step, False)]:
            if self.unnumbered and (not self.anchors or self.anchors[-1][0] < len(self.unnumbered)):
                self.anchors.append((len(self.unnumbered), step, False))
        else:
            self.bar_step = step or None
        if self.dictionaries and (point := progress_bar(said.bar, step, said.bar_total)):
            if self.bars and self.bars[-1].point.iteration == point.iteration:
                self.bars.pop()  # drawn first with the loss before, then with its own
            self.bars.append(_Row(point, fresh=self.fresh))
            self.fresh = False

    def _is_mark(self, text: str) -> bool:
        resumed = _resumed(text)
        saved = save_in(text) if resumed is None else None
        if isinstance(resumed, int):
            self.anchors.append((len(self.unnumbered), resumed, True))
        elif saved is not None:
            self.anchors.append((len(self.unnumbered), saved, False))
        if resumed is not None:
            self.fresh, self.bar_step = True, None
        return saved is not None or resumed is not None

    def _dictionary(self, values: dict[str, float]) -> None:
        self.seen["hf"] += 1
        if not self.unnumbered:
            self.bars_follow = self.bar_step is None
        if self.bar_step is not None:
            self.anchors.append((len(self.unnumbered) + 1, self.bar_step, False))
            self.bar_step = None
        self.unnumbered.append(values)


def _resumed(text: str) -> int | str | None:
    """The step, path or ``""`` that the job says it resumes from; the Trainer's folders too."""
    match = _FROM_FOLDER.search(text)
    return int(match[1]) if match else resume_in(text)


def _by_lines(text: str, readers: dict[str, LineReader], *, dictionaries: bool) -> Points:
    lines = text.replace("\x00", "").split("\n")
    if len(lines) > 1 or "regex" in readers:
        cut = lines.pop()
        if cut.strip() and len(lines) == 0:
            lines = [cut]
    reading = _Lines(readers, dictionaries)
    for said in said_lines(line for line in lines if "regex" in readers or _may_tell(line)):
        reading.read(said)
    notes: list[str] = []
    rows = reading.rows
    if not rows and reading.unnumbered:
        rows = list(_numbered(reading, notes))
    if not rows and reading.bars:
        rows, reading.seen["progress bar"] = reading.bars, 1
    if not rows:
        raise _nothing()
    rows = list(_of_one_writer(rows, notes))
    main = reading.seen.most_common(1)[0][0]
    starts = _starts(rows)
    return Points(_by_interval(starts) if reading.seen["deepspeed"] else starts, main, tuple(notes))


def _may_tell(line: str) -> bool:
    return any(word in line for word in _KEYWORDS)


def _numbered(reading: _Lines, notes: list[str]) -> Iterator[_Row]:
    """Numbers the Trainer's dictionaries by what the log says of saves, resumes and bars."""
    if not reading.anchors:
        yield from _by_epoch(reading, notes)
        return
    interval = _interval_of(reading.anchors)
    notes.append(f"the lines name no iteration: counted from the saves, {interval} a line")
    for n, values in enumerate(reading.unnumbered):
        at, step, _ = next(
            (a for a in reversed(reading.anchors) if a[0] <= n + 1 and (a[0] <= n or not a[2])),
            reading.anchors[0],
        )
        fresh = any(is_resume and k == n for k, _, is_resume in reading.anchors)
        told = {name: value for name, value in values.items() if name != "epoch"}
        point = made({**told, "iteration": step + (n + 1 - at) * interval})
        if point is not None:
            yield _Row(point, fresh=fresh)


def _by_epoch(reading: _Lines, notes: list[str]) -> Iterator[_Row]:
    """Numbers them by their epoch: the same iteration prints the same one before and after."""
    epochs = [values.get("epoch", math.nan) for values in reading.unnumbered]
    same = any(a == b for a, b in pairwise(epochs))
    if len(epochs) < 2 or same or not all(map(math.isfinite, epochs)):
        raise ParseError(
            "the lines name no iteration",
            remedy="give trainer_state.json of the newest checkpoint instead",
        )
    notes.append("the lines name no iteration: numbered by epoch, in millionths of one")
    reading.seen[BY_EPOCH] = len(epochs) + 1
    for values, epoch in zip(reading.unnumbered, epochs, strict=True):
        told = {name: value for name, value in values.items() if name != "epoch"}
        point = made({**told, "iteration": round(epoch * _PARTS_OF_EPOCH)})
        if point is not None:
            yield _Row(point)


def _interval_of(anchors: Sequence[tuple[int, int, bool]]) -> int:
    found = [
        (b[1] - a[1]) / (b[0] - a[0])
        for a, b in pairwise(anchors)
        if not b[2] and b[0] > a[0] and b[1] > a[1]
    ]
    return max(1, round(median(found))) if found else 1


def _of_one_writer(rows: Sequence[_Row], notes: list[str]) -> Iterator[_Row]:
    """The rows of the writer that logs most, and of those who have no name."""
    count = Counter(row.who for row in rows if row.point.loss is not None)
    named = [who for who, _ in count.most_common() if who.strip() not in ("", "None")]
    if len(named) > 1:
        notes.append(f"{len(named)} ranks write into this log: read by the first of those")
    for row in rows:
        if len(named) < 2 or row.who == named[0] or row.who not in count:
            yield row


def _starts(rows: Iterable[_Row]) -> tuple[tuple[Point, ...], ...]:
    """Splits where the iteration goes back by more than ranks drift apart; merges repetitions."""
    listed = list(rows)
    drift = log_interval([row.point for row in listed])
    starts: list[dict[int, Point]] = [{}]
    newest = -1
    for row in listed:
        number, now = row.point.iteration, starts[-1]
        back = number <= newest if row.fresh else number < newest - drift
        if now and back:
            starts.append({})
            now, newest = starts[-1], -1
        now[number] = filled(now[number], row.point) if number in now else row.point
        newest = max(newest, number)
    return tuple(tuple(start[n] for n in sorted(start)) for start in starts)


def _by_interval(starts: tuple[tuple[Point, ...], ...]) -> tuple[tuple[Point, ...], ...]:
    """DeepSpeed counts skipped steps from the beginning; `Point` counts since the line before."""

    def one(points: tuple[Point, ...]) -> Iterator[Point]:
        total: int | None = None
        for point in points:
            if point.skipped is None:
                yield point
                continue
            since = None if total is None else max(point.skipped - total, 0)
            total = point.skipped
            yield replace(point, skipped=since)

    return tuple(tuple(one(points)) for points in starts)
