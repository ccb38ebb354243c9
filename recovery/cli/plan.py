"""`recover plan`: what a run would do, offline."""

from __future__ import annotations

import json
from typing import Any

import click

from recovery.cli.options import plan_options, state_option


@click.command("plan")
@click.argument("cluster")
@plan_options
@state_option
@click.option("--probe", is_flag=True, help="Really run the steps that only read.")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def COMMAND(cluster: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Show what a run on CLUSTER would do: every step, its nodes, commands and limits.

    Offline: nothing is asked of a node. Values that a step finds out are shown as known later.
    With --probe the steps that only read are carried out; all others stay not-run.
    """
    from recovery.cli.sitting import carry_out, prepared
    from recovery.plan import outline, plan_as_values

    made = prepared(cluster, options)
    if options["probe"]:
        from recovery.app.running import start

        sitting = {"yes": False, "approve": (), "take_over": False, "quiet": False, **options}
        carry_out(lambda go: start(made, go), sitting, probe=True)
    elif options["fmt"] == "json":
        click.echo(json.dumps(plan_as_values(made.plan), indent=1))
    else:
        click.echo(outline(made.plan, made.fold), nl=False)
