"""Reports written again and again: each tells all that the journal holds by then."""

from __future__ import annotations

import json
from pathlib import Path

from recovery.app.reporting import Reporter, render
from recovery.model.events import RunFinished, RunStarted
from recovery.store.journal import FileJournal
from tests.stored_runs import store

STARTED = RunStarted(
    at=1.0, run="r", cluster="c", runbook="b", digest="d", nodes=("n1",), seed=1, version="0",
    owner="me",
)  # fmt: skip
FINISHED = RunFinished(at=2.0, outcome="done", exit_code=0, reason="all steps done")


def test_a_report_written_again_tells_what_came_since(tmp_path: Path) -> None:
    folder = store(tmp_path, "r", lambda evidence: [STARTED])
    reporter = Reporter(folder)
    (first,) = reporter.write(("json",))
    early = json.loads(Path(first).read_text())
    journal = FileJournal(folder.journal)
    journal.append(FINISHED)
    journal.close()

    (second,) = reporter.write(("json",))

    late = json.loads(Path(second).read_text())
    assert early["outcome"] != "done"
    assert late["outcome"] == "done"
    assert Path(second).read_text() == render(folder, "json")
