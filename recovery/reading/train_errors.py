"""The errors that frameworks, CUDA, NCCL, launchers and schedulers write into a training log.

Source: torch c10d and elastic 1.13 to 2.7, NCCL 2.18 to 2.27, CUDA runtime error texts, Slurm
slurmstepd/srun, PyTorch DataLoader and torch.load, issues named in the case files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.reading.trainlog_lines import Said

ECHOES = frozenset(
    {
        "nccl_aborted",
        "nccl_remote",
        "nccl_watchdog",
        "connection_lost",
        "terminated",
        "child_failed",
        "task_exit",
    }
)
"""Kinds that follow from another error whenever there is one."""

STOPS = frozenset({"time_limit", "preempted", "cancelled", "interrupted"})
"""Kinds that end a job without anything being broken."""


@dataclass(frozen=True, slots=True)
class TrainError:
    """One error: its kind, who said it, when, and what the line tells besides."""

    kind: str
    said: Said
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def who(self) -> tuple[object, ...]:
        """What makes two lines one error: the process, or its GPU."""
        detail = self.details.get("gpu") if self.said.rank is None else None
        return self.kind, self.rank, self.said.local_rank, self.said.host, detail

    @property
    def rank(self) -> int | None:
        """The global rank, from the line's prefix or its text."""
        found = self.details.get("rank", self.said.rank)
        return found if isinstance(found, int) else None

    def facts(self) -> dict[str, Any]:
        """What is known of it, by name; what the text does not say is left out."""
        known = {
            "kind": self.kind,
            "rank": self.rank,
            "local_rank": self.said.local_rank,
            "host": self.said.host or None,
            **self.details,
        }
        return {name: value for name, value in known.items() if value is not None}


Details = Callable[[re.Match[str], str], Mapping[str, Any]]


def _none(_match: re.Match[str], _text: str) -> Mapping[str, Any]:
    return {}


def _groups(match: re.Match[str], _text: str) -> Mapping[str, Any]:
    return {
        name: int(value) if value.isdecimal() and len(value) < 16 else value
        for name, value in match.groupdict().items()
        if value
    }


_TO_GIB = {"GiB": 1.0, "MiB": 1 / 1024, "KiB": 1 / 1024**2, "bytes": 1 / 1024**3, "TiB": 1024.0}
_SIZE = r"(\d+(?:\.\d+)?) (GiB|MiB|KiB|TiB|bytes)"


def _size(name: str, pattern: str, text: str) -> dict[str, float]:
    """A size under its name and unit as printed: GiB, or MiB below one."""
    match = re.search(pattern, text)
    if match is None:
        return {}
    if match[2] in ("MiB", "KiB", "bytes"):
        return {f"{name}_mib": float(match[1]) * _TO_GIB[match[2]] * 1024}
    return {f"{name}_gib": float(match[1]) * _TO_GIB[match[2]]}


def _oom(_match: re.Match[str], text: str) -> Mapping[str, Any]:
    gpu = re.search(r"GPU (\d+)(?: has|;)", text)
    others = [
        {"pid": int(m[1]), "gib": float(m[2]) * _TO_GIB[m[3]]}
        for m in re.finditer(rf"Process (\d+) has {_SIZE} memory in use", text)
    ]
    return {
        "gpu": int(gpu[1]) if gpu else None,
        **_size("tried", rf"Tried to allocate {_SIZE}", text),
        **_total(text),
        **_size("free", rf"of which {_SIZE} is free", text),
        **_size("this_process", rf"this process has {_SIZE}", text),
        **({"other_processes": others} if others else {}),
    }


def _total(text: str) -> dict[str, float]:
    return _size("total", rf"total capaci?ty of {_SIZE}", text) or _size(
        "total", rf"{_SIZE} total capacity", text
    )


def _timeout(match: re.Match[str], text: str) -> Mapping[str, Any]:
    rank = re.search(r"\[?Rank (\d+)\]?", text)
    seq = re.search(r"SeqNum=(\d+)", text)
    op = re.search(r"OpType=(\w+)", text)
    limit = re.search(r"Timeout\(ms\)=(\d+)", text)
    return {
        "rank": int(rank[1]) if rank else None,
        "seq": int(seq[1]) if seq else None,
        "op": op[1] if op else None,
        "timeout_ms": int(limit[1]) if limit else None,
    }


def _watchdog(match: re.Match[str], text: str) -> Mapping[str, Any]:
    rank = re.search(r"\bRank (\d+)\]", text)
    done = re.search(r"last completed NCCL work: (-?\d+)", text)
    return {
        "rank": int(rank[1]) if rank else None,
        "last_completed": int(done[1]) if done else None,
    }


def _assert(match: re.Match[str], _text: str) -> Mapping[str, Any]:
    return {"file": match["file"].rpartition("/")[2], "expr": match["expr"]}


