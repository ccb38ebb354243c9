"""Which Xid of a GPU counts, and which are its echoes: one conclusion a GPU or switch.

One fault shows as many lines: a torn-down channel (45) on every other GPU, a stopped program
(43), details of a memory error (63, 94, 171). Judging lines one by one drains whole racks.

Source: the NVIDIA Xid catalogue's workflows; NVIDIA/NVSentinel#1710 (168,924 lines of 45
against 10 of anything else), #748 and #1357 (NVLink 5); leptonai/gpud.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recovery.reading.klog_event import KernelEvent
from recovery.reading.nvlink5 import decode
from recovery.reading.xid import XIDS, Action, Severity

_MEMORY = (48, 140, 95, 94, 64, 63, 171, 172, 92)
_HINT = {63: "row replacement pending", 64: "row replacement failed", 94: "kept to one program",
         95: "NOT kept to one program", 171: "in DRAM", 172: "in SRAM"}  # fmt: skip
_ECHOES = frozenset({43, 45})
_ACTION_WORDS = (
    # Of the driver's announcement (154), the most drastic first.
    ("node reboot", Action.REBOOT_NODE),
    ("drain and reset", Action.RESET_GPU),
    ("gpu reset", Action.RESET_GPU),
    ("drain p2p", Action.RESET_GPU),
    ("none", Action.NONE),
)
WORDS = {
    Action.NONE: "monitor",
    Action.RESTART_APP: "app",
    Action.FOLLOW_OTHER: "app",
    Action.RESET_GPU: "reset",
    Action.REBOOT_NODE: "reboot",
    Action.POWER_CYCLE: "power-cycle",
    Action.ISOLATE: "isolate",
    Action.UPDATE_SW: "update",
    Action.DECODE: "link",
    Action.READ_ACTION: "monitor",
}
"""One word an action, for tables: what kind of answer an Xid asks for."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What one GPU or NVSwitch reports, all its lines taken together.

    ``codes`` begins with the one that counts. ``severity`` None: a code that no table knows.
    """

    component: str
    codes: tuple[int, ...]
    severity: Severity | None
    action: Action
    meaning: str
    note: str = ""
    is_switch: bool = False
    echo_of: str = ""
    n_lines: int = 1
    links: tuple[int, ...] = field(default=())


def word_of(one: Conclusion) -> str:
    """What kind of answer a GPU's Xids ask for, in one word: app, monitor, reset, reboot..."""
    is_app = one.severity is Severity.APP and one.action is Action.NONE
    return "app" if is_app else WORDS[one.action]


def conclude(events: Iterable[KernelEvent], driver: str = "") -> tuple[Conclusion, ...]:
    """One conclusion for each GPU and switch, worst first.

    ``driver`` is the version that wrote the lines, where known: NVLink 5 registers depend on it.
    """
    kept = [e for e in events if e.kind in ("xid", "sxid")]
    xids = [e for e in kept if e.kind == "xid"]
    switches = _switches([e for e in kept if e.kind == "sxid"])
    by_gpu: dict[str, list[KernelEvent]] = defaultdict(list)
    for event in xids:
        by_gpu[event.device].append(event)
    root = _root(xids)
    on_links = {gpu for gpu, es in by_gpu.items() if any(e.code == 74 for e in es)}
    blamed = _blamed(switches, on_links)
    found = [
        _of_gpu(gpu, es, root=root, blamed=blamed, driver=driver) for gpu, es in by_gpu.items()
    ]
    return tuple(sorted((*switches, *found), key=_badness, reverse=True))


def _badness(one: Conclusion) -> tuple[bool, int, bool]:
    severity = Severity.FATAL if one.severity is None else one.severity
    return not one.echo_of, int(severity), one.is_switch


def _root(xids: Sequence[KernelEvent]) -> KernelEvent | None:
    """The first line that is no echo: what the others may follow from."""
    return next((e for e in xids if e.code not in _ECHOES and e.code != 154), None)


def _blamed(switches: Sequence[Conclusion], on_links: set[str]) -> str:
    """The one switch behind NVLink errors of several GPUs, or behind a fatal one."""
    fatal = [s for s in switches if s.severity is Severity.FATAL]
    if fatal and on_links:
        return fatal[0].component
    return switches[0].component if len(on_links) > 1 and len(switches) == 1 else ""


