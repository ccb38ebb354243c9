"""The kernel log as facts: what happened since the last boot, and how far the text reaches.

Lines come one by one and only events are kept, so a log of any size needs bounded memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import is_filtered, tool_asked
from recovery.reading.klog_event import KernelEvent, read_by
from recovery.reading.klog_gpu import GPU_RULES, OF_THE_DRIVER
from recovery.reading.klog_host import HOST_RULES
from recovery.reading.klog_join import Joiner, LinkHistory
from recovery.reading.klog_lines import Line, undress, undress_all, without_collector
from recovery.reading.once import once
from recovery.reading.plain import ends_with_newline

KEPT_OF_A_KIND = 1000
"""Events of one kind and code that are kept with their line; all are counted."""

KERNEL_LOG_COMMAND = (
    "dmesg --time-format=iso 2>/dev/null || dmesg || journalctl -k -b -o short-iso --no-pager"
)
"""The exact line that checks of the kernel log run: the ring buffer first, it needs no disk."""

_RULES = (*GPU_RULES, *HOST_RULES)
_AT_LOAD = frozenset({"gpu_probe_failed", "driver_refused"})
_BATCH = 64
_QUICK = (
    "NVRM", "nvidia", "pcie", "AER", "DPC", "Bus Error", "(First)", "oom", "ut of memory",
    "segfault", "traps:", "Link ", "Hardware Error", "EDAC", "Memory failure", "temperature",
    "lockup", "LOCKUP", "stall", "blocked for", "panic", "Oops", "BUG", "protection fault",
    "EXT4-fs", "XFS", "BTRFS", "Lustre", "nfs: server", "I/O", "nvme", "mlx5", "uppressed",
    "Linux version", "-- ", "fallen off", "not permitted", "No entries",
)  # fmt: skip
# Lines without one of these words cannot be an event: they are not taken apart.
_WORTH = re.compile("|".join(re.escape(word) for word in _QUICK))
_REFUSED = re.compile(
    r"read kernel buffer failed|Operation not permitted|Permission denied|must be root|"
    r"not seeing messages from other users|No journal files were (?:found|opened)|-- No entries --|"
    r"command not found|No such file or directory"
)
_SUBSYSTEM = re.compile(r"(?:NVRM:|nvidia[-\w]*:|nvidia-nvswitch\d+:|mlx\d_core |pcieport )")
_LOOKED_AT_WHOLE = 200


@dataclass(frozen=True, slots=True)
class KernelLog:
    """What one kernel log says since the last boot that it shows.

    ``from_boot`` tells that it reaches back to the boot; ``driver_seen`` that the NVIDIA driver
    wrote to it at all, so that its silence means something. ``earlier`` counts what was there
    before the last boot or reload of the driver, by code. ``cut`` tells that the last line is
    not whole.
    """

    events: tuple[KernelEvent, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    xid_counts: Mapping[int, int] = field(default_factory=dict)
    links: tuple[LinkHistory, ...] = ()
    earlier: Mapping[int, int] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    n_kernel_lines: int = 0
    n_boots: int = 0
    first_since_boot_s: float | None = None
    from_boot: bool = False
    driver_seen: bool = False
    driver_version: str = ""
    n_failed_probes: int | None = None
    refused: str = ""
    cut: bool = False
    filtered: bool = False

    def of(self, *kinds: str) -> tuple[KernelEvent, ...]:
        """The events of these kinds, in the order of the log."""
        return tuple(e for e in self.events if e.kind in kinds)


def read_kernel_log(lines: Iterable[str]) -> KernelLog:
    """The facts of a log whose lines come one by one, in bounded memory."""
    reader = _Reader()
    for line in undress_all(_prefiltered(lines)):
        reader.take(line)
    return reader.result()


@once
def parse_kernel_log(printed: Printed) -> KernelLog:
    """The facts of what ``dmesg``, ``journalctl -k`` or a search in a log file printed.

    Raises:
        ParseError: no line of it is the kernel's, with what the tool said instead.
    """
    lines = without_collector(printed.text.split("\n"))
    found = read_kernel_log([*lines, *printed.error_text.split("\n")])
    if found.n_kernel_lines == 0:
        said = found.refused or f"no line of {len(printed.text)} characters is the kernel's"
        raise ParseError(
            f"the kernel log was not read: {said}",
            remedy="run `sudo dmesg` or `sudo journalctl -k -b` on the node",
        )
    cut = not ends_with_newline(printed.text) and bool(printed.text)
    failed = printed.exit_status not in (0, None)
    return _with(found, cut=cut, filtered=is_filtered(printed.command) or failed)


def is_kernel_log(printed: Printed) -> bool:
    """Claims that the command asks for the kernel log or, naming no tool, that the text is one."""
    asked = tool_asked(printed.command)
    if asked:
        return asked == "klog"
    return looks_like_kernel_log(printed.text)


def looks_like_kernel_log(text: str) -> bool:
    """Claims that lines near the beginning bear the kernel log's own stamps or subsystems."""
    head = without_collector(text[:65536].split("\n")[:_LOOKED_AT_WHOLE])
    filled = [line for line in head if line.strip()]
    n_kernel = sum(_is_kernels(undress(line)) for line in filled)
    return n_kernel > 0 and n_kernel * 4 >= len(filled)


