"""What the NVIDIA driver reports in the kernel log: Xid, SXid, lost GPUs, failed start.

Source: NVRM lines of drivers 340 to 580, leptonai/gpud test data, NVIDIA/NVSentinel#155.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from recovery.reading.klog_event import Rule, known, pci_of, whole

_PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_PID = re.compile(r"pid=(?:'?<unknown>'?|'?(?P<pid>\d+)'?)(?:, |$)")
_NAME = re.compile(r"name=(?:'?<unknown>'?|(?P<name>.*?))(?:, |$)")
_NVLINK5 = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]+)\s+(?P<word>Fatal|Non-?[Ff]atal)\s+XC ?(?P<xc>-?\d+)\s+"
    r"i ?(?P<instance>-?\d+)\s+Link (?P<link>-?\d+)"
    r"(?: [(\[](?P<intr>0x[0-9a-fA-F]+)(?: (?P<status>0x[0-9a-fA-F]+))?)?"
)
_CAUSED = re.compile(r"caused by (?:a )?previous Xid (\d+)")
_RECOVERY = re.compile(r"recovery action changed from .*? to \S+ \((?P<action>[^)]*)\)")
_LINK = re.compile(r"\blink (?P<link>\d+)\b", re.IGNORECASE)
_SM = re.compile(r"\(GPC (\d+), TPC (\d+), SM (\d+)\)")


def _xid(match: re.Match[str]) -> Mapping[str, Any]:
    pid, name = _PID.match(match["rest"]), None
    rest = match["rest"][pid.end() :] if pid else match["rest"]
    if name := _NAME.match(rest):
        rest = rest[name.end() :]
    caused = _CAUSED.search(rest)
    recovery = _RECOVERY.search(rest)
    sm = _SM.search(rest)
    return known(
        xid=int(match["code"]),
        pci=pci_of(match["pci"]),
        pid=whole(pid["pid"]) if pid else None,
        process=name["name"] if name else None,
        caused_by=whole(caused[1]) if caused else None,
        recovery_action=recovery["action"] if recovery else None,
        sm="/".join(sm.groups()) if sm else None,
        **_link(int(match["code"]), rest),
    )


def _link(code: int, rest: str) -> dict[str, Any]:
    """Unit, severity and link of an NVLink 5 line; the link of a 74 or 137."""
    if decoded := _NVLINK5.search(rest):
        return known(
            unit=decoded["unit"],
            severity=decoded["word"].replace("Non-f", "Nonf"),
            link=int(decoded["link"]),
            intr_info=decoded["intr"],
            error_status=decoded["status"],
        )
    link = _LINK.search(rest) if code in (74, 137) else None
    return {"link": int(link["link"])} if link else {}


def _sxid(match: re.Match[str]) -> Mapping[str, Any]:
    rest = match["rest"]
    severity = re.match(r"(Fatal|Non-?fatal)\b", rest, re.IGNORECASE)
    number = re.match(r"Severity (\d+) Engine instance (\d+)", rest)
    link = _LINK.search(rest)
    word = None
    if severity:
        word = "Fatal" if severity[1].lower() == "fatal" else "Non-fatal"
    elif number:
        word = "Fatal" if number[1] == "1" else "Non-fatal"
    return known(
        sxid=int(match["code"]),
        pci=pci_of(match["pci"]),
        switch=int(match["switch"]),
        link=int(link["link"]) if link else (int(number[2]) if number else None),
        severity=word,
        detail=None if severity else True,
    )


def _lost(match: re.Match[str]) -> Mapping[str, Any]:
    return {"kind": "gpu_lost", "pci": pci_of(match["pci"]), "equivalent_xid": 79}


def _probe(match: re.Match[str]) -> Mapping[str, Any]:
    return {"kind": "gpu_probe_failed", "pci": pci_of(match["pci"])}


def _of_gpu(match: re.Match[str]) -> Mapping[str, Any]:
    return {"pci": pci_of(match["pci"])}


def _nothing(_match: re.Match[str]) -> Mapping[str, Any]:
    return {}


def _number(match: re.Match[str]) -> Mapping[str, Any]:
    return {"n": int(match["n"])}


def _version(match: re.Match[str]) -> Mapping[str, Any]:
    return {"version": match["version"]}


OF_THE_DRIVER = frozenset({"xid", "sxid", "xid_unreadable", "gpu_probe_failed", "driver_refused"})
"""Kinds of events that end with the driver's next load, for it resets GPUs and switches."""

GPU_RULES: tuple[Rule, ...] = (
    (
        "xid",
        re.compile(
            rf"NVRM: Xid \((?:PCI:)?(?P<pci>{_PCI})[^)]{{0,40}}\): "
            r"(?P<code>\d{1,4}), ?(?P<rest>.*)"
        ),
        _xid,
    ),
    ("xid_unreadable", re.compile(r"NVRM: Xid\b"), _nothing),
    (
        "sxid",
        re.compile(
            rf"nvidia-nvswitch(?P<switch>\d+): SXid \((?:PCI:)?(?P<pci>{_PCI})\): "
            r"(?P<code>\d{1,6}), (?P<rest>.*)"
        ),
        _sxid,
    ),
    ("xid_unreadable", re.compile(r"nvidia-nvswitch\d+: SXid\b"), _nothing),
    (
        "gpu_named",
        re.compile(rf"NVRM: The NVIDIA GPU (?P<pci>{_PCI})"),
        _of_gpu,
    ),
    ("fallen", re.compile(r"NVRM: (?:installed in this system has )?fallen off the bus"), _nothing),
    (
        "gpu_lost",
        re.compile(rf"NVRM: GPU (?:at )?(?:PCI:)?(?P<pci>{_PCI})(?::| ).*fallen off the bus"),
        _lost,
    ),
    (
        "gpu_probe_failed",
        re.compile(
            rf"NVRM: GPU (?:at )?(?:PCI:)?(?P<pci>{_PCI}): ?"
            r".*(?:RmInitAdapter|rm_init_adapter) failed"
        ),
        _probe,
    ),
    (
        "gpu_probe_failed",
        re.compile(
            rf"nvidia:? (?:probe of )?(?P<pci>{_PCI})(?:: probe with driver nvidia)? "
            r"failed with error"
        ),
        _probe,
    ),
    (
        "probe_total",
        re.compile(r"NVRM: The NVIDIA probe routine failed for (?P<n>\d{1,3}) device"),
        _number,
    ),
    (
        "driver_refused",
        re.compile(
            r"NVRM: (?:API mismatch|RmInitAdapter failed|None of the NVIDIA (?:graphics adapters|"
            r"devices) were initialized|No NVIDIA GPU found)"
        ),
        _nothing,
    ),
    ("driver_begins", re.compile(r"nvidia-nvlink: Nvlink Core is being initialized"), _nothing),
    (
        "driver_loaded",
        re.compile(
            r"NVRM: loading NVIDIA UNIX .*?Kernel Module.*?  (?P<version>\d+\.\d+(?:\.\d+)?)"
        ),
        _version,
    ),
    (
        "rate_limited",
        re.compile(r"NVRM: (?:Rate limiting|\d+ (?:messages?|callbacks) suppressed)"),
        _nothing,
    ),
    (
        "peermem_noise",
        re.compile(r"nvidia[-_]peermem nv_get_p2p_free_callback:\d+ ERROR"),
        _nothing,
    ),
)
"""In order; the first that fits a message decides what it is."""
