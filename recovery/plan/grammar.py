"""The small words of the language: durations, sizes, gates, retries, batches.

Each ``parse_*`` takes a value as YAML gives it and returns the typed one, or raises `GrammarError`
with what was expected; each ``show_*`` is its inverse, for people.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from recovery.model.runbook import Gate, GateKind, Retry, RetryOn
from recovery.registry import did_you_mean

Word = TypeVar("Word", bound=StrEnum)

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGT])(?:iB)?")
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_RETRY = re.compile(
    r"(?P<times>[0-9]+)(?:\s*,\s*(?P<from>[0-9.a-z]+?)\.\.(?P<cap>[0-9.a-z]+))?"
    r"(?:\s+on\s+(?P<on>[a-z]+(?:\s*,\s*[a-z]+)*))?"
)
_MOST = re.compile(r"[1-9][0-9]{0,6}|(?:100|[1-9][0-9]?)%")
_BATCH = re.compile(r"[1-9][0-9]*%?")


class GrammarError(ValueError):
    """A value that is not of the form it must have, and what to write instead."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def parse_duration(raw: object) -> float:
    """Seconds of ``60s``, ``10m``, ``2h``, ``1h30m``, ``500ms``; the unit is never left out."""
    remedy = "write a number with its unit: 60s, 10m, 2h"
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        raise GrammarError(f"{raw} has no unit", remedy=f"write {raw}s for seconds, {raw}m, {raw}h")
    text = raw.strip() if isinstance(raw, str) else ""
    if not _DURATION.fullmatch(text):
        raise GrammarError(f"{raw!r} is not a duration", remedy)
    parts = _DURATION_PART.findall(text)
    return float(sum(float(number) * _UNITS_S[unit] for number, unit in parts))


def parse_most(raw: object) -> str:
    """A limit of nodes as it is written: ``4``, ``10%``, or ``all`` for none."""
    text = str(raw).strip() if isinstance(raw, (int, str)) and not isinstance(raw, bool) else ""
    if text != "all" and not _MOST.fullmatch(text):
        raise GrammarError(f"{raw!r} is no number of nodes", "write 4, 10%, or all")
    return text


def parse_size(raw: object) -> int:
    """Bytes of ``8G``, ``512M``, ``64K``, ``1T`` (powers of 1024, as nccl-tests counts)."""
    found = _SIZE.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if found is None:
        raise GrammarError(f"{raw!r} is not a size", "write a number with its unit: 512M, 8G")
    return int(float(found[1]) * 1024 ** _POWERS[found[2]])


def parse_gate(raw: object) -> Gate:
    """The gate of ``all``, ``any``, ``N``, ``N%``, ``all but N``."""
    text = str(raw).strip() if isinstance(raw, (str, int)) and not isinstance(raw, bool) else ""
    if text in ("all", "any"):
        return Gate(GateKind(text))
    remedy = "write all, any, a number such as 4, a share such as 90%, or all but 2"
    for pattern, kind in (
        (r"([0-9]+)", GateKind.COUNT),
        (r"([0-9]+)%", GateKind.PERCENT),
        (r"all\s+but\s+([0-9]+)", GateKind.ALL_BUT),
    ):
        if found := re.fullmatch(pattern, text):
            return _counted(kind, int(found[1]), text)
    raise GrammarError(f"{raw!r} is not a gate{did_you_mean(text, ('all', 'any'))}", remedy)


def _counted(kind: GateKind, number: int, text: str) -> Gate:
    if number == 0 and kind is not GateKind.ALL_BUT:
        raise GrammarError(f"a gate of {text} opens when nothing passed", "write 1 or more, or any")
    if kind is GateKind.PERCENT and number > 100:
        raise GrammarError(f"{text} is more than all", "write at most 100%")
    return Gate(kind, number)


def show_gate(gate: Gate) -> str:
    """The gate as the language writes it."""
    match gate.kind:
        case GateKind.ALL | GateKind.ANY:
            return gate.kind.value
        case GateKind.COUNT:
            return str(gate.number)
        case GateKind.PERCENT:
            return f"{gate.number}%"
        case GateKind.ALL_BUT:
            return f"all but {gate.number}"


