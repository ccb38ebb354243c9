"""`recover explain`: what an Xid, or the code of a finding, means and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from recovery.engine.judging import AnyCheck
    from recovery.reading.xid import Xid


@click.command("explain")
@click.argument("words", nargs=-1, required=True, metavar="xid N | CODE")
def COMMAND(words: tuple[str, ...]) -> None:  # noqa: N802 - a constant of the shelf
    """Explain an Xid (`xid 79`) or the code of a finding (`gpu.xid.79`, `ib.state.down`)."""
    from recovery.errors import InputError

    code = ".".join(words).lower()
    number = code.rpartition(".")[2]
    if code.startswith(("xid", "gpu.xid")) and number.isdecimal():
        lines = xid_lines(int(number))
    elif number.isdecimal() and code.startswith(("sxid", "gpu.sxid")):
        lines = sxid_lines(int(number))
    else:
        lines = code_lines(code)
    if not lines:
        raise InputError(
            f"nothing is known of {' '.join(words)!r}{_near(code)}",
            remedy="`recover explain xid 79`, or a code as `recover judge --format json` prints it",
        )
    click.echo("\n".join(lines))


def xid_lines(code: int) -> list[str]:
    """Meaning, severity, scope, remedy, note and source of an Xid; empty when there is none."""
    from recovery.reading.xid import LADDER, WHAT_TO_DO, XIDS

    row = XIDS.get(code)
    if row is None:
        return []
    after = LADDER[LADDER.index(row.action) + 1 :] if row.action in LADDER else ()
    lines = [
        f"Xid {code}: {row.meaning}",
        f"severity  {row.severity.name.lower()}, concerns the {row.scope}",
        f"do        {WHAT_TO_DO[row.action].format(gpu='<PCI address>')}",
    ]
    if after:
        lines.append(f"then      {' -> '.join(a.value.replace('_', ' ') for a in after)}")
    return [*lines, *_note(row), f"source    {row.source}"]


def _note(row: Xid) -> list[str]:
    return [f"note      {row.note}"] if row.note else []


def sxid_lines(code: int) -> list[str]:
    """What an NVSwitch error asks for: its own line says Fatal or Non-fatal."""
    return [
        f"SXid {code}: an error of an NVSwitch",
        "severity  the line itself says it: Fatal or Non-fatal",
        "do        Fatal: stop the jobs, reset all GPUs and switches or reboot the node",
        "          Non-fatal: keep running, watch whether it repeats",
        "note      NVLink errors (Xid 74) of GPUs beside it follow from it",
        "source    NVIDIA fabric manager guide; NVIDIA/NVSentinel sxiderrorsmapping.csv",
    ]


def code_lines(code: str) -> list[str]:
    """Meaning, cause, remedy, source, and the check behind it; empty where nothing is known."""
    from recovery.reading.train_causes import CAUSES

    check = _check_of(code)
    entry = entry_of(code)
    cause = CAUSES.get(code.rpartition(".")[2].replace("-", "_"))
    if code.startswith("train.first-error") and cause is not None:
        entry = Entry(code, cause.words, "the log's own line, the earliest one", cause.remedy)
    if entry is None and check is None:
        return []
    entry = entry or Entry(code, f"a finding of {code}", "its words say it", "do what it says")
    lines = [
        f"{code}: {entry.meaning}",
        *([f"cause     {entry.cause}"] if entry.cause != "-" else []),
        f"do        {entry.remedy}",
    ]
    return [*lines, *(_asking(check) if check else ()), f"source    {source_of(code)}"]


def _asking(check: AnyCheck) -> Iterator[str]:
    yield f"question  {check.question}"
    yield f"ask again $ {check.command}"
    if check.expects:
        yield f"judged by {', '.join(check.expects)}"


def _check_of(code: str) -> AnyCheck | None:
    from recovery.model.check import Check
    from recovery.registry import collect

    checks = collect("recovery.checks", Check)
    name = max((n for n in checks if f"{code}.".startswith(f"{n}.")), key=len, default=None)
    return checks[name] if name else None


@dataclass(frozen=True, slots=True)
class Entry:
    """What a code means; ``code`` may hold ``*`` for anything."""

    code: str
    meaning: str
    cause: str
    remedy: str


@cache
def entries() -> dict[str, Entry]:
    """All entries of ``codes.txt`` by code."""
    rows = [line.split(" | ") for line in _lines() if not line.startswith("=")]
    return {row[0]: Entry(*row) for row in rows}


def entry_of(code: str) -> Entry | None:
    """The entry of a code: its own, else the longest pattern that fits; None where none does."""
    known = entries()
    fitting = [pattern for pattern in known if fnmatchcase(code, pattern)]
    return known.get(code) or (known[max(fitting, key=len)] if fitting else None)


def source_of(code: str) -> str:
    """Where the rule behind a code comes from: of the longest prefix that fits."""
    rows = [line[2:].split(" | ") for line in _lines() if line.startswith("= ")]
    fitting = [row for row in rows if code.startswith(row[0])]
    return max(fitting, key=lambda row: len(row[0]))[1] if fitting else "the project's README.md"


@cache
def _lines() -> tuple[str, ...]:
    text = files("recovery.cli").joinpath("codes.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _near(code: str) -> str:
    from recovery.model.check import Check
    from recovery.registry import collect, did_you_mean

    return did_you_mean(code, [*collect("recovery.checks", Check), *entries()])
