"""What ended the training: the earliest error over all ranks and nodes, its echoes folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, passed, unknown, verdict, warned
from recovery.reading.klog import KernelLog
from recovery.reading.klog_near import candidates
from recovery.reading.train_causes import cause_of, gpu_of, silent_ranks
from recovery.reading.train_elastic import ElasticFailure
from recovery.reading.train_errors import ECHOES, TrainError
from recovery.reading.train_steps import compared, losses
from recovery.reading.trainlog import (
    TrainingLog,
    is_stop,
    is_training_log,
    parse_training_log,
)

_SHOWN = 200  # entries of a list of facts
_NAMED = 3  # kernel events named in a finding


@dataclass(frozen=True, slots=True)
class TrainExpect:
    """The shape of the job, where known: names a node from a rank."""

    world_size: int | None = None
    gpus_per_node: int | None = None
    hosts: tuple[str, ...] = ()
    logging_steps: int | None = None


def expect(raw: Mapping[str, Any]) -> TrainExpect:
    """Reads the job's shape from the context."""
    return TrainExpect(
        world_size=raw.get("world_size"),
        gpus_per_node=raw.get("gpus_per_node"),
        hosts=tuple(str(host) for host in raw.get("hosts") or ()),
        logging_steps=raw.get("logging_steps"),
    )


def judge(log: TrainingLog, expected: TrainExpect) -> Verdict:
    """One finding for the root cause; what followed from it is told in the same breath."""
    first = log.first
    if first is not None and not (first.kind in ECHOES and log.elastic is not None):
        return verdict(_crash(log, first, expected), otherwise="")
    if log.elastic is not None:
        return verdict(_by_agent(log), otherwise="")
    found = [*_numbers(log), *_end(log)]
    n_resumes = sum(a.resumed_from is not None for a in log.attempts)
    resumed = f", resumed from {log.attempts[-1].resumed_from}" if n_resumes else ""
    return verdict(found, otherwise=f"no error in {log.n_iterations} iterations{resumed}")


def _crash(log: TrainingLog, first: TrainError, expected: TrainExpect) -> Iterator[Finding]:
    cause = cause_of(first, expected.world_size, log.errors)
    where = where_of(log, first, expected)
    echoes = len([e for e in log.errors if e is not first])
    text = f"{where}{cause.words}" + (f" ({echoes} later errors follow from it)" if echoes else "")
    component = str(first.facts().get("host") or where.partition(":")[0])
    code = f"train.first-error.{first.kind.replace('_', '-')}"
    if is_stop(first) and log.cut:
        yield unknown("the log is cut", remedy="read it again, whole", code=code)
        return
    if is_stop(first):
        yield passed(f"the job did not crash: {cause.words}; {cause.remedy}", code=code)
        return
    yield failed(text, remedy=cause.remedy, component=component, code=code)


def beside(log: TrainingLog, found: Verdict, read: Mapping[str, Any]) -> Verdict:
    """The verdict with what the kernel of the same node reported within its window."""
    kernel = read.get("gpu.xid") or read.get("kernel.errors")
    at = log.first.said.seconds if log.first is not None else None
    if not isinstance(kernel, KernelLog) or at is None or not found.level.blocks:
        return found
    texts = dict.fromkeys(event.text[:100] for event, near in candidates(kernel, at) if near)
    if not texts:
        return found
    said = "; ".join(list(texts)[:_NAMED]) + (" and more" if len(texts) > _NAMED else "")
    worst, *rest = found.findings
    words = f"{worst.finding}; the kernel within 2 min of it: {said}"
    return Verdict((replace(worst, finding=words), *rest))


def where_of(log: TrainingLog, first: TrainError, expected: TrainExpect) -> str:
    """``rank 12, GPU 4 of node-018: `` as far as it is known."""
    host = host_of(log, first, expected)
    gpu = gpu_of(first)
    parts = [
        f"rank {first.rank}" if first.rank is not None else "",
        (f"GPU {gpu}" if gpu is not None else "") + (f" of {host}" if host and gpu is not None
        else host),
    ]  # fmt: skip
    named = ", ".join(part for part in parts if part)
    return f"{named}: " if named else ""


