"""`recover gate`: enough healthy nodes, by what the last runs said?"""

from __future__ import annotations

import json
from typing import Any

import click

from recovery.cli.options import DURATION, state_option

HISTORY_S = 30 * 86400.0  # runs that ended before are not read


@click.command("gate")
@click.argument("cluster")
@click.option(
    "--max-age", type=DURATION, default="24h", show_default=True, help="Oldest answer that counts."
)
@click.option("--nodes", multiple=True, metavar="N|EXPR", help="How many, or among which.")
@click.option("--for", "job", metavar="FILE", help="A batch script: its nodes and partition.")
@click.option(
    "--depth",
    type=click.Choice(["quick", "standard"]),
    default="standard",
    show_default=True,
    help="quick: checks are enough; standard: the network must have been tested too.",
)
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@state_option
def COMMAND(cluster: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Say whether CLUSTER has enough healthy nodes, from the journals of its runs.

    No node is touched. Exit status: 0 enough, 1 too few, 3 too few fresh answers to say.
    """
    import time

    from recovery.app import gating, nodes, preflight, preparing
    from recovery.app.files import state_folder
    from recovery.engine.health import histories

    inventory = preparing.read_inventory(cluster)
    asked = preflight.wanted(inventory, options["nodes"], job=options["job"])
    age_s, now = options["max_age"], time.time()
    since = now - max(age_s, HISTORY_S)
    stories = nodes.stories_of(state_folder(options["state"]), inventory.name, since=since)
    answer = gating.ask(
        histories(stories),
        asked.nodes,
        needed=asked.least or _least(inventory.variables, len(asked.nodes)),
        oldest=now - age_s,
        with_mesh=options["depth"] != "quick",
    )
    if options["fmt"] == "json":
        click.echo(json.dumps(gating.as_values(answer), indent=1))
    else:
        click.echo("\n".join(gating.told(answer, cluster, age_s=age_s)))
    raise SystemExit(answer.exit_code)


def _least(variables: Any, n_nodes: int) -> int:
    """The inventory's ``min_nodes``, else all; never more than are asked about."""
    named = variables.get("min_nodes")
    return min(named, n_nodes) if isinstance(named, int) and named > 0 else n_nodes