def _switches(events: Sequence[KernelEvent]) -> list[Conclusion]:
    by_switch: dict[int, list[KernelEvent]] = defaultdict(list)
    for event in events:
        by_switch[int(event.values["switch"])].append(event)
    return [_of_switch(n, es) for n, es in sorted(by_switch.items())]


def _of_switch(number: int, events: Sequence[KernelEvent]) -> Conclusion:
    worst = next((e for e in events if e.values.get("severity") == "Fatal"), events[0])
    fatal = worst.values.get("severity") == "Fatal"
    links = tuple(dict.fromkeys(int(e.values["link"]) for e in events if "link" in e.values))
    codes = tuple(dict.fromkeys([worst.code or 0, *(e.code or 0 for e in events)]))
    what = worst.text.rpartition(f"{worst.code}, ")[2]
    return Conclusion(
        f"nvswitch{number}",
        codes,
        Severity.FATAL if fatal else Severity.DEGRADED,
        Action.RESET_GPU if fatal else Action.NONE,
        f"SXid {worst.code}: {what[:80]}",
        is_switch=True,
        n_lines=len(events),
        links=links,
    )


def _of_gpu(
    gpu: str,
    events: Sequence[KernelEvent],
    *,
    root: KernelEvent | None,
    blamed: str,
    driver: str,
) -> Conclusion:
    codes = tuple(dict.fromkeys(e.code for e in events if e.code is not None))
    left = _without_cancelled(events)
    if blamed and {e.code for e in left} <= {74, 45, 43}:
        return _echo(gpu, codes, blamed, len(events))
    own = [e for e in left if e.code not in _ECHOES]
    if not own and left:
        return _only_echoes(gpu, codes, left, root)
    announced = _announced(left)
    leading = [e for e in own if not _follows(e)] or own
    decisive = max(leading, key=_weight, default=None)
    if decisive is None or decisive.code is None:
        return Conclusion(gpu, codes, Severity.INFO, Action.NONE, "cancelled by a later line")
    made = _decide(gpu, decisive, own, n_lines=len(events), driver=driver)
    return _with_announcement(made, announced) if announced else made


def _without_cancelled(events: Sequence[KernelEvent]) -> list[KernelEvent]:
    """Without each 163 that a 162 took back."""
    last_162 = max((i for i, e in enumerate(events) if e.code == 162), default=-1)
    return [e for i, e in enumerate(events) if not (e.code == 163 and i < last_162)]


def _echo(gpu: str, codes: tuple[int, ...], of: str, n_lines: int) -> Conclusion:
    return Conclusion(
        gpu,
        codes,
        Severity.INFO,
        Action.FOLLOW_OTHER,
        f"follows from {of}",
        echo_of=of,
        n_lines=n_lines,
    )


def _only_echoes(
    gpu: str,
    codes: tuple[int, ...],
    events: Sequence[KernelEvent],
    root: KernelEvent | None,
) -> Conclusion:
    """Only 43 and 45: an echo where anything else happened on the node, else a note."""
    if root is not None:
        return _echo(gpu, codes, f"Xid {root.code} on {root.device}", len(events))
    named = next((e.values["caused_by"] for e in events if "caused_by" in e.values), None)
    row = XIDS[codes[0]]
    meaning = f"{row.meaning}; the line blames Xid {named}" if named else row.meaning
    return Conclusion(gpu, codes, row.severity, row.action, meaning, row.note, n_lines=len(events))


def _severity(event: KernelEvent) -> Severity | None:
    """That of the table; an NVLink 5 line carries its own word."""
    row = XIDS.get(event.code or 0)
    if row is None:
        return None
    if row.action is Action.DECODE:
        fatal = event.values.get("severity") == "Fatal"
        return Severity.FATAL if fatal else Severity.DEGRADED
    return row.severity


def _follows(event: KernelEvent) -> bool:
    row = XIDS.get(event.code or 0)
    return row is not None and row.action is Action.FOLLOW_OTHER


def _weight(event: KernelEvent) -> tuple[int, int]:
    severity = _severity(event)
    order = {code: len(_MEMORY) - i for i, code in enumerate(_MEMORY)}
    asks = XIDS[event.code].action if event.code in XIDS else Action.ISOLATE
    # Among equals: what names a memory fault best, then what asks for the most.
    return (
        4 if severity is None else int(severity),
        order.get(event.code or 0, 0) + (asks in (Action.REBOOT_NODE, Action.ISOLATE)) * 20,
    )


