"""`recover report`: print or write a report of a run."""

from __future__ import annotations

import click

from recovery.cli.options import state_option


@click.command("report")
@click.argument("run", default="last")
@click.option(
    "--format",
    "fmt",
    default="text",
    show_default=True,
    metavar="NAME",
    help="text, json, md, junit, html, prometheus",
)
@click.option("-o", "--output", metavar="FILE", help="Write it there instead of printing.")
@state_option
def COMMAND(run: str, fmt: str, output: str | None, state: str | None) -> None:  # noqa: N802 - a constant of the shelf
    """Print a report of RUN (its id, the beginning of it, or `last`), from its journal alone."""
    from pathlib import Path

    from recovery.app.files import state_folder
    from recovery.app.reporting import render
    from recovery.errors import InputError
    from recovery.store.runs import find_run

    text = render(find_run(state_folder(state), run), fmt)
    if not output:
        click.echo(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{output}: cannot be written: {error.strerror}", remedy="name another file with -o"
        ) from error
    click.echo(f"written: {output}")
