"""What each kind of training error means and what to do, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recovery.reading.train_errors import TrainError


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of error in words, and the remedy."""

    words: str
    remedy: str


_RESUME = "resume from the last complete checkpoint"
CAUSES = {
    "time_limit": Cause("the scheduler's time limit was reached", f"queue it again and {_RESUME}"),
    "preempted": Cause("the scheduler preempted it", f"queue it again and {_RESUME}"),
    "evicted": Cause(
        "Kubernetes evicted the pod: its node ran short of memory or disk",
        "`kubectl describe node`; give the pod requests that fit what it uses, then resume",
    ),
    "cancelled": Cause("the job was cancelled", "ask who cancelled it before starting it again"),
    "interrupted": Cause("somebody interrupted it from the keyboard", _RESUME),
    "node_failure": Cause("the scheduler lost a node", "look at the node's BMC and kernel log"),
    "oom_killed": Cause(
        "killed for memory by the kernel or the scheduler",
        "give the job more memory or use fewer loader workers; the GPU is not involved",
    ),
    "ecc_uncorrectable": Cause(
        "uncorrectable memory error of the GPU",
        "drain the node; look for Xid 48, 94, 95 and row remapping, reset the GPU; "
        f"{_RESUME} on the others",
    ),
    "gpu_lost": Cause(
        "the GPU is gone", "drain the node, look for Xid 79, power cycle it; resume on the others"
    ),
    "cuda_oom": Cause(
        "the job needs more memory than the GPU has",
        "use a smaller micro-batch or recompute activations; do all nodes run the same image?",
    ),
    "device_assert": Cause(
        "a device-side assertion failed: bad data, mostly an index outside a table",
        "check data and tokenizer against the vocabulary size; no hardware to change",
    ),
    "illegal_address": Cause(
        "a kernel touched an illegal address",
        "a program fault first: CUDA_LAUNCH_BLOCKING=1; look for Xid 13 and 31 on that GPU, and "
        "suspect it when it comes back with other programs",
    ),
    "cuda_error": Cause(
        "CUDA failed", "look for an Xid in the kernel log of that node within the same minute"
    ),
    "ib_completion": Cause(
        "the network gave up on a peer (retries used up)",
        "look at the link between the two nodes: `ibstat`, switch port errors, then cable",
    ),
    "nccl_timeout": Cause(
        "a collective hung until its time ran out",
        "look at ranks that say nothing and their nodes first: Xid, link, data loader; then resume "
        "from the last complete checkpoint",
    ),
    "nccl_watchdog": Cause(
        "the NCCL watchdog saw an error that this log does not name",
        "read the logs of all ranks from the minutes before",
    ),
    "nccl_aborted": Cause(
        "another rank ended the communicator", "find the rank that failed first: read all logs"
    ),
    "nccl_remote": Cause(
        "a peer process or its network went away", "find the rank that failed first: read all logs"
    ),
    "nccl_error": Cause(
        "NCCL failed", "run again with NCCL_DEBUG=WARN and read the line before this one"
    ),
    "connection_lost": Cause(
        "a connection to another process was lost", "find the process that ended first"
    ),
    "dataloader_killed": Cause(
        "a data loader worker was killed: the node ran out of memory",
        "`dmesg | grep -i oom`; use fewer workers or more memory; the GPU is not involved",
    ),
    "dataloader_exited": Cause(
        "a data loader worker ended or hung",
        "run with num_workers=0 to see its own error; check the data set's file system",
    ),
    "shm_exhausted": Cause(
        "shared memory is full", "`df /dev/shm`; raise --shm-size or use fewer loader workers"
    ),
    "checkpoint_corrupt": Cause(
        "the checkpoint that it loads is torn",
        "resume from the checkpoint before it; compare sizes and hashes; do not delete older ones",
    ),
    "checkpoint_mismatch": Cause(
        "the checkpoint does not fit the model",
        "compare model configuration and parallel layout with those of the checkpoint",
    ),
    "no_space": Cause("the disk is full", "`df -h` of the checkpoint and log folders; make room"),
    "stale_file": Cause(
        "a network file system went stale", "mount it again; check the storage before a restart"
    ),
    "io_error": Cause(
        "a file system failed or is read-only", "look at the kernel log and the storage"
    ),
    "nan_loss": Cause(
        "the loss is not a number",
        "go back to the checkpoint before it; check data and learning rate",
    ),
    "segfault": Cause(
        "a process crashed in native code",
        "look for a segfault line in the kernel log; compare NCCL, CUDA and driver versions",
    ),
    "bus_error": Cause(
        "bus error: shared memory is full, or a mapped file went away",
        "`df /dev/shm` and --shm-size; look at the data set's file system",
    ),
    "python_exception": Cause("the program failed", "read its traceback; no sign of hardware"),
    "terminated": Cause("it was told to end", "find out who ended it: scheduler or another rank"),
    "child_failed": Cause("a worker failed", "read the log of every rank, standard error included"),
    "task_exit": Cause("a task ended badly", "read the log of that task"),
}


