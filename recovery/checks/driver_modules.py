"""Are the kernel modules loaded that GPUs, and GPUDirect between GPU and HCA, need?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import flag
from recovery.reading.sections import asking, read_sections

_PEER = ("nvidia_peermem", "nv_peer_mem")
_COPY = ("gdrdrv",)
_HCA = ("ib_core", "mlx5_ib", "mlx5_core", "ib_uverbs")
_LINE = re.compile(r"(\w+) \d+ \d+ \S+ (?:Live|Loading|Unloading) 0x[0-9a-f]+.*")
_VERSION = re.compile(r"/sys/module/(\w+)/version:(\S+)")
_LOAD = "modprobe {name}, and in /etc/modules-load.d; dmesg says why it does not load"
_DIRECT = (
    "modprobe nvidia_peermem after the HCA's modules, and in /etc/modules-load.d (or use dma-buf:"
    " open kernel modules and NCCL 2.18 or newer); without it NCCL copies through host memory"
)
_SAME = "reload the modules of the installed driver with the GPUs idle, or reboot"


@dataclass(frozen=True, slots=True)
class Modules:
    """Names of all loaded modules, and versions of those that tell one."""

    loaded: frozenset[str]
    versions: Mapping[str, str]


def _parse(printed: Printed) -> Modules:
    sections = read_sections(printed, bare="modules")
    lines = sections.get("modules") or ()
    found = [_LINE.match(line) for line in lines]
    if not lines or any(match is None for match in found):
        odd = next((line for line, m in zip(lines, found, strict=True) if m is None), "")
        raise ParseError(f"no list of modules: {odd[:60]!r}", remedy="cat /proc/modules")
    told = [_VERSION.fullmatch(line.strip()) for line in sections.get("versions") or ()]
    return Modules(
        loaded=frozenset(match[1] for match in found if match),
        versions={match[1]: match[2] for match in told if match},
    )


def _judge(seen: Modules, direct: bool | None) -> Verdict:  # noqa: FBT001 - a check's judge
    found: list[Finding] = []
    if "nvidia" not in seen.loaded:
        remedy = _LOAD.format(name="nvidia")
        found.append(failed("nvidia is not loaded", remedy=remedy, code="driver.modules.absent"))
    elif "nvidia_uvm" not in seen.loaded:
        words = "nvidia_uvm is not loaded yet: the first CUDA program does it, if it may"
        remedy = _LOAD.format(name="nvidia_uvm")
        found.append(warned(words, remedy=remedy, code="driver.modules.uvm"))
    has_hca = bool(seen.loaded & set(_HCA))
    peer = next((name for name in _PEER if name in seen.loaded), None)
    if peer is None and (direct or (direct is None and has_hca)):
        make = failed if direct else warned
        words = "no nvidia_peermem beside the HCA's modules: no GPUDirect RDMA by it"
        found.append(make(words, remedy=_DIRECT, code="driver.modules.gpudirect"))
    found += _mixed(seen)
    shown = ("nvidia", "nvidia_uvm", *_PEER, *_COPY)
    return verdict(found, otherwise=f"{', '.join(n for n in shown if n in seen.loaded)} loaded")


def _mixed(seen: Modules) -> list[Finding]:
    """The driver's own modules have one version; nv_peer_mem and gdrdrv count their own way."""
    own = {name: v for name, v in seen.versions.items() if name.startswith("nvidia")}
    if len(set(own.values())) < 2:
        return []
    listed = ", ".join(f"{name} {version}" for name, version in own.items())
    return [failed(f"modules of two drivers: {listed}", remedy=_SAME, code="driver.modules.mixed")]


def _alike(seen: Modules) -> Mapping[str, str | None]:
    told = {f"module {name}": version for name, version in seen.versions.items()}
    return {
        **told,
        "GPUDirect": "+".join(n for n in (*_PEER, *_COPY) if n in seen.loaded) or "none",
    }


def _facts(seen: Modules) -> Mapping[str, Any]:
    return {
        "module_versions": dict(seen.versions),
        "gpudirect": [name for name in (*_PEER, *_COPY) if name in seen.loaded],
    }


DRIVER_MODULES = Check(
    name="driver.modules",
    question="Are the kernel modules loaded that GPUs and GPUDirect need, all of one driver?",
    command=asking(
        {
            "modules": "cat /proc/modules",
            "versions": "grep -H . /sys/module/nvidia*/version /sys/module/nv_peer_mem/version"
            " /sys/module/gdrdrv/version /sys/module/mlx5_core/version 2>/dev/null",
        }
    ),
    parse=_parse,
    expect=lambda raw: flag(raw, "gpudirect"),
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=told_by(
        r"/proc/modules|/sys/module/",
        begins=r"## modules|\w+ \d+ \d+ (?:-|[\w,]+,) (?:Live|Loading|Unloading) 0x",
    ),
    needs="the kernel's /proc/modules",
    expects=("gpudirect",),
)
