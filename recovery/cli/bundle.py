"""`recover bundle`: what a vendor needs for a ticket about one node, and nothing private."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recovery.cli.options import state_option

if TYPE_CHECKING:
    from recovery.tickets import Ticket


@click.command("bundle")
@click.argument("run")
@click.argument("node")
@click.option(
    "-o", "--output", metavar="FILE", help="The archive; by default ticket-NODE-RUN.tar.gz here."
)
@click.option("--list", "only_list", is_flag=True, help="Say what would go in; write nothing.")
@click.option(
    "--with", "also", multiple=True, metavar="NAME", help="Evidence that is left out otherwise."
)
@state_option
def COMMAND(run: str, node: str, output: str | None, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Pack what RUN knows of NODE: evidence, verdicts, serials, firmware, event log, bug report.

    Secrets, user names, home folders, mail addresses, other hosts and their addresses are struck
    out; README.txt in the archive says how many. Look before you send it.
    """
    from recovery.app.bundling import read_ticket, write_ticket
    from recovery.app.files import state_folder
    from recovery.store.runs import find_run

    folder = find_run(state_folder(options["state"]), run)
    ticket, private, warning = read_ticket(folder, node, options["also"])
    if warning:
        click.echo(f"warning: {warning}", err=True)
    if options["only_list"]:
        click.echo("\n".join(_listed(ticket)))
        return
    path = Path(output or f"ticket-{node}-{ticket.run}.tar.gz")
    write_ticket(folder, ticket, private, path)
    click.echo(f"written: {path} ({path.stat().st_size:,} bytes)")
    click.echo(f"next: look what is in it before you send it: tar xzf {path}")


def _listed(ticket: Ticket) -> list[str]:
    lines = [f"{p.kept.size_bytes:>12,} B  {p.path}" for p in ticket.going]
    lines += [f"    left out   {p.kept.name} ({p.step}): {p.left_out}"
              for p in ticket.pieces if p.left_out]  # fmt: skip
    return [*lines, "and README.txt, verdicts.json, identity.json, manifest.json"]