def cause_of(first: TrainError, world_size: int | None, errors: Iterable[TrainError]) -> Cause:
    """The words for one error, made exact by its details."""
    cause = CAUSES[first.kind]
    details = first.details
    if first.kind == "cuda_oom" and _others_hold_memory(first):
        others = details["other_processes"]
        pids = ", ".join(str(o["pid"]) for o in others)
        return Cause(
            f"the GPU is full: process {pids} holds {sum(o['gib'] for o in others):g} GiB",
            "end the left-over process (`nvidia-smi --query-compute-apps=pid,used_memory "
            "--format=csv`), then start again; the batch size is not the problem",
        )
    if first.kind == "nccl_timeout":
        return _hang(first, world_size, errors, cause)
    if first.kind == "python_exception":
        return Cause(f"{details['exception']}: {details['message']}", cause.remedy)
    if "job" in details:
        return Cause(f"{cause.words} (job {details['job']})", cause.remedy)
    return cause


def _others_hold_memory(first: TrainError) -> bool:
    """Claims that other processes hold more of the GPU than this one."""
    others = sum(o["gib"] for o in first.details.get("other_processes", ()))
    return bool(others) and others > float(first.details.get("this_process_gib", 0.0))


def _hang(
    first: TrainError, world_size: int | None, errors: Iterable[TrainError], cause: Cause
) -> Cause:
    details = first.details
    found = list(errors)
    what = f"{details['op']} {details['seq']}" if {"op", "seq"} <= set(details) else "a collective"
    timeout = details.get("timeout_ms")
    after = f" for {timeout / 60000:g} min" if isinstance(timeout, int) else ""
    behind = _behind(found)
    silent = silent_ranks(found, world_size) if world_size else []
    who = f"; rank {behind} is behind the others" if behind is not None else ""
    if silent and behind is None:
        shown = ", ".join(str(rank) for rank in silent[:16])
        who = f"; silent: {shown}" + (" and more" if len(silent) > 16 else "")
    return Cause(f"{what} hung{after}{who}", cause.remedy)


def _behind(errors: list[TrainError]) -> int | None:
    """The one rank whose last work is older than everybody else's."""
    last: dict[int, int] = {}
    for error in errors:
        done, seq = error.details.get("last_completed"), error.details.get("seq")
        waits_for = done + 1 if isinstance(done, int) else seq
        if isinstance(waits_for, int) and error.rank is not None:
            last[error.rank] = min(waits_for, last.get(error.rank, waits_for))
    lowest = min(last.values(), default=0)
    at_lowest = [rank for rank, seq in last.items() if seq == lowest]
    return at_lowest[0] if len(last) > 1 and len(at_lowest) == 1 else None


def silent_ranks(errors: Iterable[TrainError], world_size: int) -> list[int]:
    """Ranks of the job that reported nothing: one of them did not come to the collective."""
    spoke = {e.rank for e in errors}
    return [rank for rank in range(min(world_size, 100_000)) if rank not in spoke]


def gpu_of(error: TrainError) -> int | None:
    """The GPU that an error is about: named by the line, else the local rank for its own kinds."""
    gpu = error.details.get("gpu")
    if isinstance(gpu, int):
        return gpu
    own = error.kind in ("ecc_uncorrectable", "gpu_lost", "illegal_address", "cuda_error")
    return error.said.local_rank if own else None
