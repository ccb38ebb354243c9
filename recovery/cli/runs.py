"""`recover runs`: list the runs and how they ended."""

from __future__ import annotations

import json
from typing import Any

import click

from recovery.cli.options import state_option


@click.command("runs")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@state_option
def COMMAND(fmt: str, state: str | None) -> None:  # noqa: N802 - a constant of the shelf
    """List the runs, newest first: when, cluster, runbook, how it ended."""
    from recovery.app.files import state_folder
    from recovery.app.listing import list_runs

    rows = list_runs(state_folder(state))
    if fmt == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        click.echo("no runs yet; start one: recover run CLUSTER")
    for row in rows:
        click.echo(_line(row))


def _line(row: dict[str, Any]) -> str:
    text = f"{row['run']}  {row['cluster']}  {row['runbook']}  {row['state']}"
    return f"{text}  {row['reason']}".rstrip()
