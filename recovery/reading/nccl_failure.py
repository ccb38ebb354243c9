"""Why a launch of nccl-tests failed: the first cause in its text, not the echoes after it.

Source: NVIDIA/nccl-tests ``src/common.h`` (TESTCHECK, NCCLCHECK, CUDACHECK), NCCL
``transport/net_ib.cc`` and ``transport/nvls.cc``, the banners of Open MPI 4.1 and 5.0, ssh(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The first error: its kind, the node that said so, and what it named.

    Kinds: ``ib_completion``, ``nccl_cuda``, ``nccl_warn``, ``nccl``, ``cuda``, ``timeout``,
    ``watchdog``, ``signal``, ``ended``. ``gpu`` is None where several GPUs said the same.
    """

    kind: str
    host: str = ""
    gpu: int | None = None
    text: str = ""
    file: str = ""
    status: int | None = None
    vendor_err: int | None = None
    hca: str = ""
    peer: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherFailure:
    """The launcher could not start the test: nothing was learned about GPUs or network.

    Kinds: ``ssh_host_key``, ``ssh_auth``, ``ssh_connect``, ``ssh_name``, ``executable_missing``,
    ``no_mpi``, ``library_missing``, ``slots``, ``run_as_root``, ``scheduler``, ``daemon``.
    """

    kind: str
    node: str = ""
    n_failed: int | None = None
    text: str = ""


_WARN = re.compile(
    r"(?P<host>[^\s:\]]+):\d+:\d+ \[(?P<gpu>-?\d+)\] (?P<file>\S+?):\d+ NCCL WARN (?P<text>.*)$"
)
_WARN_BARE = re.compile(r"(?P<host>[^\s:\]]+):\d+:\d+ \[(?P<gpu>-?\d+)\] NCCL WARN (?P<text>.*)$")
_COMPLETION = re.compile(
    r"completion from peer (?P<peer>[^\s<]+)(?:<\d+>)? with status=(?:\w+\()?(?P<status>\d+)"
    r".*?vendor err (?P<vendor>\d+)"
)
_HCA = re.compile(r"\bhca (\S+)")
_CUDA = re.compile(r"Cuda failure (?:\d+ )?'(.*?)'", re.IGNORECASE)
_TEST = re.compile(
    r"(?:^|\s|-1)(?!-1)(?P<host>[^\s:]+): Test (?P<what>NCCL|CUDA) failure"
    r" (?P<file>\S+?):\d+ '(?P<text>[^']*)"
)
_TIMEOUT = re.compile(r"(?:^|\s|-1)(?!-1)(?P<host>[^\s:]+?): Test timeout \((?P<seconds>\d+)s\)")
_WATCHDOG = re.compile(r"Watchdog caught collective operation timeout.*?(?P<text>\w*OpType=\w+)?")
_SIGNAL = re.compile(
    r"on node (?P<host>\S+) exited on signal \d+ \((?P<text>[^)]*)\)"
    r"|(?P<bare>Segmentation fault|Bus error)"
)
_TIME_LIMIT = re.compile(r"(?:STEP|JOB) \S+ ON (?P<host>\S+) CANCELLED AT \S+ DUE TO TIME LIMIT")
_TASK = re.compile(
    r"^srun: error: (?P<host>[^\s:]+): tasks? [\d,-]+: "
    r"(?P<text>Killed|Terminated|Aborted|Out Of Memory|Bus error|Segmentation fault)"
)


def first_fault(lines: Sequence[str]) -> Fault | None:
    """The first error that the test itself reported; None when there is none."""
    faults = [fault for line in lines if (fault := _fault_in(line)) is not None]
    if not faults:
        return None
    first = faults[0]
    gpus = {fault.gpu for fault in faults if (fault.kind, fault.text) == (first.kind, first.text)}
    return _without_gpu(first) if len(gpus) > 1 else first


def _without_gpu(fault: Fault) -> Fault:
    return Fault(kind=fault.kind, host=fault.host, text=fault.text, file=fault.file)


def _fault_in(line: str) -> Fault | None:
    return next((fault for read in _READERS if (fault := read(line)) is not None), None)


