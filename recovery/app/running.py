"""Starting and resuming runs: the engine joined with the real world."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import recovery
from recovery import plan as plans
from recovery.app import bmcs, files, metrics, preparing
from recovery.app.control import Control, RealClock, TerminalAsker
from recovery.app.notifying import About, Herald, sender
from recovery.app.outside import drain
from recovery.app.playbooks import run_playbook
from recovery.app.preparing import Prepared
from recovery.app.reporting import Reporter
from recovery.app.secrecy import people_of, resolved, secret_values
from recovery.app.stories import stories_of
from recovery.engine.blast import WEEK_S, attempts, disrupted
from recovery.engine.ending import RunEnd
from recovery.engine.history import RunStory, story_of
from recovery.engine.loop import Run
from recovery.engine.parts import Parts
from recovery.engine.secrecy import strike_out
from recovery.engine.transporting import Transports
from recovery.engine.world import Recorder
from recovery.errors import InputError, InventoryError, StoreError
from recovery.model.events import Event, Noted, RunResumed, RunStarted
from recovery.model.node import CONTROLLER
from recovery.model.ports import Launcher, Transport, TransportKind
from recovery.model.runbook import Plan
from recovery.registry import pick
from recovery.store.journal import FileJournal, read_journal
from recovery.store.lock import ClusterLock, Owner, boot_id
from recovery.store.runs import RunFolder, find_run, new_run

Listener = Callable[[Event], None]
TAKE_OVER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the operator said about this sitting."""

    state: Path
    yes: bool = False
    approvals: frozenset[str] = frozenset()
    take_over: bool = False
    probe: bool = False
    listen: Listener = lambda event: None
    recall: Listener = lambda event: None  # is told what earlier sittings journaled
    say: Callable[[str], None] = lambda words: None


def start(prepared: Prepared, options: RunOptions) -> tuple[str, RunEnd]:
    """Starts a new run and carries it out; returns its id and how it ended.

    Raises:
        LockedError: another run holds the cluster.
        StoreError: the journal cannot be written.
    """
    control = Control(say=options.say)
    clock = RealClock(control)
    stamp = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y%m%d-%H%M%S")
    run = f"{stamp}-{prepared.plan.cluster}-{os.urandom(2).hex()}"
    with _held(prepared.plan.cluster, run, clock, options):
        _bring_up(prepared)
        folder = new_run(options.state, run)
        sitting = _Sitting(
            prepared,
            resolved(prepared.plan, prepared.inventory),
            options,
            control,
            clock,
            folder,
            RunStory(),
            Reporter(folder),
        )
        started = RunStarted(
            at=clock.now(),
            run=run,
            cluster=prepared.plan.cluster,
            runbook=prepared.plan.runbook,
            digest=prepared.plan.digest,
            nodes=prepared.plan.nodes,
            seed=prepared.plan.seed,
            version=recovery.__version__,
            owner=_owner(run, clock).words,
            inputs=prepared.inputs,
            plan=strike_out(plans.plan_as_values(prepared.plan), people_of(prepared.plan)),
        )
        return run, sitting.carry_out(started)


def resume(name: str, options: RunOptions) -> tuple[str, RunEnd]:
    """Goes on with a run that was interrupted, crashed, or stopped at a gate.

    Raises:
        InputError: no such run, it is done already, or its plan is no longer what it was.
        LockedError: another run holds the cluster, or this one still runs.
    """
    folder = find_run(options.state, name)
    story = story_of(read_journal(folder.journal))
    if story.started is None:
        raise InputError(f"run {folder.run} never started", remedy="start a new run")
    if story.finished is not None and story.finished.exit_code == 0:
        raise InputError(
            f"run {folder.run} is done already", remedy=f"`recover report {folder.run}` shows it"
        )
    control = Control(say=options.say)
    clock = RealClock(control)
    with _held(story.started.cluster, folder.run, clock, options):
        events = read_journal(folder.journal)
        story = story_of(events)
        for event in events:
            options.recall(event)
        prepared = _same_plan(story)
        _bring_up(prepared)
        sitting = _Sitting(
            prepared,
            resolved(prepared.plan, prepared.inventory),
            options,
            control,
            clock,
            folder,
            story,
            Reporter(folder),
        )
        resumed = RunResumed(at=clock.now(), owner=_owner(folder.run, clock).words)
        return folder.run, sitting.carry_out(resumed)


def _same_plan(story: RunStory) -> Prepared:
    started = story.started
    if started is None:
        raise InputError("the run never started", remedy="start a new run")
    prepared = preparing.prepare(**started.inputs)
    if prepared.plan.digest != started.digest:
        raise InputError(
            f"the runbook or inventory of run {started.run} has changed since it started",
            remedy="put them back as they were, or start a new run",
        )
    return prepared


