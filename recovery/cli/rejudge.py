"""`recover rejudge`: judge a run's evidence again with today's rules and show what changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from recovery.cli.options import state_option

if TYPE_CHECKING:
    from recovery.app.rejudging import Rejudged


@click.command("rejudge")
@click.argument("run", default="last")
@click.option("--all", "everything", is_flag=True, help="Also what did not change.")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@state_option
def COMMAND(run: str, everything: bool, fmt: str, state: str | None) -> None:  # noqa: N802, FBT001 - a click command on the shelf
    """Judge the kept answers of RUN again; exit 1 when a verdict changed."""
    from recovery.app.files import state_folder
    from recovery.app.rejudging import rejudge

    rows = rejudge(state_folder(state), run)
    changed = [r for r in rows if r.changed]
    shown = rows if everything else changed
    if fmt == "json":
        click.echo(json.dumps([_values(r) for r in shown], indent=1))
    else:
        _print(shown)
        click.echo(f"{len(rows)} answers judged again, {len(changed)} changed")
    raise SystemExit(1 if changed else 0)


def _values(row: Rejudged) -> dict[str, str]:
    return {
        "step": row.step,
        "node": row.node,
        "check": row.check,
        "then": row.then,
        "now": row.now.word,
        "finding": row.worst.finding,
    }


def _print(rows: Iterable[Rejudged]) -> None:
    from recovery.inventory import fold

    grouped: dict[tuple[str, str, str, str, str], list[str]] = {}
    for row in rows:
        key = (row.step, row.check, row.then, row.now.word, row.worst.finding)
        grouped.setdefault(key, []).append(row.node)
    for (step, check, then, now, finding), nodes in grouped.items():
        click.echo(f"{step}: {check} on {fold(nodes)}: {then} -> {now}: {finding}")
