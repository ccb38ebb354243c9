"""A training log as facts: its iterations, its resumes, and the first error of its last attempt.

Lines come one by one, of one rank or of all ranks of all nodes merged; only errors and the last
iterations are kept, so a log of any size needs bounded memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import tool_asked
from recovery.reading.plain import ends_with_newline
from recovery.reading.train_elastic import ElasticFailure, ElasticReader
from recovery.reading.train_errors import ECHOES, STOPS, TrainError, error_in
from recovery.reading.train_steps import (
    Attempt,
    is_end,
    iteration_in,
    resume_in,
    save_in,
)
from recovery.reading.trainlog_lines import Said, said_lines

KEPT_ERRORS = 4096
_TRACEBACK_LINES = 400
_FRAMEWORK = (
    r"\biteration +\d+/ *\d+ \||\{'loss': |OVERFLOW! Rank \d|\[(?:default|[Rr]ank ?)\d+\]"
    r"|Traceback \(most recent call last\)|\d+/\d+ \[\d+:\d\d<|ProcessGroupNCCL|torch[./]"
    r"|\bstep[ =:]+\d+.{0,200}\bloss\b|DataLoader|deepspeed|torchrun"
)
_FRAMEWORKS = re.compile(_FRAMEWORK)
_TRAINS = re.compile(_FRAMEWORK + r"|slurmstepd: error|srun: error")
_NOT_TRAINING = re.compile(r"# nThread \d+|\bout-of-place\b.*in-place|^NVRM: |busbw")


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """What one log says. ``errors`` are those of the last attempt, one per process and kind.

    ``first`` is the root among them. ``asserts`` counts assertion lines. ``ended`` tells that the
    job said that it is done; ``exit_status`` is the command's, where known.
    """

    errors: tuple[TrainError, ...] = ()
    first: TrainError | None = None
    earlier: tuple[TrainError, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    elastic: ElasticFailure | None = None
    bar_step: int | None = None
    bar_total: int | None = None
    n_asserts: int = 0
    n_overflows: int = 0
    n_lines: int = 0
    ended: bool = False
    cut: bool = False
    exit_status: int | None = None
    hosts: tuple[str, ...] = ()
    local_of: Mapping[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def n_iterations(self) -> int:
        """All iterations of all attempts."""
        return sum(a.n_iterations for a in self.attempts)


def read_training_log(lines: Iterable[str]) -> TrainingLog:
    """The facts of one log whose lines come one by one, in bounded memory."""
    return read_training_logs([("", lines)])


def read_training_logs(
    sources: Iterable[tuple[str, Iterable[str]]],
    *,
    offsets: Mapping[str, float] | None = None,
) -> TrainingLog:
    """The facts of several logs: ``(node, lines)`` each, one after the other.

    ``offsets`` are seconds that a node's clock is ahead of ours: errors are compared after it.
    """
    reader = _Reader()
    for host, lines in sources:
        reader.begin(host)
        for said in said_lines(lines, offsets=offsets, host=host):
            reader.take(said)
    return reader.result()


def parse_training_log(printed: Printed) -> TrainingLog:
    """The facts of a log that was captured whole.

    Raises:
        ParseError: neither an iteration nor an error is in it.
    """
    text = printed.text
    found = read_training_log(f"{text}\n{printed.error_text}".split("\n"))
    if not found.n_iterations and not found.errors and found.elastic is None:
        raise ParseError(
            f"no iteration and no error in {found.n_lines} lines of a training log",
            remedy="give the log of every rank, standard error included",
        )
    values = {name: getattr(found, name) for name in TrainingLog.__slots__}
    cut = bool(text) and not ends_with_newline(text)
    return TrainingLog(**{**values, "cut": cut, "exit_status": printed.exit_status})


def is_training_log(printed: Printed) -> bool:
    """Claims a training's command or, where no tool is named, a text that looks like its log."""
    asked = tool_asked(printed.command)
    if asked:
        return asked == "train"
    return looks_like_training(printed.text) or looks_like_training(printed.error_text)


def looks_like_training(text: str) -> bool:
    """Claims that words of training frameworks are near the beginning or the end."""
    ends = f"{text[:65536]}\n{text[-65536:]}"
    return bool(_TRAINS.search(ends)) and not _NOT_TRAINING.search(ends)


def names_a_framework(text: str) -> bool:
    """Claims that a training framework wrote this, not merely its launcher or scheduler."""
    ends = f"{text[:65536]}\n{text[-65536:]}"
    return bool(_FRAMEWORKS.search(ends)) and not _NOT_TRAINING.search(ends)