@dataclass(frozen=True, slots=True)
class _Sitting:
    """One process's turn at a run."""

    prepared: Prepared
    plan: Plan  # with the values of its secrets: never written
    options: RunOptions
    control: Control
    clock: RealClock
    folder: RunFolder
    story: RunStory
    reporter: Reporter
    reported: list[str] = field(default_factory=list)

    def carry_out(self, first: Event) -> RunEnd:
        journal = FileJournal(self.folder.journal)
        transports = Transports(self._open_transport)
        self.control.end_commands = transports.stop
        self.control.install()
        recorder = Recorder(self._parts(journal), self.story, self.options.listen)
        herald = self._herald(recorder)
        try:
            recorder.tell(first)
            run = Run(
                plan=self.plan,
                run_id=self.folder.run,
                recorder=recorder,
                transports=transports,
                started_at=self.clock.monotonic(),
                probe=self.options.probe,
            )
            end = run.carry_out()
            # A report step cannot know the end of its own run: write its files once more.
            self.reporter.write(tuple(dict.fromkeys(self.reported)))
            self._publish(recorder)
            return end
        finally:
            herald.close()
            transports.close()
            journal.close()

    def _herald(self, recorder: Recorder) -> Herald:
        """Tells people, where inventory or runbook name some; a probe is nobody's news."""
        variables = {} if self.options.probe else self.plan.variables
        herald = Herald(
            About(
                run=self.folder.run,
                cluster=self.plan.cluster,
                runbook=self.plan.runbook,
                n_nodes=len(self.plan.nodes),
                answered=lambda step: self.options.yes or step in self.options.approvals,
            ),
            sender(variables, recorder.parts.secrets),
            failed=lambda words: self._noted(recorder, words),
        )

        def listen(event: Event) -> None:
            self.options.listen(event)
            herald.hear(event)

        recorder.listen = listen
        return herald

    def _publish(self, recorder: Recorder) -> None:
        variables, plan = self.prepared.inventory.variables, self.plan
        if self.options.probe or not metrics.is_wanted(variables):
            return
        text = self.reporter.render(metrics.REPORT)
        for line in metrics.publish(variables, text, plan.cluster, plan.runbook):
            self._noted(recorder, line)

    def _noted(self, recorder: Recorder, words: str) -> None:
        """Says and journals what went wrong beside the run; it never stops the run."""
        self.options.say(words)
        with suppress(StoreError):
            recorder.tell(Noted(at=self.clock.now(), step="", message=words, kind="beside"))

    def _open_transport(self, name: str) -> Transport:
        kind = pick("recovery.transports", TransportKind, name)
        settings = {
            "leash": files.payload("leash.sh"),
            "state_dir": str(self.options.state),
            "width": self.prepared.plan.limits.nodes_at_once,
        }
        return kind.open(settings)

    def _parts(self, journal: FileJournal) -> Parts:
        asker = TerminalAsker(
            self.clock, self.options.say, self.options.yes, self.options.approvals
        )
        inventory = self.prepared.inventory
        return Parts(
            clock=self.clock,
            journal=journal,
            evidence=self.folder.evidence,
            asker=asker,
            nodes={**inventory.nodes, CONTROLLER.name: CONTROLLER},
            verbs=self.prepared.verbs,
            transport=self._open_transport,
            check=preparing.check,
            launcher=lambda name: pick("recovery.launchers", Launcher, name),
            expectations=self.prepared.expectations,
            payload=files.payload,
            local_file=files.local_file,
            report=self._report,
            playbook=run_playbook,
            stopping=self.control.stopping,
            heeded=self.control.heeded,
            drain=lambda nodes, reason: drain(inventory.variables, nodes, reason),
            secrets=secret_values(self.plan, inventory),
            bmc=bmcs.ask,
            disrupted=self._disrupted,
            controller=_controller(self.options.state),
            take_over=self.options.take_over,
            attempted=cache(self._attempted),
        )

    def _disrupted(self, since: float) -> set[str]:
        stories = stories_of(self.options.state, self.plan.cluster, since=since)
        return {name for story in stories for name in disrupted(story, since=since)}

    def _attempted(self) -> dict[tuple[str, str], list[float]]:
        stories = stories_of(self.options.state, self.plan.cluster, since=self.clock.now() - WEEK_S)
        mine = self.folder.run
        return attempts(s for s in stories if s.started and s.started.run != mine)

    def _report(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        self.reported.extend(formats)
        return self.reporter.write(formats)


def _bring_up(prepared: Prepared) -> None:
    """Runs the inventory's ``prepare`` line on the controller, so that nodes can be reached."""
    line = prepared.inventory.variables.get("prepare")
    if not isinstance(line, str) or not line:
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(  # noqa: S602 - the operator's own line, from the inventory
        line, shell=True, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        raise InventoryError(
            f"{prepared.inventory.source}: `prepare` ended with status {done.returncode}",
            remedy=f"run it by hand: {line}",
        )


def _controller(state: Path) -> str:
    """This machine and state folder in a few letters: one lock holds all its runs apart."""
    place = f"{socket.gethostname()}:{state.resolve()}"
    return hashlib.sha256(place.encode()).hexdigest()[:12]


def _owner(run: str, clock: RealClock) -> Owner:
    return Owner(getpass.getuser(), socket.gethostname(), os.getpid(), boot_id(), run, clock.now())


@contextmanager
def _held(cluster: str, run: str, clock: RealClock, options: RunOptions) -> Iterator[None]:
    lock = ClusterLock(options.state / "locks", cluster)
    take_over = TAKE_OVER_S if options.take_over else None
    owner = _owner(run, clock)
    lock.acquire(owner, now=clock.now(), take_over_s=take_over)
    try:
        yield
    finally:
        lock.release()
