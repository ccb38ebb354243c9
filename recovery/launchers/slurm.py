"""`slurm`: the job is submitted once, or found waiting and freed, and waited for until it runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.engine.jobs import already_runs, claim, same_for_all
from recovery.engine.outcome import ending_finding
from recovery.errors import InputError, ParseError, SchedulerError
from recovery.inventory import expand, fold
from recovery.model.node import CONTROLLER, Node
from recovery.model.output import Command, Output
from recovery.model.ports import Launcher, World
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, Verdict, failed, passed, single, unknown, warned
from recovery.reading.occupancy import SINFO_FORMAT, NodeUse, read_sinfo
from recovery.reading.slurm import SQUEUE_FORMAT, Queued, SlurmJob, read_job, read_squeue

POLL_S = 2.0
ASK_S = 30.0
# Slurm takes a dead node's job back only after SlurmdTimeout; below this we do not call it a hang.
SPARE_S = 3.0
_NUMBER = re.compile(r"^(\d+)(;\S*)?$", re.MULTILINE)
_WHY_IT_WAITS = {
    "Resources": "nodes are busy: look at `squeue`; `scontrol show job` names what it needs",
    "Priority": "jobs of a higher priority come first: raise its priority, or wait",
    "Dependency": "it waits for another job: `scontrol update JobId={id} Dependency=`",
    "JobHeldAdmin": "an administrator holds it: `scontrol release {id}`",
    "PartitionDown": "open the partition: `scontrol update PartitionName=NAME State=UP`",
}


@dataclass(slots=True)
class _Slurm:
    """Slurm, asked from the head node about one job."""

    nodes: tuple[Node, ...]
    job: Mapping[str, Any]
    world: World
    head: Node
    ends_at: float
    use: Mapping[str, NodeUse] = field(default_factory=dict)
    marked_down: bool = False

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.job["name"])

    @property
    def known(self) -> tuple[str, ...]:
        """The nodes to run on that Slurm knows."""
        return tuple(n.name for n in self.nodes if n.name in self.use)

    @property
    def excluded(self) -> frozenset[str]:
        """All that Slurm has but what this step was given: set aside, or never looked at."""
        return frozenset(self.use) - {n.name for n in self.nodes}

    def try_line(self, line: str, env: Mapping[str, str] | None = None) -> Output:
        """Runs a line on the head node."""
        command = Command(line, timeout_s=ASK_S, env=env or {}, sudo=self.world.step.sudo)
        return self.world.run(self.head, command)

    def ask(self, *argv: str) -> str:
        """What a command of Slurm printed.

        Raises:
            SchedulerError: it failed, or did not end.
        """
        output = self.try_line(shlex.join(argv))
        ending = ending_finding(output)
        if ending:
            raise SchedulerError(f"{argv[0]}: {ending.finding}", remedy=ending.remedy)
        if output.exit_status != 0:
            raise SchedulerError(
                f"{argv[0]}: {_last_words(output)}", remedy=f"run it by hand: {shlex.join(argv)}"
            )
        return output.text

    def look(self) -> None:
        """Asks for the state of all nodes."""
        self.use = read_sinfo(
            self.ask("sinfo", "--Node", "--noheader", "--all", f"--format={SINFO_FORMAT}")
        )

    def queued(self) -> tuple[Queued, ...]:
        """Jobs of this name, the oldest first."""
        asked = ("squeue", "--noheader", f"--name={self.name}", f"--format={SQUEUE_FORMAT}")
        return tuple(sorted(read_squeue(self.ask(*asked)), key=lambda q: int(q.id)))

    def remembered(self, number: str) -> SlurmJob:
        """The job, also after its end."""
        return read_job(self.ask("scontrol", "--oneliner", "show", "job", number))


def _launch(
    nodes: tuple[Node, ...], job: Mapping[str, Any], world: World
) -> Mapping[str, NodeResult]:
    ends_at = world.clock.monotonic() + world.step.timeout_s - SPARE_S
    slurm = _Slurm(nodes, job, world, _head(world), ends_at)
    try:
        slurm.look()
        if not slurm.known:
            return same_for_all(nodes, _strangers(nodes), world)
        number, how = _obtain(slurm)
        if not number:
            return same_for_all(nodes, how, world)
        seen, finding = _wait(slurm, number, how)
        if finding:
            return same_for_all(nodes, finding, world)
        return _running(slurm, seen, how)
    except (SchedulerError, ParseError) as error:
        finding = unknown(error.message, remedy=error.remedy, code="launch.slurm-silent")
        return same_for_all(nodes, finding, world)


def _head(world: World) -> Node:
    """The node to ask Slurm on: the variable ``slurm_head`` names it, else the controller."""
    name = world.variables.get("slurm_head")
    if not name:
        return CONTROLLER
    if str(name) not in world.inventory_nodes:
        raise InputError(
            f"slurm_head: no node {str(name)!r} in the inventory",
            remedy="add it to the inventory, or leave slurm_head out to ask from here",
        )
    return world.inventory_nodes[str(name)]


def _strangers(nodes: tuple[Node, ...]) -> Finding:
    return unknown(
        f"Slurm knows none of the nodes, such as {nodes[0].name!r}",
        remedy="name the nodes in the inventory as Slurm does",
        code="launch.slurm-strangers",
    )


def _obtain(slurm: _Slurm) -> tuple[str, Finding]:
    """The job's number, or none, and how we came by it."""
    jobs = slurm.queued()
    runs = [q for q in jobs if not q.waits]
    if runs:
        return _of_running(slurm, runs[0])
    ours = claim(slurm.nodes, slurm.job, slurm.world)
    if jobs:
        return jobs[0].id, _freed(slurm, jobs[0].id, ours=ours)
    return _submit(slurm)


