"""`recover schedule`: preflights that start by themselves."""

from __future__ import annotations

import dataclasses
import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from recovery.cli.options import DURATION, state_option

if TYPE_CHECKING:
    from recovery.model.schedule import Schedule

units_option = click.option(
    "--units", metavar="DIR", help="Unit files in this folder, not the system's; start nothing."
)


@click.group("schedule")
def COMMAND() -> None:  # noqa: N802 - a constant of the shelf
    """Start preflights by themselves, with systemd or cron.

    \b
    recover schedule add cluster-a                          every day, passive checks
    recover schedule add cluster-a --preset weekly-deep     on Sundays, everything, idle nodes
    recover schedule list
    """  # noqa: D301 - the mark is a character for click


@COMMAND.command("add")
@click.argument("cluster")
@click.option(
    "--preset",
    type=click.Choice(["daily-quick", "weekly-deep"]),
    default="daily-quick",
    show_default=True,
    help="Depth, time, limits; each can be given otherwise.",
)
@click.option("--name", help="Its name; by default the cluster's and the preset's.")
@click.option("--depth", type=click.Choice(["quick", "standard", "full"]))
@click.option("--cron", metavar="EXPR", help='When: "0 5 * * *".')
@click.option("--calendar", metavar="EXPR", help='When, for systemd: "Mon..Fri 05:00".')
@click.option("--jitter", "jitter_s", type=DURATION, help="Spread the start over this time.")
@click.option("--limit", "limit_s", type=DURATION, help="End it after this time.")
@click.option(
    "--when-busy",
    type=click.Choice(["skip", "test", "wait"]),
    help="Nodes that run jobs: leave out, test anyway, or wait for.",
)
@click.option("--nodes", metavar="EXPR", help="Only these nodes.")
@click.option("--with", "keeper", type=click.Choice(["systemd", "cron"]), help="Who starts it.")
@click.option("--print", "only_print", is_flag=True, help="Print what would be installed; stop.")
@units_option
@state_option
def add(keeper: str | None, units: str | None, only_print: bool, **asked: Any) -> None:  # noqa: FBT001 - click gives it by name
    """Start preflights of CLUSTER again and again. One of the same name is replaced."""
    from recovery.app import scheduling

    schedule = scheduling.schedule_of(scheduling.Asked(**asked))
    name, clock = scheduling.timekeeper(keeper, {"units": units})
    if only_print:
        click.echo(clock.text(schedule), nl=False)
        return
    scheduling.prepare_folders(schedule)
    for line in clock.add(schedule):
        click.echo(line)
    click.echo(f"{schedule.name}: {when(schedule)}, by {name}: {shlex.join(schedule.argv)}")
    click.echo(f"next: recover schedule show {schedule.name}")


@COMMAND.command("list")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@units_option
def list_(fmt: str, units: str | None) -> None:
    """List what starts by itself on this machine."""
    from recovery.app import scheduling

    found = scheduling.everywhere({"units": units})
    if fmt == "json":
        rows = [{"by": name, **dataclasses.asdict(one)} for name, _, one in found]
        click.echo(json.dumps(rows, indent=1))
        return
    if not found:
        click.echo("nothing is scheduled; add it: recover schedule add CLUSTER")
    for name, _, schedule in found:
        click.echo(f"{schedule.name}  {when(schedule)}  by {name}  {schedule.about}")


@COMMAND.command("show")
@click.argument("name")
@units_option
def show(name: str, units: str | None) -> None:
    """Show exactly what is installed for NAME."""
    from recovery.app import scheduling

    _, keeper, schedule = scheduling.find(name, {"units": units})
    click.echo(keeper.text(schedule), nl=False)


@COMMAND.command("remove")
@click.argument("name")
@units_option
def remove(name: str, units: str | None) -> None:
    """Take NAME away; what it has run stays."""
    from recovery.app import scheduling

    by, keeper, schedule = scheduling.find(name, {"units": units})
    keeper.remove(schedule.name)
    click.echo(f"removed {schedule.name} from {by}")


def when(schedule: Schedule) -> str:
    """The time in one word or two."""
    return schedule.calendar or f'"{schedule.cron}"'
