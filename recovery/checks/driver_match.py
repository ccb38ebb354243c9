"""Do kernel module, user-space library, CUDA and toolkit fit each other, the profile, the peers?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.agreement import SHARE, agree
from recovery.reading.asked import tool_asked
from recovery.reading.driver import Versions, read_versions
from recovery.reading.smi_findings import of_trouble

_COMMAND = (
    "cat /proc/driver/nvidia/version 2>&1; nvidia-smi 2>&1;"
    " nvcc -V 2>/dev/null || /usr/local/cuda/bin/nvcc -V 2>/dev/null || echo 'nvcc: not found'"
)
_RELOAD = "reload the nvidia modules when the GPUs are idle, or reboot; pin the driver packages"
_INSTALL = "bring the node to the expected version with your image or package tool, then reboot"
_ABOUT = ("driver.match.nvml", "gpu.state.driver-not-loaded", "gpu.state.library-missing")


@dataclass(frozen=True, slots=True)
class Expected:
    """The versions that the profile names; None where it names none."""

    driver: str | None
    cuda: str | None
    nvcc: str | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    names = ("driver_expected", "cuda_expected", "nvcc_expected")
    values = (raw.get(name) for name in names)
    return Expected(*(None if value is None else str(value) for value in values))


def _recognises(printed: Printed) -> bool:
    if "/proc/driver/nvidia/version" in printed.command or "nvcc" in printed.command:
        return True
    if tool_asked(printed.command) not in ("", "smi"):
        return False
    try:
        seen = read_versions(printed)
    except ParseError:
        return False
    if seen.kernel or seen.driver or seen.nvml or seen.nvcc:
        return bool(printed.command) or _is_short(printed)
    return bool(printed.command) and any(t.code in _ABOUT for t in seen.troubles)


def _is_short(printed: Printed) -> bool:
    """A version inside a training's log is not an answer to this question."""
    head = printed.text[:3000]
    return any(w in head for w in ("NVRM version", "nvcc:", "NVIDIA-SMI", "NVSMI LOG", "driver_"))


def _judge(seen: Versions, expected: Expected) -> Verdict:
    found = [of_trouble(trouble) for trouble in seen.troubles if trouble.code in _ABOUT]
    found += _each_other(seen)
    found += _against(seen, expected)
    if not found and not (seen.driver or seen.kernel or seen.nvml):
        found.append(_not_told(seen))
    parts = {
        "driver": seen.driver or seen.kernel or seen.nvml,
        "CUDA up to": seen.cuda,
        "nvcc": seen.nvcc,
    }
    words = ", ".join(f"{name} {version}" for name, version in parts.items() if version)
    compared = "" if expected.driver else "; the profile names no driver version"
    return verdict(found, otherwise=f"{words}{compared}")


def _not_told(seen: Versions) -> Finding:
    trouble = next(iter(seen.troubles), None)
    why = f": {trouble.line!r}" if trouble else ""
    remedy = trouble.remedy if trouble else "cat /proc/driver/nvidia/version on the node"
    return unknown(f"no driver version is told{why}", remedy=remedy, code="driver.match.unknown")


def _each_other(seen: Versions) -> list[Finding]:
    found = []
    if seen.kernel and seen.driver and seen.kernel != seen.driver:
        words = f"the loaded kernel module is {seen.kernel}, nvidia-smi says {seen.driver}"
        found.append(failed(words, remedy=_RELOAD, code="driver.match.module"))
    running = seen.kernel or seen.driver
    if running and seen.nvml and not _begins(running, seen.nvml):
        words = f"the driver is {running}, its library {seen.nvml}"
        found.append(failed(words, remedy=_RELOAD, code="driver.match.nvml"))
    if seen.cuda and seen.nvcc and _major(seen.nvcc) > _major(seen.cuda):
        words = f"nvcc is of CUDA {seen.nvcc}, the driver runs up to {seen.cuda}"
        remedy = "install a newer driver, or use a toolkit of the driver's CUDA version"
        found.append(warned(words, remedy=remedy, code="driver.match.toolkit"))
    return found


def _begins(full: str, short: str) -> bool:
    """Claims that one is the other, perhaps cut to its first parts (580.178 of 580.178.03)."""
    one, other = full.split("."), short.split(".")
    n_common = min(len(one), len(other))
    return one[:n_common] == other[:n_common]


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _against(seen: Versions, expected: Expected) -> list[Finding]:
    told = (
        ("driver", seen.driver or seen.kernel or seen.nvml, expected.driver),
        ("CUDA", seen.cuda, expected.cuda),
        ("nvcc", seen.nvcc, expected.nvcc),
    )
    found = []
    for name, version, wanted in told:
        code = f"driver.match.{name.lower()}"
        if wanted is None or (version is not None and _begins(version, wanted)):
            continue
        if version is None and name == "nvcc" and seen.no_nvcc:
            words = f"no nvcc on the node, {wanted} expected"
            found.append(failed(words, remedy=_INSTALL, code=code))
        elif version is not None:
            words = f"{name} {version}, {wanted} expected"
            found.append(failed(words, remedy=_INSTALL, code=code))
    return found


def _facts(seen: Versions) -> Mapping[str, Any]:
    named = {
        "driver": seen.driver or seen.kernel,
        "kernel_module": seen.kernel,
        "nvml_version": seen.nvml,
        "cuda": seen.cuda,
        "nvcc": seen.nvcc,
    }
    return {name: version for name, version in named.items() if version}


def _compare(nodes: Mapping[str, Versions], share: float = SHARE) -> Mapping[str, Verdict]:
    found: dict[str, list[Finding]] = {}
    parts = {
        "driver": {node: seen.driver or seen.kernel for node, seen in nodes.items()},
        "CUDA": {node: seen.cuda for node, seen in nodes.items()},
        "nvcc": {node: seen.nvcc for node, seen in nodes.items()},
    }
    for name, versions in parts.items():
        common = agree(versions, share=share)
        if common is None:
            continue
        usual = f"{common.n_agree} of {common.n_nodes} nodes have {common.value}"
        for node, version in common.outliers.items():
            words = f"{name} {version}; {usual}"
            finding = failed(words, remedy=_INSTALL, code="driver.match.unlike")
            found.setdefault(node, []).append(finding)
    return {node: verdict(findings, otherwise="alike") for node, findings in found.items()}


DRIVER_MATCH = Check(
    name="driver.match",
    question="Do driver, library, CUDA and toolkit fit each other, the profile and the peers?",
    command=_COMMAND,
    parse=read_versions,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=_recognises,
    compare=_compare,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("driver_expected", "cuda_expected", "nvcc_expected"),
)
