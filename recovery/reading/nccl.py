"""What nccl-tests (all_reduce_perf and its sisters) measured, read from text or from ``-J`` JSON.

Source: NVIDIA/nccl-tests ``src/common.cu`` and ``src/util.cu``, tags v2.0.0 to v2.19.6.
"""

from __future__ import annotations

from dataclasses import dataclass

from recovery.errors import ParseError
from recovery.reading import nccl_json, nccl_text
from recovery.reading.nccl_failure import Fault, LauncherFailure, first_fault, launcher_failure
from recovery.reading.nccl_row import Body, Device, Row

__all__ = [
    "Device",
    "Fault",
    "LauncherFailure",
    "NcclResult",
    "Row",
    "looks_like_nccl",
    "read_nccl",
]


@dataclass(frozen=True, slots=True)
class NcclResult:
    """One launch of nccl-tests: what ran, what was measured, what went wrong first.

    ``complete`` says that the closing summary was reached. ``copies`` above 1 means that the
    binary was built without MPI and each process ran by itself. ``fault`` is the first error in
    the text, the cause rather than its echoes; ``launcher`` is a failure before any test began.
    ``exit_status`` is the launcher's, where known.
    """

    body: Body
    fault: Fault | None = None
    launcher: LauncherFailure | None = None
    failed_hosts: tuple[str, ...] = ()
    n_warnings: int = 0
    exit_status: int | None = None

    @property
    def complete(self) -> bool:
        """Claims that the run reached its closing summary."""
        return self.body.complete

    @property
    def rows(self) -> tuple[Row, ...]:
        """The finished payload rows, in the order printed."""
        return self.body.rows

    @property
    def largest(self) -> Row | None:
        """The row of the largest payload; None when no row was finished."""
        return max(self.rows, key=lambda row: row.size_bytes, default=None)

    @property
    def n_ranks(self) -> int | None:
        """Ranks that took part in one communicator; None when the text does not say."""
        return self.body.n_ranks

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names that the nodes gave themselves, in rank order."""
        return tuple(dict.fromkeys(device.host for device in self.body.devices))

    @property
    def is_collective(self) -> bool:
        """Claims that more than one rank really worked together."""
        return self.body.copies == 1 and (self.body.n_ranks or 0) > 1

    @property
    def n_wrong(self) -> float:
        """Elements with a wrong value over all rows, both directions."""
        return sum(row.n_wrong for row in self.rows)

    def row_at(self, size_bytes: int) -> Row | None:
        """The row of exactly this payload."""
        return next((row for row in self.rows if row.size_bytes == size_bytes), None)


def read_nccl(text: str) -> NcclResult:
    """What one launch printed, standard output and error together, or its JSON file, or both.

    Raises:
        ParseError: neither nccl-tests nor a launcher of it printed this, or nothing at all.
    """
    if not text.strip():
        raise ParseError(
            "nccl-tests printed nothing", remedy="run it by hand on the node and look at stderr"
        )
    if nccl_json.looks_like_json(text):
        return NcclResult(nccl_json.read_body(text))
    lines = nccl_text.plain_lines(text)
    body = nccl_json.preferred(nccl_text.read_body(lines), lines)
    fault = first_fault(lines)
    launcher = None if body.started and fault else launcher_failure(lines)
    if not body.started and fault is None and launcher is None:
        raise ParseError(
            f"not the output of nccl-tests: {text.strip()[:60]!r}",
            remedy="run the test by hand on the node",
        )
    return NcclResult(
        body,
        fault=fault,
        launcher=launcher,
        failed_hosts=nccl_text.failed_hosts(lines),
        n_warnings=nccl_text.count_warnings(lines),
    )


def looks_like_nccl(text: str) -> bool:
    """Claims that nccl-tests or mpirun on its behalf printed this.

    That a scheduler ended something at its time limit says nothing of what it was.
    """
    try:
        found = read_nccl(text)
    except ParseError:
        return False
    return found.body.started or found.fault is None or found.fault.kind != "ended"