def _with(log: KernelLog, *, cut: bool, filtered: bool) -> KernelLog:
    values = {name: getattr(log, name) for name in KernelLog.__slots__}
    return KernelLog(**{**values, "cut": cut, "filtered": filtered})


def _is_kernels(line: Line) -> bool:
    return line.is_kernel and (line.stamped or bool(_SUBSYSTEM.match(line.text)))


def _prefiltered(lines: Iterable[str]) -> Iterator[str]:
    rest = iter(lines)
    yield from islice(rest, _LOOKED_AT_WHOLE)
    while batch := list(islice(rest, _BATCH)):
        # Most batches of a long log hold nothing: one search for all lines is much the quicker.
        joined = "\n".join(batch)
        if any(word in joined for word in _QUICK):
            yield from (line for line in batch if _WORTH.search(line))


@dataclass(slots=True)
class _Reader:
    joiner: Joiner = field(default_factory=Joiner)
    kept: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    earlier: Counter[int] = field(default_factory=Counter)
    hosts: dict[str, float] = field(default_factory=dict)
    n_kernel_lines: int = 0
    n_boots: int = 0
    first_since_boot_s: float | None = None
    from_boot: bool = False
    driver_seen: bool = False
    driver_version: str = ""
    n_failed_probes: int | None = None
    refused: str = ""
    loading: set[str] = field(default_factory=set)
    noticed: bool = False  # a boot, by its mark or by the clock, before its first line came

    def take(self, line: Line) -> None:
        if line.boot_mark:
            self.booted(line.host)
        if not _is_kernels(line):
            if not self.refused and _REFUSED.search(line.text):
                self.refused = line.text[:120]
            return
        self.n_kernel_lines += 1
        self.clock(line)
        if line.text.startswith(("NVRM:", "nvidia")):
            self.driver_seen = True
        event = read_by(_RULES, line)
        if event is not None:
            self.note(event, line.host)

    def clock(self, line: Line) -> None:
        """Notices a boot: uptime that starts again is a new boot without a word."""
        since = line.since_boot_s
        if since is None:
            self.hosts.setdefault(line.host, 0.0)
            return
        if self.first_since_boot_s is None:
            self.first_since_boot_s = since
        before = self.hosts.get(line.host, 0.0)
        if since < 60 and before > since + 120:
            self.booted(line.host)
            self.from_boot = since < 5
        self.hosts[line.host] = since

    def booted(self, host: str) -> None:
        """Puts aside what this node reported before: a boot resets GPUs, links and memory."""
        self.n_boots += 1
        self.noticed = True
        self.earlier.update(self.joiner.forget(host))
        self.driver_seen = False
        self.hosts[host] = 0.0

    def driver(self, event: KernelEvent, host: str) -> None:
        """Notices that the driver loads, again maybe: that mends what a GPU reset mends."""
        again = OF_THE_DRIVER
        if event.kind == "driver_loaded":
            # What fails while it loads stands before this line, and belongs to this load.
            again = frozenset() if host in self.loading else again - _AT_LOAD
            self.loading.discard(host)
            self.driver_version = str(event.values["version"])
        else:
            self.loading.add(host)
            self.n_failed_probes = None
        self.earlier.update(self.joiner.forget_mended(host, again) if again else {})

    def note(self, event: KernelEvent, host: str) -> None:
        if event.kind == "linux":
            if not self.noticed and self.n_kernel_lines > 1:
                self.booted(host)
            self.noticed = False
            self.from_boot = True
        elif event.kind in ("driver_begins", "driver_loaded"):
            self.driver(event, host)
        elif event.kind == "probe_total":
            self.n_failed_probes = (self.n_failed_probes or 0) + int(event.values["n"])
        else:
            self.kept[event.kind, event.code] += 1
            kept = self.kept[event.kind, event.code] <= KEPT_OF_A_KIND
            self.joiner.add(event, host, keep=kept)

    def result(self) -> KernelLog:
        early = self.first_since_boot_s is not None and self.first_since_boot_s < 5
        return KernelLog(
            events=self.joiner.finished(),
            counts=dict(self.joiner.counts()),
            xid_counts=dict(sorted(self.joiner.xids().items())),
            links=self.joiner.links(),
            earlier=dict(sorted(self.earlier.items())),
            hosts=tuple(h for h in self.hosts if h),
            n_kernel_lines=self.n_kernel_lines,
            n_boots=self.n_boots,
            first_since_boot_s=self.first_since_boot_s,
            from_boot=self.from_boot or early,
            driver_seen=self.driver_seen,
            driver_version=self.driver_version,
            n_failed_probes=self.n_failed_probes,
            refused=self.refused,
        )
