"""`recover triage`: the first error of a crashed training, over the logs of all ranks and nodes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recovery.cli.options import state_option

if TYPE_CHECKING:
    from recovery.app.triaging import Crash
    from recovery.reading.klog import KernelLog
    from recovery.reading.trainlog import TrainingLog

_FEW, _SHOWN = 12, 50  # kernel logs and lines that a person reads
_NOT_COMPARABLE = " (time not comparable)"


@click.command("triage")
@click.argument("logs", nargs=-1, metavar="[NODE=]LOG...")
@click.option("--run", metavar="RUN", help="Of the logs that a run kept (`last`: the newest).")
@click.option("--kernel", multiple=True, metavar="[NODE=]LOG", help="A node's kernel log.")
@click.option("--offset", multiple=True, metavar="NODE=S", help="Seconds its clock is ahead.")
@click.option("--expect", "context", metavar="FILE", help="world_size, gpus_per_node, hosts.")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@state_option
def COMMAND(logs: tuple[str, ...], **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Name root cause, node, rank, GPU and remedy; errors that follow from it are folded.

    LOG may be NODE=PATH; logs are streamed, of any size. With --run: the training logs, kernel logs
    and clock offsets of all nodes that the run froze. Exit status: 0 no crash, 1 crash, 3 not
    known.
    """
    from recovery.checks.train_first_error import FIRST_ERROR
    from recovery.cli.judge import as_json, as_lines, exit_code, read_context

    if bool(logs) == bool(options["run"]):
        raise click.UsageError("give logs, or --run RUN")
    raw = read_context(options["context"])
    crash = _kept(options) if options["run"] else _given(logs, options)
    log = crash.log
    if not log.n_iterations and not log.errors and log.elastic is None:
        _nothing(log)
    expected = FIRST_ERROR.expect(raw)
    found = FIRST_ERROR.judge(log, expected)
    facts = dict(FIRST_ERROR.facts(log))
    if FIRST_ERROR.conclusions is not None:
        facts.update(FIRST_ERROR.conclusions(log, expected))
    beside = list(_beside(crash))
    if options["fmt"] == "json":
        shown = {"facts": facts, "kernel": beside, "clock_ahead_s": crash.offsets}
        click.echo(json.dumps(as_json(found, shown), default=str))
        sys.exit(exit_code(found))
    for finding in found.findings:
        click.echo("\n".join(as_lines(finding)))
    click.echo("\n".join([*_collateral(facts), *beside]))
    sys.exit(exit_code(found))


def _kept(options: Mapping[str, Any]) -> Crash:
    from recovery.app.files import state_folder
    from recovery.app.triaging import crash_of

    return crash_of(state_folder(options["state"]), options["run"])


def _given(logs: tuple[str, ...], options: Mapping[str, Any]) -> Crash:
    from recovery.app.triaging import Crash
    from recovery.reading.klog import read_kernel_log

    offsets, kernel = _offsets(options["offset"]), []
    with ExitStack() as files:
        log = _read(logs, offsets, files)
    for word in options["kernel"]:
        node, path = _named(word)
        with ExitStack() as files:
            kernel.append((node or path.name, read_kernel_log(_lines(path, files))))
    return Crash(log, offsets, tuple(kernel))


def _nothing(log: TrainingLog) -> None:
    from recovery.errors import InputError

    raise InputError(
        f"no iteration and no error in {log.n_lines} lines",
        remedy="give the training's own logs, standard error included, one or more a node",
    )


def _named(word: str) -> tuple[str, Path]:
    """``NODE=PATH`` or a path alone; a node's name in the file name counts too."""
    node, equals, path = word.partition("=")
    if equals and not Path(word).exists():
        return node, Path(path)
    match = re.match(r"([a-z][a-z-]*\d+)(?:\.log|\.err|\.out|[._-]|$)", Path(word).name)
    return (match[1] if match and "rank" not in match[1] else ""), Path(word)


def _lines(path: Path, files: ExitStack) -> Iterable[str]:
    from recovery.errors import InputError

    try:
        return files.enter_context(path.open(encoding="utf-8", errors="backslashreplace"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", remedy="check the path"
        ) from error


def _read(logs: tuple[str, ...], offsets: Mapping[str, float], files: ExitStack) -> TrainingLog:
    from recovery.reading.trainlog import read_training_logs

    if logs == ("-",):
        return read_training_logs([("", sys.stdin)], offsets=offsets)
    sources = [(node, _lines(path, files)) for node, path in map(_named, logs)]
    return read_training_logs(sources, offsets=offsets)


def _offsets(words: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for word in words:
        node, _, seconds = word.partition("=")
        try:
            found[node] = float(seconds)
        except ValueError:
            raise click.BadParameter(f"{word!r} is not NODE=SECONDS") from None
    return found


def _collateral(facts: Mapping[str, Any]) -> Iterator[str]:
    """What followed from the first error, one line a kind."""
    by_kind: dict[str, list[Any]] = {}
    for error in facts.get("secondary") or ():
        by_kind.setdefault(error["kind"], []).append(error.get("rank", error.get("host", "?")))
    for kind, who in by_kind.items():
        shown = ", ".join(str(rank) for rank in sorted(map(str, who))[:16])
        yield f"        later: {kind.replace('_', ' ')} of {len(who)} (ranks {shown})"
    if facts.get("silent_ranks") and facts.get("ranks_reporting"):
        silent = [str(rank) for rank in facts["silent_ranks"]]
        yield f"        silent: {', '.join(silent[:16])}{' and more' if len(silent) > 16 else ''}"


def _beside(crash: Crash) -> Iterator[str]:
    """Kernel events around the first error; where no time compares, all of few logs' own."""
    first = crash.log.first
    told = dict.fromkeys(
        line
        for node, log in crash.kernel
        for line in _events_near(
            node, log, first.said.seconds if first else None, crash.offsets.get(node, 0.0)
        )
        if len(crash.kernel) <= _FEW or _NOT_COMPARABLE not in line
    )
    yield from list(told)[:_SHOWN]


def _events_near(node: str, log: KernelLog, at: float | None, offset: float) -> Iterator[str]:
    from recovery.reading.klog_near import candidates

    for event, near in candidates(log, at, ahead_s=offset):
        when = "" if near else _NOT_COMPARABLE
        yield f"        kernel of {node}{when}: {event.text[:160]}"
