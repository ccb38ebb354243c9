"""What the rest of the kernel reports: PCIe, memory, CPU, links, file systems, killed programs.

Source: Linux drivers/pci/pcie/aer.c, mm/oom_kill.c, kernel/watchdog.c, kernel/hung_task.c,
arch/x86/kernel/cpu/mce, fs/ext4, fs/xfs, net/sunrpc, drivers/net/ethernet/mellanox/mlx5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from recovery.reading.klog_event import Build, Rule, known, pci_of, whole

_PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"


def _severity(word: str) -> str:
    """``Corrected``, ``Uncorrected (Fatal)`` or ``Uncorrected (Non-Fatal)`` in every spelling."""
    low = word.lower()
    if low.startswith(("corrected", "correctable")):
        return "Corrected"
    non_fatal = "non-fatal" in low or "nonfatal" in low
    return "Uncorrected (Non-Fatal)" if non_fatal else "Uncorrected (Fatal)"


def _aer(match: re.Match[str]) -> Mapping[str, Any]:
    dev = match["dev"] or match["by"]
    return {"aer": _severity(match["word"]), "dev": pci_of(dev)}


def _aer_detail(match: re.Match[str]) -> Mapping[str, Any]:
    return {"aer": _severity(match["word"]), "dev": pci_of(match["by"])}


def _oom_kill(match: re.Match[str]) -> Mapping[str, Any]:
    scope = "memcg" if match["scope"].startswith("Memory cgroup") else "node"
    return {"pid": int(match["pid"]), "process": match["process"], "scope": scope}


def _oom_limit(match: re.Match[str]) -> Mapping[str, Any]:
    job = re.search(r"job_(\d+)", match["rest"])
    pod = re.search(r"pod([0-9a-f][0-9a-f_-]{30,40})", match["rest"])
    task = re.search(r"\btask=(?P<task>.*?),pid=(?P<pid>\d+)", match["rest"])
    return known(
        scope="memcg" if match["kind"] == "MEMCG" else "node",
        job=job[1] if job else (pod[1].replace("_", "-") if pod else None),
        pid=int(task["pid"]) if task else None,
        process=task["task"] if task else None,
    )


def _segfault(match: re.Match[str]) -> Mapping[str, Any]:
    lib = re.search(r"\bin ([\w.+/-]+?)\[", match["rest"])
    return known(process=match["process"], pid=whole(match["pid"]), lib=lib[1] if lib else None)


def _link_rdma(match: re.Match[str]) -> Mapping[str, Any]:
    up = match["state"].upper() == "ACTIVE"
    return {"pci": pci_of(match["pci"]), "name": match["name"], "up": up, "rdma": True}


def _link_net(match: re.Match[str]) -> Mapping[str, Any]:
    up = match["state"].lower() == "up"
    return {"pci": pci_of(match["pci"]), "name": match["name"], "up": up, "rdma": False}


def _named(*names: str) -> Build:
    def build(match: re.Match[str]) -> Mapping[str, Any]:
        found = match.groupdict()
        return known(**{name: found.get(name) for name in names})

    return build


def _worst(level: str, **values: object) -> Build:
    def build(match: re.Match[str]) -> Mapping[str, Any]:
        found = {k: v for k, v in match.groupdict().items() if v}
        return {"level": level, **found, **values}

    return build


def _rule(kind: str, pattern: str, build: Build) -> Rule:
    return kind, re.compile(pattern), build


HOST_RULES: tuple[Rule, ...] = (
    _rule(
        "aer",
        rf"\S+ (?P<by>{_PCI}): (?:AER|DPC): (?:Multiple )?(?P<word>Correct(?:ed|able)"
        rf"|Uncorrect(?:ed|able) \([\w-]+\)) error (?:message )?received"
        rf"(?::| from)? ?(?:id=\S+|(?P<dev>{_PCI}))?",
        _aer,
    ),
    _rule(
        "aer_detail",
        rf"\S+ (?P<by>{_PCI}): (?:AER: )?PCIe Bus Error: severity=(?P<word>Correct(?:ed|able)"
        r"|Uncorrect(?:ed|able) \([\w-]+\))",
        _aer_detail,
    ),
    _rule(
        "aer_name",
        rf"\S+ (?P<by>{_PCI}): (?:AER: )?\s*\[ ?\d+\] (?P<error>\w+)\s*(?P<first>\(First\))?\s*$",
        _named("error", "first"),
    ),
    _rule("pcie_down", rf"pcieport (?P<dev>{_PCI}): pciehp: Slot\S*: "
          r"(?:Link Down|Card not present)", _worst("fail")),
    _rule("oom_limit", r"oom-kill:constraint=CONSTRAINT_(?P<kind>\w+),(?P<rest>.*)", _oom_limit),
    _rule(
        "oom_kill",
        r"(?P<scope>Memory cgroup out of memory|Out of memory)[^:]{0,60}: "
        r"Kill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]*)\)",
        _oom_kill,
    ),
    _rule(
        "segfault",
        r"(?P<process>[^\[\]]{1,64})\[(?P<pid>\d+)\]: segfault at (?P<rest>.*)",
        _segfault,
    ),
    _rule(
        "segfault",
        r"traps: (?P<process>[^\[\]]{1,64})\[(?P<pid>\d+)\] "
        r"(?:general protection|trap )(?P<rest>.*)",
        _segfault,
    ),
    _rule(
        "link",
        rf"mlx\d_(?:core|ib) (?P<pci>{_PCI}):? (?P<name>\S+?):? "
        r"Port: \d+ Link (?P<state>DOWN|ACTIVE)",
        _link_rdma,
    ),
    _rule(
        "link",
        rf"[a-z]\w+ (?P<pci>{_PCI}):? (?P<name>[a-z]\S*?)(?: \([^)]*\))?: "
        r"(?:NIC )?Link (?:is )?(?P<state>[Uu]p|[Dd]own)\b",
        _link_net,
    ),
    _rule(
        "nic",
        rf"mlx5_core (?P<dev>{_PCI}):? .*(?:health compromised|device's health|Fatal error|"
        r"assert_var|mlx5_pci_err_detected|error_sw_reset|firmware internal error)",
        _worst("fail"),
    ),
    _rule(
        "nic",
        rf"mlx5_core (?P<dev>{_PCI}):? .*(?:timeout\. Will cause a leak|"
        r"Port module event\[error\]|High [Tt]emperature|insufficient power)",
        _worst("warn"),
    ),
    _rule("mce", r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: .*(?:severity: (?:fatal|recoverable)"
          r"|Machine Check Exception|Uncorrected|Fatal error)", _worst("fail")),
    _rule("mce", r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: .*(?:severity: corrected"
          r"|Machine check events logged|CPU \d+: Machine Check: \d)", _worst("warn")),
    _rule("mce", r"EDAC .*?: \d+ UE ", _worst("fail")),
    _rule("mce", r"EDAC .*?: (?:\d+ CE |CE )", _worst("warn")),
    _rule("mce", r"Memory failure: 0x[0-9a-f]+: ", _worst("fail")),
    _rule("thermal", r"(?:mce: )?CPU\d+: (?:Core|Package) temperature (?:is )?above threshold",
          _worst("warn")),
    _rule("thermal", r"thermal \S+: critical temperature reached", _worst("fail")),
    _rule("lockup", r"(?:watchdog: )?BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<stuck>\d+)s",
          _worst("fail", what="soft lock-up")),
    _rule("lockup", r"(?:NMI )?watchdog: (?:Watchdog detected hard LOCKUP|BUG: hard)",
          _worst("fail", what="hard lock-up")),
    _rule("lockup", r"rcu: (?:INFO: )?rcu\w* (?:self-)?detected stall"
          r"|rcu: INFO: rcu\w* .*stalls? on",
          _worst("warn", what="RCU stall")),
    _rule("lockup", r"INFO: task (?P<process>.{1,32}?):(?P<pid>\d+) blocked for more than ",
          _worst("warn", what="hung task")),
    _rule("panic", r"Kernel panic - not syncing|Oops: |BUG: unable to handle|kernel BUG at "
          r"|general protection fault", _worst("fail")),
    _rule("fs", r"EXT4-fs error \(device (?P<dev>[^)]+)\)", _worst("fail")),
    _rule("fs", r"(?:EXT4-fs|BTRFS|XFS|F2FS).{0,80}?"
          r"(?:Remounting filesystem read-only|forced readonly)",
          _worst("fail")),
    _rule("fs", r"XFS \((?P<dev>[^)]+)\): (?:.*[Cc]orruption"
          r"|(?:[Mm]etadata|[Ll]og) I/O [Ee]rror|Internal error"
          r"|.*[Ss]hutting down filesystem|Filesystem has been shut down)",
          _worst("fail")),
    _rule("fs", r"BTRFS (?:error|critical) \(device (?P<dev>[^)]+)\)", _worst("fail")),
    _rule("fs", r"EXT4-fs warning \(device (?P<dev>[^)]+)\)|LustreError: ", _worst("warn")),
    _rule("nfs_lost", r"nfs: server (?P<server>\S+) not responding", _named("server")),
    _rule("nfs_back", r"nfs: server (?P<server>\S+) OK", _named("server")),
    _rule("disk", r"(?:(?:blk_update_request|print_req_error): )?"
          r"(?:critical medium|I/O) error, dev (?P<dev>\w+)", _worst("fail")),
    _rule("disk", r"Buffer I/O error on dev(?:ice)? (?P<dev>[\w-]+)", _worst("fail")),
    _rule("disk", r"nvme (?P<dev>nvme\d+): (?:I/O \d+ .*timeout|controller is down|Device not ready"
          r"|Removing after probe failure)", _worst("fail")),
    _rule("rate_limited", r"(?:\S+: |net_ratelimit: |__ratelimit: )?\d+ callbacks suppressed",
          _named()),
    _rule("linux", r"Linux version \S+", _named()),
)  # fmt: skip
"""In order; the first that fits a message decides what it is."""
