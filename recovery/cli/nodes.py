"""`recover nodes`: state, reason and history of every node."""

from __future__ import annotations

import json
from typing import Any

import click

from recovery.cli.options import DURATION, state_option


@click.command("nodes")
@click.argument("cluster")
@click.argument("expression", required=False, default="all", metavar="[NODES]")
@click.option(
    "--since", type=DURATION, default="30d", show_default=True, help="Leave out runs before that."
)
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@state_option
def COMMAND(cluster: str, expression: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Say how the nodes of CLUSTER stand, by the journals of its runs and its scheduler."""
    import time

    from recovery.app import nodes, preparing
    from recovery.app.files import state_folder
    from recovery.app.groups import RunGroups
    from recovery.app.scheduler import Use, use_of
    from recovery.errors import SchedulerError

    inventory = preparing.read_inventory(cluster)
    names = RunGroups(inventory, state_folder(options["state"])).select(expression)
    now = time.time()
    since = now - options["since"]
    stories = nodes.stories_of(state_folder(options["state"]), inventory.name, since=since)
    try:
        use = use_of(inventory.variables, names)
    except SchedulerError as error:
        use = Use()
        click.echo(f"scheduler: {error.message}", err=True)
    found = nodes.rows(inventory, stories, use, names)
    if options["fmt"] == "json":
        click.echo(json.dumps([nodes.as_values(row) for row in found], indent=1))
        return
    click.echo("\n".join(nodes.told(found, cluster, now=now)))
