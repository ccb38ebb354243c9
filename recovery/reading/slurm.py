"""What squeue and scontrol say about a job."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recovery.errors import ParseError

SQUEUE_FORMAT = "%A|%T|%r|%u"

# A state that does not wait is one in which the job has nodes, or gives them back.
_WAITING = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_GOING = ("CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING")
_GOING_TOO = ("STAGE_OUT", "RESV_DEL_HOLD", "POWER_UP_NODE", "UPDATE_DB")
_PAIR = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z/:]*)=(.*?)(?=\s+[A-Z][A-Za-z/:]*=|\s*$)")
_EMPTY = ("", "(null)", "None", "N/A")


@dataclass(frozen=True, slots=True)
class Queued:
    """A line of the queue."""

    id: str
    state: str
    reason: str
    user: str

    @property
    def waits(self) -> bool:
        """Claims that it has no nodes yet, or no longer."""
        return self.state in _WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """A job as Slurm remembers it, also for some minutes after its end.

    ``nodes`` is a hostlist as Slurm folds it; ``least_nodes`` is 0 where it is not known.
    """

    id: str
    state: str
    reason: str = ""
    nodes: str = ""
    least_nodes: int = 0
    restarts: int = 0
    exit_code: str = ""
    log: str = ""

    @property
    def waits(self) -> bool:
        """Claims that it has no nodes yet, or no longer."""
        return self.state in _WAITING

    @property
    def over(self) -> bool:
        """Claims that it neither waits nor runs, and will not again by itself."""
        return self.state not in (*_WAITING, *_GOING, *_GOING_TOO)

    @property
    def held(self) -> bool:
        """Claims that it waits until somebody releases it: not until a time or a free node."""
        return self.waits and "held" in self.reason.lower().replace("hold", "held")


def read_squeue(text: str) -> tuple[Queued, ...]:
    """The jobs, from ``squeue --noheader --format=SQUEUE_FORMAT``; no line is no job.

    Raises:
        ParseError: a line of another shape.

    Source: squeue(1) of Slurm 22.05 and 24.05.
    """
    lines = [line.strip() for line in text.splitlines()]
    return tuple(_queued(line) for line in lines if line)


def _queued(line: str) -> Queued:
    parts = line.split("|")
    if len(parts) != 4 or not parts[0].isdigit() or not parts[1]:
        raise ParseError(f"not a line of squeue: {line[:80]!r}", remedy="squeue --long")
    return Queued(*parts)


def read_job(text: str) -> SlurmJob:
    """One job, from ``scontrol --oneliner show job ID``.

    Raises:
        ParseError: no job, or no state of it.

    Source: scontrol(1) of Slurm 22.05 and 24.05; values may hold blanks (a job's name, a reason).
    """
    found: dict[str, str] = {}
    for key, value in _PAIR.findall(text.strip()):
        found.setdefault(key, "" if value in _EMPTY else value)
    if not found.get("JobId") or not found.get("JobState"):
        raise ParseError(f"not a job of Slurm: {text.strip()[:60]!r}", remedy="scontrol show job")
    return SlurmJob(
        id=found["JobId"],
        state=found["JobState"],
        reason=found.get("Reason", "").replace("_", " "),
        nodes=found.get("NodeList", ""),
        least_nodes=_number(found.get("NumNodes", "").partition("-")[0]),
        restarts=_number(found.get("Restarts", "")),
        exit_code=found.get("ExitCode", ""),
        log=found.get("StdOut", ""),
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
