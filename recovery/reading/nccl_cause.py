"""What a failed launch of nccl-tests means, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from recovery.reading.nccl import NcclResult
from recovery.reading.nccl_failure import Fault, LauncherFailure
from recovery.reading.nccl_size import size_word


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a launch has no result: words, remedy, a stable code and the node it names, if any."""

    finding: str
    remedy: str
    code: str
    host: str = ""


def cause_of(result: NcclResult) -> Cause | None:
    """Why the launch did not complete; None when it did."""
    if result.launcher is not None:
        return _of_launcher(result.launcher)
    if result.complete:
        return None
    if result.fault is not None:
        return _of_fault(result.fault, result)
    return _of_silence(result)


def _of_launcher(failure: LauncherFailure) -> Cause:
    words, remedy = _LAUNCHER[failure.kind]
    where = f" on {failure.node}" if failure.node else ""
    detail = f": {failure.text}" if failure.kind in {"library_missing", "scheduler"} else ""
    return Cause(
        f"not started, {words}{where}{detail}",
        f"{remedy}; GPUs and network of the node were not tested",
        f"nccl.launcher.{failure.kind.replace('_', '-')}",
        failure.node,
    )


_LAUNCHER: Mapping[str, tuple[str, str]] = {
    "ssh_host_key": ("ssh host key not trusted", "refresh known_hosts (re-imaged node?)"),
    "ssh_auth": ("ssh login refused", "install the key that mpirun uses between nodes"),
    "ssh_name": ("host name does not resolve", "fix DNS or set mpi_host in the inventory"),
    "ssh_connect": ("ssh cannot connect", "look whether the node is up and sshd runs"),
    "executable_missing": (
        "nccl-tests binary missing",
        "install nccl-tests, or name its path with nccl_tests_dir in the inventory",
    ),
    "no_mpi": ("no mpirun", "install Open MPI, or use `runner: torch`"),
    "library_missing": ("a shared library is missing", "install it, or fix LD_LIBRARY_PATH"),
    "slots": ("mpirun sees too few slots", "check the GPU count of the inventory"),
    "run_as_root": ("mpirun refuses root", "pass --allow-run-as-root, or log in as a user"),
    "scheduler": ("the scheduler refused", "read its message; free the nodes or use mpirun"),
    "daemon": ("mpirun could not start its daemons", "run it by hand, `--mca plm_base_verbose 5`"),
}  # fmt: skip


def _of_fault(fault: Fault, result: NcclResult) -> Cause:
    words, remedy = _FAULTS[fault.kind](fault)
    at = result.body.started_size_bytes
    where = f" at {size_word(at)}" if at and fault.kind in {"timeout", "ib_completion"} else ""
    return Cause(words + where, remedy, f"nccl.{fault.kind.replace('_', '-')}", fault.host)


def _ib_completion(fault: Fault) -> tuple[str, str]:
    port = f"{fault.host} {fault.hca}".strip()
    retry = "retransmission timeout" if fault.status == 12 else f"error status {fault.status}"
    peer = f" (path to {fault.peer})" if fault.peer else ""
    return (
        f"InfiniBand/RoCE {retry} on {port}{peer}",
        f"look at `ibstat` and `ethtool -S` on both ends of {port}: cable, switch port;"
        " for RoCE also GID and PFC",
    )


def _cuda(fault: Fault) -> tuple[str, str]:
    if "not yet initialized" in fault.text:
        return (
            f"CUDA 802 on {fault.host}: fabric manager not running, or GPUs not registered",
            "start nvidia-fabricmanager of the driver's version, then `recover check fabric.state`",
        )
    if "out of memory" in fault.text:
        return (
            f"GPU memory of {fault.host} is full",
            "`nvidia-smi --query-compute-apps=pid,name --format=csv`: end what is left there",
        )
    return (f"CUDA error on {fault.host}: {fault.text}", _READ_KERNEL_LOG)


def _nccl_cuda(fault: Fault) -> tuple[str, str]:
    if "nvls" in fault.file:
        return (
            f"NVLink SHARP set-up failed on {fault.host}: the fabric manager is in a bad state",
            "restart nvidia-fabricmanager with idle GPUs, or reboot; stop-gap NCCL_NVLS_ENABLE=0",
        )
    return (f"CUDA error inside NCCL on {fault.host}: {fault.text}", _READ_KERNEL_LOG)


def _timed_out(fault: Fault) -> tuple[str, str]:
    who = f", said {fault.host}" if fault.host else ""
    return (
        f"the collective hung for {fault.seconds} s{who}",
        "test the nodes in pairs; look at the NICs and GPUs of the node that said so",
    )


_READ_KERNEL_LOG = "read the kernel log of the node for Xid lines: `recover check gpu.xid`"
_FAULTS: Mapping[str, Callable[[Fault], tuple[str, str]]] = {
    "ib_completion": _ib_completion,
    "cuda": _cuda,
    "nccl_cuda": _nccl_cuda,
    "timeout": _timed_out,
    "nccl": lambda f: (f"NCCL failed on {f.host}: {f.text}", "run it again with NCCL_DEBUG=INFO"),
    "nccl_warn": lambda f: (f"NCCL on {f.host}: {f.text}", "run it again with NCCL_DEBUG=INFO"),
    "watchdog": lambda f: ("the collective hung: watchdog", "test the nodes in pairs"),
    "ended": lambda f: (
        f"ended on {f.host} by {f.text}",
        "give it more time, or look which node hangs: test the nodes in pairs",
    ),
    "signal": lambda f: (f"a process crashed: {f.text}", _READ_KERNEL_LOG),
}


def _of_silence(result: NcclResult) -> Cause:
    at = result.body.started_size_bytes
    if at is not None:
        return Cause(
            f"hung at {size_word(at)}: the row began and never ended",
            "test the nodes in pairs with NCCL_DEBUG=INFO; check NICs and MTU",
            "nccl.hang",
        )
    return Cause(
        f"the test did not finish: {len(result.rows)} row(s), no closing summary",
        "look for what ended it (standard error, `dmesg`), then run it again",
        "nccl.incomplete",
    )


def nvls_lost(result: NcclResult, floor_gb_per_s: float) -> bool:
    """Claims that the bandwidth is what an 8-GPU NVSwitch node gives without in-switch reduction.

    Source: stas00/ml-engineering network/README.md: 8 x H200 all_reduce falls from 480 to
    367 GB/s (76 %) when NVLS is off. The floor lies 2 to 10 % below the good value.
    """
    row, devices = result.largest, result.body.devices
    hopper = any(name in d.model for d in devices for name in ("H100", "H200", "H20", "B200"))
    if row is None or len(result.hosts) != 1 or not hopper:
        return False
    return 0.74 <= row.busbw_gb_per_s / floor_gb_per_s <= 0.87