def _rank_in(match: re.Match[str], text: str) -> Mapping[str, Any]:
    rank = re.search(r"\bRank (\d+)\]|\bon rank (\d+)", text)
    return {"rank": int(rank[1] or rank[2])} if rank else {}


def _completion(match: re.Match[str], text: str) -> Mapping[str, Any]:
    hca = re.search(r"\bhca (\w+)", text)
    vendor = re.search(r"vendor err (\d+)", text)
    return {
        "peer": match["peer"],
        "status": int(match["status"]) if match["status"] else 12,
        "vendor_err": int(vendor[1]) if vendor else None,
        "hca": hca[1] if hca else None,
    }


def _exception(match: re.Match[str], _text: str) -> Mapping[str, Any]:
    return {"exception": match["name"].rpartition(".")[2], "message": match["message"][:200]}


def _rule(
    kind: str, pattern: str, details: Details = _none
) -> tuple[str, re.Pattern[str], Details]:
    return kind, re.compile(pattern), details


_RULES = (
    # the scheduler
    _rule(
        "time_limit",
        r"\*\*\* (?:JOB"
        r"|STEP) (?P<job>\d+)\S* ON (?P<host>\S+) CANCELLED AT .* DUE TO TIME LIMIT",
        _groups,
    ),
    _rule("time_limit", r"DUE TO TIME LIMIT|reached its time limit|walltime .* exceeded"),
    _rule(
        "preempted",
        r"\*\*\* (?:JOB|STEP) (?P<job>\d+)\S* ON \S+ CANCELLED AT .* DUE TO PREEMPTION",
        _groups,
    ),
    _rule("node_failure", r"DUE TO NODE FAILURE|Node failure on (?P<host>[\w.-]+)", _groups),
    _rule(
        "oom_killed",
        r"[Dd]etected \d+ oom[_-]kill event|cgroup out-of-memory handler|\bOOMKilled\b"
        r"|oom-kill event\(s\)",
    ),
    _rule("evicted", r"node was low on resource: (?P<resource>[\w-]+)|\bEvicted\b", _groups),
    _rule("cancelled", r"\*\*\* (?:JOB|STEP) (?P<job>\d+)\S* ON \S+ CANCELLED AT ", _groups),
    # the GPU
    _rule(
        "ecc_uncorrectable",
        r"uncorrectable (?:NVLink|ECC) error|ECC_UNCORRECTABLE|uncorrectable ECC",
        _rank_in,
    ),
    _rule(
        "gpu_lost",
        r"GPU is lost|device is lost|fallen off the bus|no CUDA-capable device"
        r"|CUDA driver initialization failed",
    ),
    _rule(
        "cuda_oom",
        r"(?:CUDA|HIP) out of memory|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory"
        r"|Cuda failure (?:\d+ )?'out of memory'",
        _oom,
    ),
    _rule(
        "device_assert",
        r"(?P<file>[\w./+-]+\.(?:cu|cuh"
        r"|h)):\d+: .*Assertion [`'](?P<expr>.*?)['`] failed",
        _assert,
    ),
    _rule("device_assert", r"device-side assert triggered"),
    _rule(
        "illegal_address",
        r"illegal memory access was encountered|misaligned address"
        r"|cudaErrorIllegalAddress",
        _rank_in,
    ),
    _rule(
        "cuda_error",
        r"CUDA error: (?P<message>unspecified launch failure|illegal instruction"
        r"|hardware stack error|unknown error|invalid program counter"
        r"|an illegal instruction.*|the launch timed out.*"
        r"|CUDA-capable device.*busy or unavailable|CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+"
        r"|operation not permitted.*|system not yet initialized)",
        _groups,
    ),
    # the network
    _rule(
        "ib_completion",
        r"completion from peer (?P<peer>\S+?) with (?:status=(?:\w+\()?"
        r"|error )(?P<status>\d+)|IBV_WC_RETRY_EXC_ERR",
        _completion,
    ),
    _rule(
        "nccl_timeout",
        r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ms for"
        r"|Collective operation timeout: WorkNCCL"
        r"",
        _timeout,
    ),
    _rule(
        "nccl_watchdog",
        r"detected by watchdog at work|Timeout at NCCL work"
        r"|NCCL watchdog thread terminated|Process group watchdog thread terminated"
        r"|taking (?:the )?entire process down|ProcessGroupNCCL(?:'s)? watchdog (?:hang|got stuck)",
        _watchdog,
    ),
    _rule(
        "nccl_aborted",
        r"NCCL communicator was aborted|NCCL error: .*abort|communicator .* abort",
        _rank_in,
    ),
    _rule(
        "nccl_remote",
        r"remote process exited or there was a network error|ncclRemoteError"
        r"|NCCL error: remote",
        _rank_in,
    ),
    _rule(
        "nccl_error",
        r"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|unhandled (?:system"
        r"|cuda) error",
        _rank_in,
    ),
    _rule(
        "connection_lost",
        r"[Cc]onnection (?:reset|closed) by (?:remote )?peer|TCPStore.*(?:Broken pipe"
        r"|failed)|RendezvousConnectionError|recvValue failed|Broken pipe"
        r"|client socket has timed out|TCPStore\(.*timed out",
    ),
    # the loader, the file system, the checkpoint
    _rule(
        "dataloader_killed",
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<signal>\w+)",
        _groups,
    ),
    _rule(
        "shm_exhausted",
        r"insufficient shared memory|unable to (?:open|mmap|write) .*shm"
        r"|No space left on device.*/dev/shm|unable to write to file </torch_",
    ),
    _rule(
        "dataloader_exited",
        r"DataLoader worker \(pid\(s\) (?P<pids>[\d, ]+)\) exited unexpectedly"
        r"|DataLoader timed out",
        _groups,
    ),
    _rule(
        "checkpoint_corrupt",
        r"PytorchStreamReader failed|failed finding central directory"
        r"|invalid magic number|unexpected EOF, expected"
        r"|[Tt]he file might be corrupted|MetadataIncompleteBuffer"
        r"|Header[Tt]oo(?:Large|Small)|UnpicklingError|EOFError: Ran out of input"
        r"|File is not a zip file|BadZipFile",
    ),
    _rule(
        "checkpoint_mismatch",
        r"Error\(s\) in loading state_dict|[Mm]issing key\(s\) in state_dict"
        r"|size mismatch for ",
    ),
    _rule("no_space", r"No space left on device|Disk quota exceeded|ENOSPC"),
    _rule("stale_file", r"Stale file handle|ESTALE|Transport endpoint is not connected"),
    _rule("io_error", r"\[Errno 5\]|Input/output error|\[Errno 30\]|Read-only file system"),
    _rule(
        "nan_loss",
        r"(?i:\bloss is nan\b|found nan in|nan (?:loss|in local grad norm)"
        r"|loss (?:became|went) nan|non-finite loss)",
    ),
    # how processes end
    _rule("segfault", r"[Ss]egmentation fault|Signal 11 \(SIGSEGV\)"),
    _rule("bus_error", r"^Bus error|: Bus error|Signal 7 \(SIGBUS\)"),
    _rule("interrupted", r"KeyboardInterrupt"),
    _rule(
        "terminated",
        r"SignalException: Process \d+ got signal|closing signal SIG"
        r"|Received Signals\.SIG\w+ death signal|Signal (?:15|6) \(SIG",
    ),
    _rule(
        "child_failed",
        r"ChildFailedError|failed \(exitcode: |terminate called after|^\s*what\(\): ",
    ),
    _rule(
        "task_exit",
        r"^srun: error: \S+: tasks? |mpirun noticed that process|exited on signal"
        r"|exits with return code = -?[1-9]",
    ),
)
# A line without one of these words is no error: most lines of a log, and 40 searches are saved.
_WORDS = (
    "rror", "memory", "imeout", "imed out", "atchdog", "abort", "lost", "fault", "failed", "ailure",
    "signal", "Signal", "kill", "Kill", "CANCELLED", "LIMIT", "limit", "exceed", "xception", "EOF",
    "space", "quota", "ENOSPC", "ESTALE", "tale", "nan", "NaN", "NAN", "finite", "nterrupt",
    "losed", "reset by", "roken", "IBV_WC", "completion", "orrupt", "magic", "missing", "Missing",
    "mismatch", "Header", "Metadata", "not a zip", "BadZip", "read-only", "Read-only", "taking",
    "terminate", "what():", "asks ", "task ", "exited", "bus", "ALLOC_FAILED", "capable", "Stale",
    "ncclRemote", "ncclSystem", "ncclInternal", "ncclUnhandled", "unhandled", "remote", "launch",
    "UnpicklingError", "OOM", "illegal", "misaligned", "SIG", "connected", "PREEMPTION", "assert",
    "Exit", "Warning", "uncorrectable", "ECC_", "exits", "low on", "Evicted", "EXHAUSTED",
)  # fmt: skip
_EXCEPTION = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Warning)): ?(?P<message>.*)"
)
_NOT_EXCEPTIONS = ("Warning",)


def error_in(said: Said, *, in_traceback: bool) -> TrainError | None:
    """The error that one line reports, the most telling reading of it first; None if none."""
    if not any(word in said.text for word in _WORDS):
        return None
    for kind, pattern, details in _RULES:
        match = pattern.search(said.text)
        if match is not None:
            return TrainError(kind, said, details(match, said.text))
    raised = _EXCEPTION.match(said.text.strip()) if in_traceback else None
    if raised is not None and not raised["name"].endswith(_NOT_EXCEPTIONS):
        return TrainError("python_exception", said, _exception(raised, said.text))
    return None
