"""`recover lab`: the simulated cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recovery.lab.layout import Layout


@click.group("lab")
@click.option("--dir", "folder", type=click.Path(), default=None, help="The lab's folder.")
@click.pass_context
def COMMAND(ctx: click.Context, folder: str | None) -> None:  # noqa: N802 - a constant of the shelf
    """The simulated cluster: real SSH servers on loopback, scripted faults, a real small training.

    Nothing in it needs root, a GPU or a network.
    """
    ctx.obj = folder


_folder = click.option(
    "--dir", "folder", type=click.Path(), default=None, help="The lab's folder.", expose_value=True
)


def _layout(ctx: click.Context, folder: str | None) -> Layout:
    from recovery.lab.layout import Layout, default_dir

    chosen = folder or ctx.obj
    return Layout(Path(chosen).expanduser().absolute() if chosen else default_dir())


@COMMAND.command("up")
@_folder
@click.option("--nodes", default=8, show_default=True, type=click.IntRange(1, 512))
@click.option("--port", default=22101, show_default=True, help="First port; 0 takes free ones.")
@click.option("--fresh", is_flag=True, help="Forget what the nodes had, and start anew.")
@click.option("--scenario", default="none", show_default=True, help="none, power-loss, ...")
@click.option("--torch", is_flag=True, help="The nodes' python3 is this one, with its packages.")
@click.option("--isolate", is_flag=True, help="/var/log, /tmp, /data are each node's own (slower).")
@click.pass_context
def up(ctx: click.Context, /, folder: str | None, **options: Any) -> None:
    """Start the lab in the background; returns when all nodes answer."""
    import sys

    from recovery.lab import client
    from recovery.lab.farm import Plan

    layout = _layout(ctx, folder)
    python = sys.executable if options["torch"] else ""
    plan = Plan(options["nodes"], options["port"], python, options["isolate"])
    started = client.start(layout, plan, fresh=options["fresh"])
    if not started:
        click.echo(f"the lab is up already: {layout.inventory}")
        return
    sentence = client.ask(layout, "scenario", name=options["scenario"])
    click.echo(f"the lab is up, {options['nodes']} nodes; {sentence}")
    click.echo(f"inventory: {layout.inventory}")


@COMMAND.command("status")
@_folder
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def status(ctx: click.Context, folder: str | None, style: str) -> None:
    """Say what every node is like: power, faults, processes."""
    import json

    from recovery.lab import client

    answer = client.ask(_layout(ctx, folder), "status")
    if style == "json":
        click.echo(json.dumps(answer, indent=1))
        return
    click.echo(f"inventory: {answer['inventory']}")
    for node in answer["nodes"]:
        power = "on" if node["power"] else "off"
        faults = ", ".join(f"{k} ({v})" if v else k for k, v in node["faults"].items()) or "well"
        running = len(node["processes"])
        click.echo(f"{node['name']}  127.0.0.1:{node['port']}  {power:3}  {faults}"
                   + (f"  {running} processes" if running else ""))  # fmt: skip


@COMMAND.command("break")
@click.argument("fault")
@click.argument("node")
@_folder
@click.option("--value", default=None, help="What exactly: a GPU, an adapter, a command...")
@click.pass_context
def break_node(
    ctx: click.Context, fault: str, node: str, folder: str | None, value: str | None
) -> None:
    """Break something on a node (`recover lab faults` lists what)."""
    from recovery.lab import client

    words = {"fault": fault, "nodes": [node], "value": value}
    taken = client.ask(_layout(ctx, folder), "break", **words)
    click.echo(f"{node}: {fault}{f' ({taken})' if taken else ''}")


@COMMAND.command("mend")
@click.argument("node")
@_folder
@click.pass_context
def mend(ctx: click.Context, node: str, folder: str | None) -> None:
    """Take all faults of a node away."""
    from recovery.lab import client

    gone = client.ask(_layout(ctx, folder), "mend", nodes=[node])
    click.echo(f"{node}: {', '.join(gone) or 'nothing'} mended")


@COMMAND.command("power-loss")
@click.argument("nodes", nargs=-1)
@_folder
@click.pass_context
def power_loss(ctx: click.Context, nodes: tuple[str, ...], folder: str | None) -> None:
    """Take the power of NODES (all when none is named): every process ends at once."""
    from recovery.lab import client

    ended = client.ask(_layout(ctx, folder), "power-loss", nodes=list(nodes))
    click.echo(f"{' '.join(nodes) or 'every node'}: off, {ended} processes ended")


@COMMAND.command("power-on")
@click.argument("nodes", nargs=-1)
@_folder
@click.pass_context
def power_on(ctx: click.Context, nodes: tuple[str, ...], folder: str | None) -> None:
    """Give NODES (all when none is named) their power back."""
    from recovery.lab import client

    back = client.ask(_layout(ctx, folder), "power-on", nodes=list(nodes))
    click.echo(f"{' '.join(back) or 'no node'}: on")


@COMMAND.command("faults")
def faults() -> None:
    """List the faults."""
    from recovery.lab.rendering import shelf

    for fault in shelf().values():
        value = f" (--value: {fault.value_help}; {fault.default})" if fault.value_help else ""
        click.echo(f"{fault.name:18} {fault.about}{value}")


@COMMAND.command("down")
@_folder
@click.pass_context
def down(ctx: click.Context, folder: str | None) -> None:
    """Stop the lab and every process of its nodes; what the nodes had stays on disk."""
    from recovery.lab import client

    was_up = client.stop(_layout(ctx, folder))
    click.echo("the lab is down" if was_up else "the lab was not up")