def _intended(slurm: _Slurm) -> bool:
    intents = slurm.world.intentions("launch")
    return any(intent.get("name") == slurm.name for intent in intents)


def _of_running(slurm: _Slurm, queued: Queued) -> tuple[str, Finding]:
    """A job that Slurm thinks is running: dead with one of its nodes, or not ours to touch."""
    job = slurm.remembered(queued.id)
    gone = sorted(name for name in expand(job.nodes) if _is_gone(slurm.use.get(name)))
    if not gone and _intended(slurm):
        return job.id, passed(f"job {job.id} runs already: this run started it")
    if not gone:
        return "", already_runs(f"job {job.id} of {queued.user} ({job.state.lower()})")
    claim(slurm.nodes, slurm.job, slurm.world)
    if job.state != "COMPLETING":
        slurm.ask("scontrol", "requeue", job.id)
    _freed(slurm, job.id, ours=False)
    return job.id, _as_submitted(slurm, f"job {job.id} was requeued: it had lost {fold(gone)}")


def _is_gone(use: NodeUse | None) -> bool:
    """Claims that a node is down, does not answer, or was drained by us."""
    return use is not None and (
        use.out_by_us or use.state.lower().startswith("down") or "*" in use.state
    )


def _freed(slurm: _Slurm, number: str, *, ours: bool) -> Finding:
    """Keeps a waiting job off the nodes set aside; `_wait` frees it from hold and start time."""
    job = slurm.remembered(number)
    # In place of what was excluded when it was submitted: a node of then may be sound by now.
    changes = [f"ExcNodeList={fold(slurm.excluded)}"]
    changes += [f"Comment={_comment(slurm)}"] if _comment(slurm) else []
    few = 0 < len(slurm.known) < job.least_nodes
    changes += [f"NumNodes={len(slurm.known)}"] if few else []
    slurm.ask("scontrol", "update", f"JobId={number}", *changes)
    if ours and not job.restarts:
        return passed(f"job {number} is the one that this run submitted")
    words = f"job {number} was found waiting"
    words += f", now for {len(slurm.known)} instead of {job.least_nodes} nodes" if few else ""
    return _as_submitted(slurm, words)


def _as_submitted(slurm: _Slurm, words: str) -> Finding:
    """Slurm keeps a job's script and environment: the step chosen now is not in them."""
    step = slurm.job["env"].get("RESUME_STEP")
    if not step:
        return passed(words)
    return warned(
        f"{words}, and runs as it was submitted: step {step} is only in its comment",
        remedy="let its script read `squeue -h -j $SLURM_JOB_ID -o %k`, or `scancel` it and launch",
        code="launch.slurm-requeued",
    )


def _comment(slurm: _Slurm) -> str:
    return " ".join(f"{k}={v}" for k, v in sorted(slurm.job["env"].items()) if "RESUME" in k)


def _submit(slurm: _Slurm) -> tuple[str, Finding]:
    """Submits the job; when the answer is lost, the queue says whether it arrived."""
    output = slurm.try_line(_sbatch_line(slurm), slurm.job["env"])
    found = _NUMBER.findall(output.text)
    if output.ok and found:
        return found[-1][0], _submitted(found[-1][0])
    if output.exit_status:
        raise SchedulerError(
            f"sbatch: {_last_words(output)}",
            remedy="the line must be a batch script and its arguments, as given to sbatch",
        )
    arrived = slurm.queued()
    if arrived:
        return arrived[0].id, passed(f"job {arrived[0].id} was submitted; sbatch's answer was lost")
    ending = ending_finding(output)
    words = ending.finding if ending else f"it printed {output.text.strip()[:80]!r}"
    raise SchedulerError(f"sbatch: {words}", remedy="look at `squeue` before you launch again")


