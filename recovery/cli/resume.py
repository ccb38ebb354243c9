"""`recover resume`: go on with a run that was interrupted, crashed, or stopped at a gate."""

from __future__ import annotations

from typing import Any

import click

from recovery.cli.options import sitting_options


@click.command("resume")
@click.argument("run", default="last")
@sitting_options
def COMMAND(run: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Go on with RUN: its id, the beginning of it, or `last`."""
    from recovery.app.running import resume
    from recovery.cli.sitting import carry_out

    carry_out(lambda sitting: resume(run, sitting), options)
