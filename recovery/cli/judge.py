"""`recover judge`: judge captured output offline, by the same rules as a live node."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recovery.engine.judging import AnyCheck, Judged
    from recovery.model.verdict import Finding, Verdict

_LARGE_BYTES = 48 * 1024 * 1024  # larger texts are streamed by the readers that can


@dataclass(frozen=True, slots=True)
class Question:
    """What the command line asks about each file."""

    check: str | None
    command: str
    exit_status: int | None
    error_text: str
    raw: Mapping[str, Any]


@click.command("judge")
@click.argument("words", nargs=-1, required=True, metavar="[CHECK] FILE...")
@click.option("--command", default="", metavar="LINE", help="The command that printed the text.")
@click.option("--exit-status", type=int, metavar="N", help="The status it ended with, if known.")
@click.option("--stderr", metavar="FILE", help="What it printed as error output, if kept apart.")
@click.option("--expect", "context", metavar="FILE", help="Expectations, as YAML or JSON.")
@click.option("--profile", metavar="NAME", help="Expectations of a kind of machine.")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def COMMAND(  # noqa: N802, PLR0913 - a constant of the shelf; one parameter an option
    words: tuple[str, ...],
    *,
    command: str,
    exit_status: int | None,
    stderr: str | None,
    context: str | None,
    profile: str | None,
    fmt: str,
) -> None:
    """Judge captured output (`-` is standard input) by CHECK, or by all that can read it.

    Without --command the content decides what it is. Several files are judged together.
    Exit status: 0 pass or warn, 1 fail, 3 unknown.
    """
    from recovery.engine.judging import fold

    check, files = _check_and_files(words)
    question = Question(
        check,
        command,
        exit_status,
        _text_of(stderr) if stderr else "",
        {**_profile(profile), **read_context(context)},
    )
    by_file = {file: tuple(_judge(file, question)) for file in files}
    found, facts = fold(one for judged in by_file.values() for one in judged)
    if len(by_file) > 1:
        facts = {**facts, "files": {file: _of_file(judged) for file, judged in by_file.items()}}
    asked = dict.fromkeys(one.check for judged in by_file.values() for one in judged if one.check)
    _show(found, {"checks": list(asked), "facts": facts}, fmt)
    sys.exit(exit_code(found))


def exit_code(found: Verdict) -> int:
    """The promised exit status of a verdict."""
    from recovery.model.verdict import Level

    return {Level.FAIL: 1, Level.UNKNOWN: 3}.get(found.level, 0)


def _check_and_files(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The first word is a check where it names one and is no file."""
    from recovery.errors import InputError

    first = words[0]
    if first == "-" or Path(first).exists():
        return None, words
    if len(words) == 1:
        raise InputError(
            f"no file {first!r}", remedy="recover judge [CHECK] FILE..., `-` for standard input"
        )
    _checks_named(first)
    return first, words[1:]


def _checks_named(name: str | None) -> tuple[AnyCheck, ...]:
    from recovery.model.check import Check
    from recovery.registry import collect, pick

    if name is None:
        return tuple(collect("recovery.checks", Check).values())
    return (pick("recovery.checks", Check, name),)


def _judge(file: str, question: Question) -> Iterator[Judged]:
    from recovery.engine.judging import Judged, judge_one, judge_text, readers_of
    from recovery.model.output import Printed

    if _is_large(file):
        yield from _streamed(file, question)
        return
    printed = Printed(_text_of(file), question.error_text, question.exit_status, question.command)
    checks = _checks_named(question.check)
    asked = checks if question.check else readers_of(checks, printed)
    for check in asked:
        yield judge_one(check, printed, question.raw)
    if not asked:
        found, facts = judge_text(checks, printed, question.raw)
        yield Judged("", found, facts)


def _is_large(file: str) -> bool:
    path = Path(file)
    return file != "-" and path.is_file() and path.stat().st_size > _LARGE_BYTES


def _streamed(file: str, question: Question) -> Iterator[Judged]:
    """Logs of any size, in bounded memory; other texts are never this large."""
    from recovery.engine.judging import Judged
    from recovery.errors import InputError
    from recovery.reading.klog import looks_like_kernel_log, read_kernel_log
    from recovery.reading.trainlog import read_training_log

    with Path(file).open(encoding="utf-8", errors="backslashreplace") as text:
        is_kernel = looks_like_kernel_log(text.read(65536))
        text.seek(0)
        parsed = read_kernel_log(text) if is_kernel else read_training_log(text)
    names = ("gpu.xid", "kernel.errors") if is_kernel else ("train.first-error",)
    if question.check is not None and question.check not in names:
        raise InputError(
            f"{file} is too large to be the output of one command",
            remedy=f"larger than {_LARGE_BYTES} bytes only logs are read: {', '.join(names)}",
        )
    for name in (question.check,) if question.check else names:
        check = _checks_named(name)[0]
        found = check.judge(parsed, check.expect(question.raw))
        yield Judged(check.name, found, check.facts(parsed), parsed)


def _text_of(file: str) -> str:
    from recovery.app.files import local_file

    raw = sys.stdin.buffer.read() if file == "-" else local_file(file)
    return raw.decode("utf-8", "backslashreplace")


def read_context(file: str | None) -> Mapping[str, Any]:
    """Expectations from a YAML or JSON file.

    Raises:
        InputError: it cannot be read, or is no mapping.
    """
    from recovery.document import read_yaml
    from recovery.errors import InputError

    if file is None:
        return {}
    text = _text_of(file)
    try:
        value = json.loads(text)
    except ValueError:
        value = read_yaml(text, file).value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(
            f"{file}: expectations must be a mapping", remedy="write lines like `expected_gpus: 8`"
        )
    return value


def _profile(name: str | None) -> Mapping[str, Any]:
    from recovery.app.files import find_profile
    from recovery.inventory import merge_expectations, read_profile
    from recovery.model.node import Node

    if name is None:
        return {}
    text, source = find_profile(name)
    return merge_expectations(read_profile(text, source), Node("captured"))


def _of_file(judged: tuple[Judged, ...]) -> dict[str, Any]:
    from recovery.engine.judging import fold

    found, facts = fold(judged)
    return {"level": found.level.word, "finding": found.worst.finding, "facts": facts}


def _show(found: Verdict, more: Mapping[str, Any], fmt: str) -> None:
    if fmt == "json":
        click.echo(json.dumps(as_json(found, more), indent=1, default=str))
        return
    for finding in found.findings:
        for line in as_lines(finding):
            click.echo(line)
    if more["checks"]:
        click.echo(f"asked: {', '.join(more['checks'])}")


def as_json(found: Verdict, more: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict as JSON-able values: level, findings worst first, and ``more``."""
    return {
        "level": found.level.word,
        "findings": [
            {
                "level": f.level.word,
                "finding": f.finding,
                "remedy": f.remedy,
                "component": f.component,
                "code": f.code,
            }
            for f in found.findings
        ],
        **more,
    }


def as_lines(finding: Finding) -> Iterator[str]:
    """A finding for people: what, then what to do."""
    yield f"{finding.level.word.upper():8}{finding.finding}"
    if finding.remedy:
        yield f"        do: {finding.remedy}"