def _submitted(number: str) -> Finding:
    return passed(f"job {number} was submitted")


def _sbatch_line(slurm: _Slurm) -> str:
    """The line itself comes last and as it is written: the shell of the head node reads it."""
    options = ["sbatch", "--parsable", f"--job-name={slurm.name}", f"--nodes={len(slurm.known)}"]
    options += [f"--exclude={fold(slurm.excluded)}"] if slurm.excluded else []
    log = str(slurm.job["log"])
    options += [f"--output={log}", "--open-mode=append"] if log else []
    line = str(slurm.job["line"]).strip()
    return f"{shlex.join(options)} {line.removeprefix('sbatch ')}"


def _wait(slurm: _Slurm, number: str, how: Finding) -> tuple[SlurmJob, Finding | None]:
    """Looks at the job until it has run for two looks, is over, or the step's time is."""
    submitted = how == _submitted(number)
    ran_before = False
    while True:
        job = slurm.remembered(number)
        if job.over:
            return job, _ended(job)
        if job.state == "RUNNING" and ran_before:
            return job, None
        ran_before = job.state == "RUNNING"
        if slurm.world.clock.monotonic() + POLL_S > slurm.ends_at:
            return job, _still_waits(job)
        if not submitted:
            _nudge(slurm, job)
        slurm.world.clock.sleep(POLL_S)


def _nudge(slurm: _Slurm, job: SlurmJob) -> None:
    """Takes from a found job what holds it: a hold, a start time, nodes that never answer."""
    if job.held and job.reason != "JobHeldAdmin":
        slurm.ask("scontrol", "release", job.id)
    if job.held or job.reason == "BeginTime":
        slurm.ask("scontrol", "update", f"JobId={job.id}", "StartTime=now")
    if job.state == "COMPLETING" and not slurm.marked_down:
        _mark_down(slurm, job)


def _mark_down(slurm: _Slurm, job: SlurmJob) -> None:
    """Tells Slurm of nodes that we drained and that do not answer; it waits SlurmdTimeout else."""
    slurm.look()
    held_by = {name: slurm.use[name] for name in expand(job.nodes) if name in slurm.use}
    if not held_by or not all(u.out_by_us and "*" in u.state for u in held_by.values()):
        return
    for name, use in held_by.items():
        slurm.ask("scontrol", "update", f"NodeName={name}", "State=DOWN", f"Reason={use.reason}")
    slurm.marked_down = True
    slurm.world.note(f"Slurm was told that {fold(held_by)} is down: job {job.id} waited for it")


def _ended(job: SlurmJob) -> Finding:
    code = f", exit status {job.exit_code}" if job.exit_code else ""
    reason = f", {job.reason}" if job.reason else ""
    return failed(
        f"job {job.id} is over already: {job.state.lower()}{code}{reason}",
        remedy=f"read its log: {job.log or f'scontrol show job {job.id}'}",
        code="launch.slurm-ended",
    )


def _still_waits(job: SlurmJob) -> Finding:
    words = _WHY_IT_WAITS.get(job.reason, "`scontrol show job {id}` says more").format(id=job.id)
    return unknown(
        f"job {job.id} does not run yet: {job.state.lower()}, {job.reason or 'no reason given'}",
        remedy=f"{words}; it stays in the queue: `recover resume` waits on",
        code="launch.slurm-waits",
    )


def _running(slurm: _Slurm, job: SlurmJob, how: Finding) -> dict[str, NodeResult]:
    mine = expand(job.nodes)
    values = {"job": job.id, "state": "running", "log": job.log}

    def tell(node: Node) -> NodeResult:
        if node.name in mine:
            return NodeResult(node=node.name, verdict=single(how), values=values)
        return NodeResult(node=node.name, verdict=_spare(slurm, node, job))

    return slurm.world.fan_out(slurm.nodes, tell)


def _spare(slurm: _Slurm, node: Node, job: SlurmJob) -> Verdict:
    if node.name in slurm.use:
        return single(passed(f"not needed: job {job.id} runs without it"))
    return single(
        unknown(
            "Slurm does not know this node",
            remedy="name the node in the inventory as Slurm does",
            code="launch.slurm-strangers",
        )
    )


def _last_words(output: Output) -> str:
    words = (output.error_text.strip() or output.text.strip()).splitlines()
    return words[-1][:160] if words else f"exit status {output.exit_status}, without a word"


SLURM = Launcher(
    name="slurm",
    about="a batch job of Slurm: submitted once, or freed where it waits; without bad nodes",
    launch=_launch,
)