def _decide(
    gpu: str, decisive: KernelEvent, own: Sequence[KernelEvent], *, n_lines: int, driver: str
) -> Conclusion:
    code = decisive.code or 0
    codes = tuple(dict.fromkeys([code, *(e.code for e in own if e.code is not None)]))
    row = XIDS.get(code)
    if row is None:
        note = "no table that we know has it: ask the vendor"
        return Conclusion(gpu, codes, None, Action.READ_ACTION, "unknown code", note)
    hints = [_HINT[c] for c in codes if c in _HINT and c != code and code in _MEMORY]
    link = f" on link {decisive.values['link']}" if "link" in decisive.values else ""
    word = f" ({decisive.values['severity']})" if row.action is Action.DECODE and link else ""
    severity, action = _severity(decisive), row.action
    read = decode(decisive.values, driver) if action is Action.DECODE else None
    if read is not None:
        # Where the line itself says Nonfatal, that wins over a reset: the driver knows the path.
        is_due = read.action is not Action.RESET_GPU or severity is Severity.FATAL
        action = read.action if is_due else action
        hints.append(read.words)
    if code in (48, 140, 94) and 64 in codes:
        action = Action.ISOLATE
    repeated = _same_sm(own) if code in (13, 31) else ""
    return Conclusion(
        gpu,
        codes,
        severity,
        action,
        f"{row.meaning}{link}{word}" + (f", {', '.join(hints)}" if hints else "") + repeated,
        row.note,
        n_lines=n_lines,
    )


def _same_sm(events: Sequence[KernelEvent]) -> str:
    """Words for the suspicion that one SM fails whatever runs on it."""
    jobs: dict[object, set[object]] = defaultdict(set)
    for event in events:
        if "sm" in event.values and event.values.get("pid"):
            jobs[event.values["sm"]].add(event.values["pid"])
    repeated = [sm for sm, pids in jobs.items() if len(pids) > 1]
    return f", GPC/TPC/SM {repeated[0]} in several programs: suspect the GPU" if repeated else ""


def _announced(events: Sequence[KernelEvent]) -> str:
    """The words of the last 154, which win over the table."""
    said = [str(e.values["recovery_action"]) for e in events if "recovery_action" in e.values]
    return said[-1] if said else ""


def _with_announcement(made: Conclusion, words: str) -> Conclusion:
    action = next((a for word, a in _ACTION_WORDS if word in words.lower()), Action.READ_ACTION)
    severity = Severity.FATAL
    if action is Action.NONE:
        severity = min(made.severity or Severity.DEGRADED, Severity.DEGRADED)
    meaning = made.meaning if made.codes[0] != 154 else "the driver asks for a recovery action"
    return Conclusion(
        made.component,
        made.codes,
        severity,
        action,
        f"{meaning}; the driver asks for: {words}",
        made.note,
        n_lines=made.n_lines,
    )


def root_words(events: Sequence[KernelEvent], conclusions: Sequence[Conclusion]) -> str | None:
    """The first cause in one line, for people: what to look at before anything else."""
    aer = next((e for e in events if e.kind == "aer" and "Fatal)" in e.values["aer"]
                and "Non-Fatal" not in e.values["aer"]), None)  # fmt: skip
    switch = next((c for c in conclusions if c.is_switch and c.severity is Severity.FATAL), None)
    if switch:
        link = f" link {switch.links[0]}" if switch.links else ""
        return f"SXid {switch.codes[0]} on {switch.component}{link}"
    first = next((c for c in conclusions if not c.echo_of and not c.is_switch), None)
    if first is None:
        return None
    code = first.codes[0]
    if aer and code == 79:
        error = aer.values.get("error", "error")
        return f"AER fatal {error} on {aer.device} then Xid 79 on {first.component}"
    if code in _MEMORY and len(first.codes) > 1:
        return _memory_words(first.codes)
    return f"{code} on {first.component}"


def _memory_words(codes: Sequence[int]) -> str:
    heads = ((48, "uncorrectable ECC (48)"), (140, "uncorrectable ECC (140)"),
             (94, "contained (94)"), (95, "uncontained (95)"))  # fmt: skip
    tails = ((63, "remap pending (63)"), (64, "remap failed (64)"))
    head = " ".join(words for code, words in heads if code in codes)
    return ", ".join(filter(None, (head, *(words for code, words in tails if code in codes))))
