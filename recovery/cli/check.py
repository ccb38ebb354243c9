"""`recover check`: ask the machine that it runs on, for Slurm's health check and prolog."""

from __future__ import annotations

from typing import Any

import click

from recovery.cli.options import DURATION


@click.command("check")
@click.argument("names", nargs=-1)
@click.option("--local", is_flag=True, help="This machine; the only one that can be asked here.")
@click.option("--budget", type=DURATION, default="5s", show_default=True, help="All within this.")
@click.option("--cluster", metavar="NAME", help="The inventory that knows this machine.")
@click.option("--profile", metavar="NAME", help="Its hardware profile.")
@click.option("--allow-unknown", is_flag=True, help="What could not be told does not fail.")
@click.option(
    "--drain", is_flag=True, help="Drain this node in Slurm when it fails; give it back when well."
)
def COMMAND(names: tuple[str, ...], **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Ask this machine the checks NAMES; by default the passive ones of the GPUs.

    Exit status: 0 well, 1 something failed, 3 something could not be told.

    \b
    HealthCheckProgram:  recover check --local --budget 30s --profile h100-sxm8 --drain
    Prolog:              recover check --local --budget 5s --allow-unknown
    """  # noqa: D301 - the mark is a character for click
    import os

    from recovery.app import local_checking

    if not options["local"]:
        raise click.UsageError("only this machine: --local; for a cluster: recover preflight")
    _, raw = local_checking.node_here(options["cluster"], options["profile"])
    asked = names or local_checking.PASSIVE
    said = local_checking.ask(asked, raw, budget_s=options["budget"])
    click.echo("\n".join(local_checking.told(said)))
    if options["drain"]:
        words = local_checking.settle(said, os.environ.get("SLURM_SCRIPT_CONTEXT", ""))
        if words:
            click.echo(words)
    code = local_checking.exit_code(said, unknown_passes=options["allow_unknown"])
    raise SystemExit(code)
