"""`recover explain`: what an Xid, or the code of a finding, means and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
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
    """The check that a finding's code belongs to, and what is known of the finding."""
    from recovery.model.check import Check
    from recovery.reading.train_causes import CAUSES
    from recovery.registry import collect

    checks = collect("recovery.checks", Check)
    name = max((n for n in checks if f"{code}.".startswith(f"{n}.")), key=len, default=None)
    if name is None:
        return [f"{code}: {_GENERAL[code]}"] if code in _GENERAL else []
    check = checks[name]
    lines = [
        f"{code}: a finding of {name}",
        f"question  {check.question}",
        f"ask again $ {check.command}",
    ]
    cause = CAUSES.get(code.rpartition(".")[2].replace("-", "_"))
    if name == "train.first-error" and cause is not None:
        lines[1:1] = [f"meaning   {cause.words}", f"do        {cause.remedy}"]
    if check.expects:
        lines.append(f"judged by {', '.join(check.expects)}")
    return lines


_GENERAL = {
    "unreadable": "the text could not be read, which says nothing of the machine",
    "unreadable.empty": "nothing was printed: silence is not health",
    "unreadable.unrecognised": "no check reads this text: name the command that printed it",
    "kernel-log.filtered": "the log went through a filter: what is absent proves nothing",
    "kernel-log.cut": "the log ends in the middle of a line",
    "kernel-log.partial": "the log begins after the boot: older messages were overwritten",
    "kernel-log.no-driver": "the NVIDIA driver wrote nothing since boot: is it loaded?",
    "nothing-judged": "no check was asked",
}


def _near(code: str) -> str:
    from recovery.model.check import Check
    from recovery.registry import collect, did_you_mean

    return did_you_mean(code, [*collect("recovery.checks", Check), *_GENERAL])