def _warning(line: str) -> Fault | None:
    match = _WARN.search(line) or _WARN_BARE.search(line)
    if match is None:
        return None
    found = match.groupdict()
    host, text, file = found["host"], found["text"].strip(), found.get("file") or ""
    gpu = int(found["gpu"])
    if completion := _COMPLETION.search(text):
        hca = _HCA.search(text)
        return Fault(
            kind="ib_completion",
            host=host,
            gpu=gpu,
            status=int(completion["status"]),
            vendor_err=int(completion["vendor"]),
            hca=hca.group(1) if hca else "",
            peer=completion["peer"],
        )
    if cuda := _CUDA.search(text):
        return Fault(kind="nccl_cuda", host=host, gpu=gpu, text=cuda.group(1), file=file)
    return Fault(kind="nccl_warn", host=host, gpu=gpu, text=text, file=file)


def _test_failure(line: str) -> Fault | None:
    match = _TEST.search(line)
    if match is None:
        return None
    text = match["text"].strip(" /")
    return Fault(kind=match["what"].lower(), host=match["host"], text=text)


def _timeout(line: str) -> Fault | None:
    match = _TIMEOUT.search(line)
    if match is None:
        return None
    return Fault(kind="timeout", host=match["host"], seconds=int(match["seconds"]))


def _watchdog(line: str) -> Fault | None:
    return Fault(kind="watchdog", text=line.strip()[:200]) if _WATCHDOG.search(line) else None


def _signal(line: str) -> Fault | None:
    match = _SIGNAL.search(line)
    if match is None:
        return None
    return Fault(kind="signal", host=match["host"] or "", text=match["text"] or match["bare"])


def _ended(line: str) -> Fault | None:
    if match := _TIME_LIMIT.search(line):
        return Fault(kind="ended", host=match["host"], text="the scheduler's time limit")
    match = _TASK.search(line)
    if match is None:
        return None
    return Fault(kind="signal", host=match["host"], text=f"{match['text']} on {match['host']}")


_READERS: tuple[Callable[[str], Fault | None], ...] = (
    _warning,
    _test_failure,
    _timeout,
    _watchdog,
    _signal,
    _ended,
)


@dataclass(frozen=True, slots=True)
class _Sign:
    kind: str
    pattern: re.Pattern[str]


def _sign(kind: str, pattern: str) -> _Sign:
    return _Sign(kind, re.compile(pattern))


# The order is that of causes: a refused key also ends in "unable to reliably start daemons".
_SIGNS = (
    _sign("ssh_host_key", r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED"),
    _sign("ssh_auth", r"Permission denied \((?:publickey|gssapi|password|keyboard)"),
    _sign("ssh_name", r"Could not resolve hostname (?P<node>[^\s:]+)"),
    _sign(
        "ssh_connect",
        r"connect to host (?P<node>\S+) port \d+: (?:Connection (?:refused|timed out)|No route)",
    ),
    _sign("run_as_root", r"(?:mpirun|prterun|mpiexec) has detected an attempt to run as root"),
    _sign("no_mpi", r"(?:mpirun|mpiexec|prted|orted|srun): (?:command )?not found"),
    _sign("library_missing", r"error while loading shared libraries: (?P<text>\S+?):"),
    _sign(
        "executable_missing",
        r"could not (?:access|find)[ \w]*$|could not access\s+or execute an executable"
        r"|_perf: (?:command )?not found|execve\(\): \S*_perf: No such file|_perf: No such file",
    ),
    _sign("slots", r"[Tt]here are not enough slots available"),
    _sign("scheduler", r"^srun: error: "),
    _sign("daemon", r"(?:ORTE|PRTE) (?:was unable to reliably start|has lost communication)"),
)
_NODES = tuple(
    re.compile(pattern)
    for pattern in (r"target node:\s+(\S+)", r"^\s*Node:\s+(\S+)", r"[Rr]emote host:\s+(\S+)")
)
_FAILED = re.compile(r"^(\d+) total processes failed to start")


def launcher_failure(lines: Sequence[str]) -> LauncherFailure | None:
    """Why the launcher could not start the test; None when none of its banners is there."""
    for sign in _SIGNS:
        for line in lines:
            if match := sign.pattern.search(line):
                named = match.groupdict()
                return LauncherFailure(
                    kind=sign.kind,
                    node=named.get("node") or _named_node(lines),
                    n_failed=_n_failed(lines),
                    text=named.get("text") or line.strip()[:200],
                )
    return None


def _named_node(lines: Iterable[str]) -> str:
    found = (pattern.search(line) for pattern in _NODES for line in lines)
    return next((match.group(1) for match in found if match), "")


def _n_failed(lines: Iterable[str]) -> int | None:
    found = (_FAILED.search(line) for line in lines)
    return next((int(match.group(1)) for match in found if match), None)
