"""`recover verify`: two training logs, from before and since a resume, compared by themselves."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recovery.continuity import Continuity
    from recovery.reading.training_points import Points

_FORMATS = "auto, plain, megatron, nemo, hf, trainer-state, lightning, deepspeed, torchtune"


@click.command("verify")
@click.argument("before", metavar="BEFORE.log")
@click.argument("after", metavar="[AFTER.log]", required=False)
@click.option("--step", type=int, metavar="N", help="Iteration of the checkpoint resumed from.")
@click.option("--log-format", "log_format", default="auto", metavar="F", help=f"{_FORMATS}.")
@click.option("--regex", default="", metavar="R", help="A line by named groups: iteration, loss...")
@click.option("--other-data", is_flag=True, help="The loader never goes on where it was.")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def COMMAND(  # noqa: N802, PLR0913 - a constant of the shelf; one parameter an option
    before: str,
    after: str | None,
    *,
    step: int | None,
    log_format: str,
    regex: str,
    other_data: bool,
    fmt: str,
) -> None:
    """Compare the log from before a resume with the log since (`-` is standard input).

    With one log, its last start is compared with what stands before it. All iterations that
    both logs have are compared one by one; a log of other iterations is only "not verified".

    Exit status: 0 it went on as it was, 1 it did not, 3 unknown or not verified.
    """
    from recovery.continuity import Options, compare

    old = _points(before, log_format, regex)
    new: Points | None
    if after is None:
        old, new = _parted(before, old)
    else:
        new = _since(old, before, after, log_format, regex)
    found = compare(old, new, checkpoint_step=step, options=Options(same_data=not other_data))
    if fmt == "json":
        click.echo(json.dumps(_as_json(found, old, new), indent=1))
    else:
        _show(found, old, new)
    sys.exit(_exit_code(found))


def _points(file: str, fmt: str, regex: str) -> Points:
    from recovery.errors import InputError, ParseError
    from recovery.reading.training_points import read_points

    try:
        return read_points(_text(file).decode("utf-8", "backslashreplace"), fmt=fmt, regex=regex)
    except ParseError as error:
        raise InputError(f"{file}: {error.message}", remedy=error.remedy) from error


def _text(file: str) -> bytes:
    from recovery.app.files import local_file

    return sys.stdin.buffer.read() if file == "-" else local_file(file)


def _parted(file: str, log: Points) -> tuple[Points, Points]:
    """One log of several starts: the last one, and all before it."""
    from recovery.errors import InputError
    from recovery.reading.training_points import Points

    if len(log.starts) < 2:
        raise InputError(
            f"{file}: the training starts only once in it",
            remedy="give two logs: recover verify BEFORE.log AFTER.log",
        )
    return (
        Points(log.starts[:-1], log.format, log.notes),
        Points(log.starts[-1:], log.format, log.notes),
    )


def _since(old: Points, before: str, after: str, fmt: str, regex: str) -> Points | None:
    """The new log; where it goes on in the old one's file, what stands after that."""
    from recovery.continuity.frozen import since
    from recovery.errors import InputError, ParseError
    from recovery.reading.training_points import read_points

    content = _text(after)
    if before not in ("-", after):
        content = since(_text(before), content)
    try:
        return read_points(content.decode("utf-8", "backslashreplace"), fmt=fmt, regex=regex)
    except ParseError as error:
        if not content.strip():
            return None
        raise InputError(f"{after}: {error.message}", remedy=error.remedy) from error


def _exit_code(found: Continuity) -> int:
    from recovery.model.verdict import Level

    if found.verdict.level is Level.FAIL:
        return 1
    return 0 if found.verified else 3


def _as_json(found: Continuity, old: Points, new: Points | None) -> dict[str, Any]:
    from recovery.cli.judge import as_json
    from recovery.continuity import curves

    return as_json(
        found.verdict,
        {
            "verified": found.verified,
            "strength": found.strength.value,
            "diagnosis": found.diagnosis,
            "overlap": found.overlap,
            "first_iteration": found.first_iteration,
            "last_iteration": found.last_iteration,
            "statistics": dict(found.statistics),
            "formats": [old.format, new.format if new else ""],
            "notes": [*old.notes, *(new.notes if new else ())],
            "curves": curves(old.all, new.starts[-1] if new else ()),
        },
    )


def _show(found: Continuity, old: Points, new: Points | None) -> None:
    from recovery.cli.judge import as_lines

    for finding in found.verdict.findings:
        click.echo("\n".join(as_lines(finding)))
    if found.diagnosis:
        click.echo(f"likely: {found.diagnosis}")
    for note in dict.fromkeys((*old.notes, *(new.notes if new else ()))):
        click.echo(f"note: {note}")
    shown = {k: v for k, v in found.statistics.items() if v is not None}
    click.echo(f"strength {found.strength}; " + ", ".join(f"{k} {v:g}" for k, v in shown.items()))