def parse_retry(raw: object) -> Retry:
    """The retry of ``N[, FROM..CAP][ on CLASS,...]`` or ``{times, from, cap, on}``."""
    if isinstance(raw, Mapping):
        return _long_retry(raw)
    text = str(raw).strip() if isinstance(raw, (str, int)) and not isinstance(raw, bool) else ""
    found = _RETRY.fullmatch(text)
    if found is None:
        raise GrammarError(
            f"{raw!r} is not a retry", "write attempts, back-off and endings: 3, 5s..60s on lost"
        )
    classes = found["on"].split(",") if found["on"] else None
    return _retry(found["times"], found["from"], found["cap"], classes)


def _long_retry(raw: Mapping[object, object]) -> Retry:
    known = ("times", "from", "cap", "on")
    for key in raw:
        if key not in known:
            raise GrammarError(
                f"{key!r} is not a key of retry{did_you_mean(str(key), known)}",
                "write {times: 3, from: 5s, cap: 60s, on: [lost]}",
            )
    if "times" not in raw:
        raise GrammarError("retry says no number of attempts", "add times: 3")
    classes = raw.get("on")
    named = [classes] if isinstance(classes, str) else classes
    if named is not None and not isinstance(named, list):
        raise GrammarError(f"{named!r} is not a list of endings", "write on: [lost, timeout]")
    return _retry(raw["times"], raw.get("from"), raw.get("cap"), named)


def _retry(times: object, first: object, cap: object, classes: Iterable[object] | None) -> Retry:
    if not re.fullmatch(r"[1-9][0-9]*", str(times)) or isinstance(times, bool):
        raise GrammarError(f"{times!r} attempts are not possible", "write 1 (no retry) or more")
    usual = Retry()
    from_s = usual.from_s if first is None else parse_duration(first)
    cap_s = max(usual.cap_s, from_s) if cap is None else parse_duration(cap)
    if from_s > cap_s:
        raise GrammarError(
            f"the back-off begins at {first} and is capped at {cap}", "write the shorter one first"
        )
    if classes is None:
        return Retry(int(str(times)), from_s, cap_s)
    words = frozenset(parse_word(RetryOn, str(word).strip(), "an ending") for word in classes)
    return Retry(int(str(times)), from_s, cap_s, words)


def show_retry(retry: Retry) -> str:
    """The retry as the language writes it, short form."""
    if retry.times == 1:
        return "1"
    classes = ",".join(word.value for word in RetryOn if word in retry.on)
    return (
        f"{retry.times}, {exact_duration(retry.from_s)}..{exact_duration(retry.cap_s)} on {classes}"
    )


def parse_word(kind: type[Word], raw: object, what: str) -> Word:
    """The word of a closed list, or an error that names the nearest one."""
    words = tuple(word.value for word in kind)
    if isinstance(raw, str) and raw in words:
        return kind(raw)
    near = did_you_mean(str(raw), words)
    raise GrammarError(f"{raw!r} is not {what}{near}", f"one of: {', '.join(words)}")


def parse_batch(raw: object) -> tuple[str, ...]:
    """How many nodes are done after each batch: numbers or shares, as ``[1, 10%, 100%]``."""
    sizes = raw if isinstance(raw, list) else [raw]
    words = tuple(str(size) for size in sizes if not isinstance(size, bool))
    wrong = [w for w in words if not _BATCH.fullmatch(w) or (w[-1] == "%" and int(w[:-1]) > 100)]
    if wrong or len(words) < len(sizes) or not words:
        raise GrammarError(
            f"{wrong[0] if wrong else raw!r} is not a batch size",
            "write numbers or shares: [1, 10%, 100%]",
        )
    return words


def batch_sizes(batch: tuple[str, ...], total: int) -> tuple[int, ...]:
    """How many nodes each batch holds: a word says how many are done with it, shares rounded up.

    The last batch holds all that is left.
    """
    sizes, done = [], 0
    for word in batch:
        share = math.ceil(int(word[:-1]) * total / 100) if word.endswith("%") else int(word)
        if share > done and done < total:
            sizes.append(min(share, total) - done)
            done += sizes[-1]
    return (*sizes, total - done) if done < total else tuple(sizes)


def exact_duration(seconds: float) -> str:
    """A duration as the language writes it: ``90s`` stays exact, whole minutes are ``10m``."""
    for unit in ("d", "h", "m"):
        if seconds >= _UNITS_S[unit] and seconds % _UNITS_S[unit] == 0:
            return f"{int(seconds / _UNITS_S[unit])}{unit}"
    if seconds == int(seconds):
        return f"{int(seconds)}s"
    return f"{seconds}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def show_duration(seconds: float) -> str:
    """A duration for people, two units at most: ``45 s``, ``10 min``, ``2 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
