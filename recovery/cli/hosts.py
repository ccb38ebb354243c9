"""`recover hosts`: host keys of nodes, looked at and trusted by one explicit command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from recovery.transports.ssh.rescan import Seen

TRUSTED, DECLINED, UNDECIDED = 0, 1, 3


@click.group("hosts")
def COMMAND() -> None:  # noqa: N802 - a constant of the shelf
    """Trust new host keys after a re-image."""


@COMMAND.command("trust")
@click.argument("cluster")
@click.argument("nodes", metavar="NODES")
@click.option("--yes", is_flag=True, help="Trust without asking.")
@click.pass_context
def trust(ctx: click.Context, cluster: str, nodes: str, *, yes: bool) -> None:
    """Fetch the host keys of NODES (node[001-004], @group) and trust them from now on.

    Shows the fingerprints that are known and those that the nodes show; compare them with what
    the console of the node or your provisioning says. The old keys of these nodes are removed.

    Exit status: 0 all are trusted, 1 you said no, 3 some node shows no key.
    """
    from recovery.transports.ssh.rescan import trust as write_down

    seen = _look(cluster, nodes)
    silent = [s for s in seen if s.problem]
    new = [s for s in seen if not s.problem and not s.is_known]
    _show(silent, new, seen)
    if new and not (yes or _agreed(new)):
        ctx.exit(DECLINED)
    for one in new:
        write_down(one)
    if new:
        files = ", ".join(sorted({one.file for one in new}))
        click.echo(f"trusted: {_folded(new)} in {files}")
    ctx.exit(UNDECIDED if silent else TRUSTED)


@COMMAND.command("show")
@click.argument("cluster")
@click.argument("nodes", metavar="NODES", default="@all")
@click.pass_context
def show(ctx: click.Context, cluster: str, nodes: str) -> None:
    """Show which host keys NODES show and which are known; changes nothing.

    Exit status: 0 all are known, 1 some are new or changed, 3 some node shows no key.
    """
    seen = _look(cluster, nodes)
    silent = [s for s in seen if s.problem]
    new = [s for s in seen if not s.problem and not s.is_known]
    _show(silent, new, seen)
    if new:
        click.echo(f"next: recover hosts trust {cluster} {_quoted(_folded(new))}")
    ctx.exit(UNDECIDED if silent else DECLINED if new else TRUSTED)


def _look(cluster: str, expression: str) -> tuple[Seen, ...]:
    from recovery.app.preparing import read_inventory
    from recovery.errors import InputError
    from recovery.inventory.selection import select
    from recovery.transports.ssh.rescan import look

    inventory = read_inventory(cluster)
    chosen = [inventory.nodes[name] for name in select(inventory, expression)]
    by_ssh = [node for node in chosen if node.transport == "ssh"]
    if not by_ssh:
        raise InputError(
            f"{cluster}: none of {expression} is reached by ssh",
            remedy="name nodes whose transport is ssh",
        )
    return look(by_ssh)


def _show(silent: list[Seen], new: list[Seen], seen: tuple[Seen, ...]) -> None:
    from recovery.transports.ssh.rescan import describe

    for one in silent:
        click.echo(f"{one.node}: no key: {one.problem}")
    for one in sorted(new, key=lambda s: not s.is_changed):
        click.echo(f"{one.node} ({one.name}): {'CHANGED' if one.is_changed else 'new'}")
        click.echo(f"  known  {describe(one.known)}")
        click.echo(f"  shows  {describe(one.shown)}")
    known = [one for one in seen if one.is_known]
    if known:
        click.echo(f"known already: {_folded(known)}")


def _agreed(new: list[Seen]) -> bool:
    import sys

    if not sys.stdin.isatty():
        click.echo("not trusted: nobody to ask; compare the fingerprints, then add --yes", err=True)
        return False
    return click.confirm(f"Trust these keys of {_folded(new)}?", default=False)


def _folded(seen: Iterable[Seen]) -> str:
    from recovery.inventory.hostlist import fold

    folded: Callable[[Iterable[str]], str] = fold
    return folded(one.node for one in seen)


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
