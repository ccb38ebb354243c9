"""`recover run`: carry a runbook out on a cluster."""

from __future__ import annotations

from typing import Any

import click

from recovery.cli.options import plan_options, sitting_options


@click.command("run")
@click.argument("cluster")
@plan_options
@sitting_options
@click.option("--dry-run", is_flag=True, help="Show the plan and stop; the same as `recover plan`.")
def COMMAND(cluster: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Carry a runbook out on CLUSTER: a name under inventories/, or the path of an inventory."""
    from recovery.cli.sitting import carry_out, prepared

    plan = prepared(cluster, options)
    if options["dry_run"]:
        from recovery.plan import outline

        click.echo(outline(plan.plan, plan.fold))
        return
    from recovery.app.running import start

    carry_out(lambda sitting: start(plan, sitting), options)
