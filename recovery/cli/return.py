"""`recover return`: test repaired nodes, and only then give them back."""  # noqa: N999 - the command's name

from __future__ import annotations

from typing import Any

import click

from recovery.cli.options import pairs, sitting_options


@click.command("return")
@click.argument("cluster")
@click.argument("expression", metavar="NODES")
@click.option("--partners", metavar="EXPR", help="Good, idle nodes to test with; else chosen.")
@click.option("-e", "--set", "overrides", multiple=True, metavar="K=V", help="Runbook variables.")
@sitting_options
def COMMAND(cluster: str, expression: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Run the runbook node-return on NODES of CLUSTER; release them when all of it passed.

    Released are only nodes that recover drained or cordoned itself.
    """
    from recovery.app import nodes, preparing
    from recovery.app.control import Control, RealClock
    from recovery.app.files import state_folder
    from recovery.app.groups import RunGroups
    from recovery.app.running import start
    from recovery.app.scheduler import use_of
    from recovery.cli.sitting import watch
    from recovery.inventory import select
    from recovery.store.runs import find_run

    inventory = preparing.read_inventory(cluster)
    state = state_folder(options["state"])
    returned = RunGroups(inventory, state).select(expression)
    if options["partners"]:
        mates = select(inventory, options["partners"])
    else:
        stories = nodes.stories_of(state, inventory.name)
        use = use_of(inventory.variables, inventory.nodes)
        mates = nodes.partners(inventory, stories, use, returned)
    made = nodes.prepare_return(cluster, returned, mates, pairs(options["overrides"]))
    run, end = watch(lambda sitting: start(made, sitting), options)
    if end.exit_code != 0:
        click.echo(f"not released: {expression}", err=True)
        raise SystemExit(end.exit_code)
    clock = RealClock(Control())
    said = nodes.give_back(find_run(state, run), inventory.variables, returned, clock)
    click.echo(said, err=options["fmt"] == "json")
