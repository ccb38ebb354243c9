"""What a run of N nodes costs: plan, run, journal, reports, memory. `python -m tests.bench.scale`.

The engine, journal, evidence and reports are the real ones; only the nodes are recorded answers.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from recovery import inventory as inventories
from recovery import plan as plans
from recovery.app import files
from recovery.app.control import Control, RealClock
from recovery.app.preparing import check, check_names, verbs
from recovery.engine.history import RunStory
from recovery.engine.loop import Run
from recovery.engine.parts import Parts
from recovery.engine.transporting import Transports
from recovery.engine.world import Recorder
from recovery.model.events import RunStarted
from recovery.model.node import CONTROLLER
from recovery.model.output import Ending, Output
from recovery.reports.html import HTML
from recovery.reports.json import JSON
from recovery.store.evidence import FileEvidence
from recovery.store.journal import FileJournal, read_journal
from tests.engine.runs import Asker
from tests.fakes import FakeTransport

RUNBOOK = """
runbook: scale
about: eight gated questions
nodes: all
steps:
""" + "".join(f"  - run: question {i}\n    effect: read\n    parse: lines\n" for i in range(8))


def answer(node, command):
    return Output(Ending.FINISHED, exit_status=0, stdout=b"an answer of a node\n" * 4)


def measured(n_nodes, folder):
    """(plan_s, run_s, reports_s, journal MB, peak MB) of one run."""
    text = f"all:\n  hosts:\n    node[00001-{n_nodes:05d}]:\n"
    begun = time.perf_counter()
    inventory = inventories.read_inventory(text, "scale.yaml", name="scale")
    plan = plans.build(
        plans.read_runbook(RUNBOOK, "scale.yaml", verbs()), inventory, verbs(), overrides={},
        nodes=None, load=files.find_runbook, fold=inventories.fold, check_names=check_names(),
        select=lambda e: inventories.select(inventory, e), seed=1,
    )  # fmt: skip
    planned = time.perf_counter()
    clock, journal = RealClock(Control()), FileJournal(folder / "journal.jsonl")
    evidence = FileEvidence(folder / "evidence")
    recorder = Recorder(_parts(inventory, clock, journal, evidence), RunStory())
    recorder.tell(
        RunStarted(at=clock.now(), run="r", cluster="scale", runbook="scale", digest=plan.digest,
                   nodes=plan.nodes, seed=1, version="0", owner="me")
    )  # fmt: skip
    transport = FakeTransport(answer)
    run = Run(
        plan=plan, run_id="r", recorder=recorder, transports=Transports(lambda name: transport),
        started_at=clock.monotonic(),
    )  # fmt: skip
    end = run.carry_out()
    ran = time.perf_counter()
    assert end.exit_code == 0, end
    events = read_journal(folder / "journal.jsonl")
    for report in (HTML, JSON):
        report.render(events, evidence, inventories.fold)
    reported = time.perf_counter()
    size = (folder / "journal.jsonl").stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return planned - begun, ran - planned, reported - ran, size, peak


def _parts(inventory, clock, journal, evidence):
    def nothing(*args):
        return ()

    return Parts(
        clock=clock, journal=journal, evidence=evidence, asker=Asker(True),
        nodes={**inventory.nodes, CONTROLLER.name: CONTROLLER}, verbs=verbs(), transport=nothing,
        check=check, launcher=nothing, expectations=lambda node: {}, payload=files.payload,
        local_file=files.local_file, report=nothing, playbook=nothing, stopping=lambda: "",
        heeded=lambda: None, drain=lambda nodes, reason: "",
    )  # fmt: skip


def main(sizes=(100, 1000, 10000)):
    print(
        "| nodes | plan s | run of 8 steps s | ms a node and step "
        "| reports s | journal MB | peak MB |"
    )
    print("|---|---|---|---|---|---|---|")
    for n_nodes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            plan, run, reports, size, peak = measured(n_nodes, Path(folder))
        each = run / n_nodes / 8 * 1000
        print(
            f"| {n_nodes} | {plan:.2f} | {run:.1f} | {each:.2f} "
            f"| {reports:.2f} | {size:.1f} | {peak:.0f} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