def host_of(log: TrainingLog, error: TrainError, expected: TrainExpect) -> str:
    """The node that an error is about: from the line, else from the job's shape."""
    if error.said.host:
        return error.said.host
    if "host" in error.details:
        return str(error.details["host"])
    rank, per_node = error.rank, expected.gpus_per_node
    if rank is not None and per_node and rank // per_node < len(expected.hosts):
        return expected.hosts[rank // per_node]
    elastic = log.elastic
    if elastic and rank is not None and elastic.rank is not None and elastic.local_rank is not None:
        base = elastic.rank - elastic.local_rank
        same = error.said.local_rank is not None and rank - error.said.local_rank == base
        return elastic.host if same or rank == elastic.rank else ""
    return ""


def _by_agent(log: TrainingLog) -> Iterator[Finding]:
    """No error line at all: only how torchrun saw a worker end."""
    elastic = log.elastic
    if elastic is None:
        return
    words, remedy = _ENDED.get(elastic.signal or "", _ENDED[""])
    yield failed(
        f"{_worker(elastic)} ended with "
        f"{elastic.signal or f'exit code {elastic.exitcode}'}: {words}",
        remedy=remedy,
        component=elastic.host,
        code="train.first-error.ended",
    )


def _worker(elastic: ElasticFailure) -> str:
    who = f"local rank {elastic.local_rank}" if elastic.rank is None else f"rank {elastic.rank}"
    return f"{who} on {elastic.host or 'an unnamed node'}"


_ENDED = {
    "SIGBUS": (
        "shared memory is full, or a mapped file went away",
        "`df /dev/shm` and --shm-size; look at the data set's file system; hardware is unlikely",
    ),
    "SIGKILL": (
        "killed, mostly for memory",
        "`dmesg | grep -i oom` on that node; give the job more memory or fewer loader workers",
    ),
    "SIGSEGV": (
        "a crash in native code",
        "look for a segfault line in the kernel log; compare NCCL, CUDA and driver versions",
    ),
    "SIGABRT": (
        "a library gave up; its own words are in another rank's log",
        "read the log of every rank from the same minute, standard error included",
    ),
    "SIGTERM": ("somebody ended it", "ask the scheduler why it ended the job"),
    "": (
        "its own words are not in this log",
        "read the log of that rank, standard error included",
    ),
}


def _numbers(log: TrainingLog) -> Iterator[Finding]:
    """Losses that are no numbers, and a loss scale that never settles."""
    last = log.attempts[-1].iterations if log.attempts else ()
    broken = [i for i in last if (i.loss is not None and i.loss != i.loss) or i.nan]
    if broken:
        yield failed(
            "the loss is not a number"
            + (f" at iteration {broken[0].step}" if broken[0].step is not None else ""),
            remedy="go back to the checkpoint before it; check the data and the learning rate; run "
            "`dcgmi diag -r 3` on its nodes when it comes back",
            code="train.first-error.nan-loss",
        )
    skips = [i.skipped for i in last if i.skipped is not None]
    if len(skips) > 2 and log.n_overflows and skips[-1] > skips[-2] > skips[-3]:
        yield warned(
            f"iterations are skipped without end: {skips[-1]} by now",
            remedy="lower the learning rate or the initial loss scale; look for bad data",
            code="train.first-error.overflow",
        )
    if len(log.attempts) > 1 and _compared(log).get("lr_continuous") is False:
        yield warned(
            "after the resume the learning rate is not what it was",
            remedy="check that the scheduler's state is in the checkpoint and is loaded",
            code="train.first-error.lr",
        )


def _end(log: TrainingLog) -> Iterator[Finding]:
    if log.exit_status not in (0, None):
        yield unknown(
            f"the job ended with status {log.exit_status} and the log names no error",
            remedy="read the log of every rank, standard error included",
            code="train.first-error.unexplained",
        )
    elif log.cut:
        yield unknown(
            "the log ends in the middle of a line",
            remedy="read it again when the job has ended",
            code="train.first-error.cut",
        )
    elif log.exit_status is None and not log.ended and len(log.attempts) < 2:
        yield warned(
            f"no error in {log.n_iterations} iterations, and no word of the end",
            remedy="see that the job still runs, or read the rest of the log",
            code="train.first-error.open",
        )


def _compared(log: TrainingLog) -> dict[str, Any]:
    return compared(log.attempts[-2], log.attempts[-1]) if len(log.attempts) > 1 else {}


def facts(log: TrainingLog) -> Mapping[str, Any]:
    """The facts by the names of `recover judge`."""
    real = [e for e in log.errors if e.kind not in ECHOES]
    kind = log.first.kind if log.first else ""
    same = sorted({e.rank for e in log.errors if e.kind == kind and e.rank is not None})
    iterations = [i for a in log.attempts for i in a.iterations]
    steps = [i.step for i in iterations if i.step is not None]
    return {
        "first_error": _first(log),
        "errors": [e.facts() for e in real[:_SHOWN]],
        "secondary": [e.facts() for e in real if e is not log.first][:_SHOWN],
        "earlier_errors": [e.facts() for e in log.earlier[:_SHOWN]],
        "ranks": same,
        "ranks_reporting": sorted(
            {e.rank for e in real if e.kind == "nccl_timeout" and e.rank is not None}
        ),
        "elastic_root": log.elastic.facts() if log.elastic else None,
        "other_failures": log.elastic.n_others if log.elastic else None,
        "suspect_nodes": [] if log.first and is_stop(log.first) else None,
        "assert_lines": log.n_asserts,
        "last_step": log.bar_step if log.bar_step is not None else (steps[-1] if steps else None),
        "total": log.bar_total,
        "last_iteration": steps[-1] if steps else None,
        "records": log.n_iterations,
        "steps": steps[:_SHOWN],
        "skipped": [i.skipped for i in iterations if i.skipped is not None][:_SHOWN],
        "loss": losses(log.attempts)[:_SHOWN],
        "loss_scale": [i.loss_scale for i in iterations if i.loss_scale is not None][:_SHOWN],
        "overflows": log.n_overflows,
        "resumed_from": next(
            (a.resumed_from for a in reversed(log.attempts) if a.resumed_from is not None), None
        ),
        **_compared(log),
    }


def _first(log: TrainingLog) -> dict[str, Any] | None:
    """The root, with what other lines of the same kind add to it."""
    if log.first is None or (log.first.kind in ECHOES and log.elastic is not None):
        return None
    found = log.first.facts()
    for other in log.errors:
        if other.kind == log.first.kind == "device_assert":
            found = {**other.facts(), **found}
    gpu = gpu_of(log.first)
    return {**found, **({"gpu": gpu} if gpu is not None else {})}


def conclusions(log: TrainingLog, expected: TrainExpect) -> Mapping[str, Any]:
    """Facts that need the job's shape: the node, the silent ranks, the lost iterations."""
    made: dict[str, Any] = {}
    first = _first(log)
    if first is not None and log.first is not None:
        host = host_of(log, log.first, expected)
        made["first_error"] = {**first, **({"host": host} if host else {})}
    if expected.world_size:
        made["silent_ranks"] = silent_ranks(log.errors, expected.world_size)
    if len(log.attempts) > 1:
        made["lost_steps"] = _lost(log, expected)
    return made


def _lost(log: TrainingLog, expected: TrainExpect) -> int | None:
    before, after = log.attempts[-2], log.attempts[-1]
    steps = [i.step for i in before.iterations if i.step is not None]
    if steps and isinstance(after.resumed_from, int):
        return max(steps[-1] - after.resumed_from, 0)
    return before.since_save * expected.logging_steps if expected.logging_steps else None


FIRST_ERROR = Check(
    name="train.first-error",
    question="What ended the training: which error came first, on which node, rank and GPU?",
    command='tail -c 16000000 -- "${TRAIN_LOG:?set TRAIN_LOG to the path of the training log}"',
    parse=parse_training_log,
    expect=expect,
    judge=judge,
    facts=facts,
    conclusions=conclusions,
    recognises=is_training_log,
    beside=beside,
    needs="tail (coreutils)",
    expects=("world_size", "gpus_per_node", "hosts", "logging_steps"),
)
