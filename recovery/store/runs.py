"""Where runs lie: ``STATE/runs/RUN/{journal.jsonl, evidence/, reports/}``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recovery.errors import InputError
from recovery.registry import did_you_mean
from recovery.store.evidence import FileEvidence


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def run(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def journal(self) -> Path:
        """Its journal."""
        return self.path / "journal.jsonl"

    @property
    def evidence(self) -> FileEvidence:
        """Its evidence."""
        return FileEvidence(self.path / "evidence")

    @property
    def reports(self) -> Path:
        """The folder of its reports."""
        return self.path / "reports"


def new_run(state: Path, run: str) -> RunFolder:
    """The folder for a new run; made when something is written."""
    return RunFolder(state / "runs" / run)


def all_runs(state: Path) -> tuple[RunFolder, ...]:
    """All runs, oldest first; folders without a journal are none."""
    found = (RunFolder(p) for p in sorted((state / "runs").glob("*")))
    return tuple(f for f in found if f.journal.exists())


def find_run(state: Path, name: str) -> RunFolder:
    """The run called so; ``last`` is the newest, a unique beginning is enough.

    Raises:
        InputError: no such run, or several that begin so.
    """
    runs = all_runs(state)
    if name == "last" and runs:
        return runs[-1]
    matching = [r for r in runs if r.run == name] or [r for r in runs if r.run.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    what = "no run" if not matching else f"{len(matching)} runs begin with"
    hint = did_you_mean(name, [r.run for r in runs])
    raise InputError(f"{what} {name!r}{hint}", remedy="`recover runs` lists them")