@dataclass(slots=True)
class _Reader:
    errors: list[TrainError] = field(default_factory=list)
    seen: set[tuple[object, ...]] = field(default_factory=set)
    earlier: list[TrainError] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=lambda: [Attempt()])
    resumed_from: int | str | None = None
    resume_seen: bool = False
    traceback: Counter[tuple[int | None, int | None, str]] = field(default_factory=Counter)
    elastic: ElasticReader = field(default_factory=ElasticReader)
    clock: float | None = None
    bar: tuple[int | None, int | None] = (None, None)
    n_asserts: int = 0
    n_overflows: int = 0
    n_lines: int = 0
    ended: bool = False
    hosts: dict[str, None] = field(default_factory=dict)
    local_of: dict[int, tuple[str, int]] = field(default_factory=dict)

    def begin(self, host: str) -> None:
        """A new file begins: what it says is not after what the file before said."""
        self.clock = None
        self.traceback.clear()
        if host:
            self.hosts[host] = None

    def take(self, said: Said) -> None:
        self.n_lines += 1
        if said.bar_step is not None:
            self.bar = (said.bar_step, said.bar_total)
            return
        said = self.with_clock(said)
        if said.rank is not None and said.local_rank is not None and len(self.local_of) < 100_000:
            self.local_of[said.rank] = (said.host, said.local_rank)
        if self.elastic.take(said.text):
            return
        if not self.progress(said):
            self.trouble(said)

    def with_clock(self, said: Said) -> Said:
        """A line without a stamp happened when the line before it did."""
        if said.seconds is not None:
            self.clock = said.seconds
            return said
        return Said(said.text, said.number, said.rank, said.local_rank, said.host, self.clock)

    def progress(self, said: Said) -> bool:
        """Takes iterations, saves, resumes and the end; claims the line when it was one."""
        one = iteration_in(said.text)
        if one is not None:
            self.iterated()
            self.attempts[-1].add(one)
            return True
        if save_in(said.text) is not None:
            self.attempts[-1].since_save = 0
            return True
        resumed = resume_in(said.text)
        if resumed is not None:
            self.resume_seen = True
            self.resumed_from = resumed if resumed != "" else self.resumed_from
            return True
        if "OVERFLOW!" in said.text:
            self.n_overflows += 1
            return True
        if is_end(said.text):
            self.ended = True
            return True
        return False

    def iterated(self) -> None:
        """An iteration after a resume: the errors before it are overcome."""
        if not self.resume_seen:
            return
        self.resume_seen = False
        if self.attempts[-1].n_iterations or self.errors:
            self.attempts.append(Attempt())
            self.earlier.extend(self.errors[: KEPT_ERRORS - len(self.earlier)])
            self.errors, self.seen, self.n_asserts = [], set(), 0
            self.elastic = ElasticReader()
            del self.attempts[1:-2]
        self.attempts[-1].resumed_from = self.resumed_from

    def trouble(self, said: Said) -> None:
        key = (said.rank, said.local_rank, said.host)
        if "Traceback (most recent call last)" in said.text:
            if len(self.traceback) < KEPT_ERRORS:
                self.traceback[key] = _TRACEBACK_LINES
            return
        open_lines = self.traceback.get(key, 0)
        found = error_in(said, in_traceback=open_lines > 0)
        if open_lines:
            self.traceback[key] = open_lines - 1
        if found is None:
            return
        if found.kind == "python_exception":
            del self.traceback[key]
        if found.kind == "device_assert" and "file" in found.details:
            self.n_asserts += 1
        if found.who not in self.seen and len(self.errors) < KEPT_ERRORS:
            self.seen.add(found.who)
            self.errors.append(found)

    def result(self) -> TrainingLog:
        step, total = self.bar
        attempts = self.attempts if self.attempts[-1].n_iterations else self.attempts[:-1]
        if not attempts and self.resumed_from is not None:
            attempts = [Attempt(resumed_from=self.resumed_from)]
        return TrainingLog(
            errors=tuple(self.errors),
            first=root_of(self.errors),
            earlier=tuple(self.earlier),
            attempts=tuple(attempts),
            elastic=self.elastic.result(),
            bar_step=step,
            bar_total=total,
            n_asserts=self.n_asserts,
            n_overflows=self.n_overflows,
            n_lines=self.n_lines,
            ended=self.ended,
            hosts=tuple(self.hosts),
            local_of=self.local_of,
        )


_DECISIVE = frozenset({"ecc_uncorrectable", "gpu_lost", "node_failure", "oom_killed"})


def root_of(errors: Iterable[TrainError]) -> TrainError | None:
    """The earliest error that is no echo of another; the earliest echo where nothing else is.

    A scheduler that stopped the job explains everything after it. A broken GPU or node explains a
    timeout even where no stamp says which came first.
    """
    found = list(errors)
    real = [e for e in found if e.kind not in ECHOES]
    if not real:
        return min(found, key=_order, default=None)
    first = min(real, key=_order)
    if first.kind in ("nccl_timeout", "nccl_error", "ib_completion", "python_exception"):
        decisive = [e for e in real if e.kind in _DECISIVE and not _surely_after(e, first)]
        return min(decisive, key=_order, default=first)
    return first


def _order(error: TrainError) -> tuple[float, int]:
    seconds = error.said.seconds
    return (-1.0 if seconds is None else seconds), error.said.number


def _surely_after(one: TrainError, other: TrainError) -> bool:
    a, b = one.said.seconds, other.said.seconds
    return a is not None and b is not None and a > b


def is_stop(error: TrainError) -> bool:
    """Claims that a scheduler or a person ended the job: nothing is broken."""
    return error.kind in STOPS
