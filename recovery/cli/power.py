"""`recover power`: switch nodes by their BMCs, or ask how they stand."""

from __future__ import annotations

from typing import Any

import click

from recovery.cli.options import pairs, sitting_options


@click.command("power")
@click.argument("cluster")
@click.argument("expression", metavar="NODES")
@click.argument("action", type=click.Choice(["status", "on", "off", "cycle"]))
@click.option(
    "--most", metavar="N|N%|all", help="Most nodes that may go off; else 10%, at least 4."
)
@click.option("-e", "--set", "overrides", multiple=True, metavar="K=V", help="Runbook variables.")
@sitting_options
def COMMAND(cluster: str, expression: str, action: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Switch NODES of CLUSTER by their BMCs: status, on, off, or cycle (off, 30 s, on).

    Event logs and sensors are saved first. A BMC that does not say how its node stands gets no
    order. Exit status: 0 all as asked, 1 some not, 3 BMCs gave no answer, 2 wrong input.
    """
    from recovery.app import bmcs, powering
    from recovery.app.files import state_folder
    from recovery.app.running import start
    from recovery.cli.sitting import watch
    from recovery.store.runs import find_run

    most = {"most": options["most"]} if options["most"] else {}
    made = powering.prepare(cluster, expression, action, most | pairs(options["overrides"]))
    bmcs.check(made.inventory.nodes[name] for name in made.plan.nodes)
    run, end = watch(lambda sitting: start(made, sitting), options)
    folder = find_run(state_folder(options["state"]), run)
    click.echo("\n".join(powering.told(folder, cluster)), err=options["fmt"] == "json")
    raise SystemExit(end.exit_code)
