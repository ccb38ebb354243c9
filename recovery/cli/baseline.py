"""`recover baseline`: keep a golden run of this cluster, and compare later runs with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from recovery.cli.options import state_option

if TYPE_CHECKING:
    from recovery.engine.golden import Difference


@click.group("baseline")
def COMMAND() -> None:  # noqa: N802 - a constant of the shelf
    """Keep a golden run of this cluster, and compare later runs with it."""


@COMMAND.command("save")
@click.argument("run")
@click.argument("name")
@click.option("--replace", is_flag=True, help="Write over a baseline of this name.")
@state_option
def save(run: str, name: str, *, replace: bool, state: str | None) -> None:
    """Keep the facts of RUN (`last`: the newest) as the baseline NAME."""
    from recovery.app import baseline
    from recovery.app.files import state_folder

    path, golden = baseline.save(state_folder(state), run, name, replace=replace)
    click.echo(f"{len(golden.nodes)} nodes, {golden.n_facts} facts of run {golden.run}: {path}")


@COMMAND.command("diff")
@click.argument("run")
@click.argument("name")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@state_option
def diff(run: str, name: str, *, fmt: str, state: str | None) -> None:
    """Show what RUN says otherwise than the baseline NAME (`previous`: the run before it).

    Exit status: 0 alike, 1 something differs, 3 only answers are missing.
    """
    from recovery.app import baseline
    from recovery.app.files import state_folder

    golden, found = baseline.diff(state_folder(state), run, name)
    if fmt == "json":
        click.echo(json.dumps([_values(one) for one in found], indent=1))
    else:
        _print(found)
        n = len(found)
        click.echo(f"{n} differences from run {golden.run}" if n else f"as in run {golden.run}")
    raise SystemExit(_exit_code(found))


def _exit_code(found: Iterable[Difference]) -> int:
    from recovery.model.verdict import Level

    levels = {one.finding.level for one in found}
    if levels - {Level.UNKNOWN, Level.PASS}:
        return 1
    return 3 if levels else 0


def _values(one: Difference) -> dict[str, str]:
    return {
        "node": one.node,
        "check": one.check,
        "level": one.finding.level.word,
        "finding": one.finding.finding,
        "remedy": one.finding.remedy,
        "component": one.finding.component,
    }


def _print(found: Iterable[Difference]) -> None:
    """One line a finding, the nodes that share it folded; the remedy once."""
    from recovery.inventory import fold

    grouped: dict[tuple[str, str, str], list[str]] = {}
    remedies: dict[str, None] = {}
    for one in found:
        level, words = one.finding.level.word.upper(), one.finding.finding
        grouped.setdefault((level, one.check, words), []).append(one.node)
        remedies.setdefault(one.finding.remedy)
    for (level, check, words), nodes in grouped.items():
        about = f"{check}: " if check else ""
        click.echo(f"{level:8}{fold(nodes)}: {about}{words}")
    for remedy in remedies:
        click.echo(f"{'':8}remedy: {remedy}")
