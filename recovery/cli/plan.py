"""`recover plan`: what a run would do, offline."""

from __future__ import annotations

import json
from typing import Any

import click

from recovery.cli.options import plan_options


@click.command("plan")
@click.argument("cluster")
@plan_options
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def COMMAND(cluster: str, fmt: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Show what a run on CLUSTER would do: every step, its nodes, commands and limits.

    Offline: nothing is asked of a node. Values that a step finds out are shown as known later.
    """
    from recovery.cli.sitting import prepared
    from recovery.plan import outline, plan_as_values

    made = prepared(cluster, options)
    if fmt == "json":
        click.echo(json.dumps(plan_as_values(made.plan), indent=1))
    else:
        click.echo(outline(made.plan, made.fold), nl=False)
