"""`recover preflight`: are there enough healthy nodes for a job, and which ones?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from recovery.cli.options import DURATION, state_option

if TYPE_CHECKING:
    from recovery.app.preflight import Choice, Wanted
    from recovery.app.scheduler import Use
    from recovery.model.inventory import Inventory

EPILOG = """\b
recover preflight cluster-a --for train.sbatch && sbatch train.sbatch
sbatch $(recover preflight cluster-a --for train.sbatch --format sbatch) train.sbatch
recover preflight cluster-a --for train.sbatch -- --nodes=64     as sbatch would be told
"""


@click.command("preflight", epilog=EPILOG)
@click.argument("cluster")
@click.argument("sbatch_options", nargs=-1)
@click.option(
    "--depth",
    type=click.Choice(["quick", "standard", "full"]),
    default="standard",
    show_default=True,
    help="quick: passive checks; standard: and pairs; full: and leaves, rails, burn-in.",
)
@click.option(
    "--nodes",
    multiple=True,
    metavar="N|EXPR",
    help="How many must be healthy, or among which nodes; may be given for both.",
)
@click.option("--for", "job", metavar="FILE", help="A batch script: its nodes and partition.")
@click.option(
    "--when-busy",
    type=click.Choice(["skip", "test", "wait"]),
    help="Nodes that run jobs: leave out, test anyway (default when quick), or wait for.",
)
@click.option(
    "--wait-limit",
    type=DURATION,
    default="1h",
    show_default=True,
    help="Longest wait for busy nodes.",
)
@click.option("-e", "--set", "overrides", multiple=True, metavar="K=V", help="Runbook variables.")
@click.option(
    "--format",
    "answer",
    type=click.Choice(["text", "json", "sbatch"]),
    default="text",
    help="sbatch: only the options for sbatch, on standard output.",
)
@click.option("--quiet", is_flag=True, help="Only the summary.")
@click.option("--take-over", is_flag=True, help="Stop the run that holds the cluster.")
@state_option
def COMMAND(cluster: str, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Test CLUSTER before a job, and name the nodes to take: the fewest leaves, all healthy.

    Exit status: 0 enough healthy nodes, 1 too few, 3 too few answers to say, 2 wrong input.
    """
    from recovery.app import preflight, preparing

    inventory = preparing.read_inventory(cluster)
    words, job, more = options["nodes"], options["job"], options["sbatch_options"]
    if more and (job is None or not more[0].startswith("-")):
        raise click.UsageError(f"unexpected {more[0]!r}; options of sbatch go with --for, after --")
    asked = preflight.wanted(inventory, words, job=job, options=more)
    use = _use(asked, inventory, options)
    nodes, untested = preflight.without_busy(asked, use)
    choice, run = preflight.too_few_idle(asked, nodes, untested), ""
    if choice is None:
        choice, run = _carried_out(cluster, asked, (nodes, untested), inventory, options)
    _answer(choice, inventory, run, options["answer"])
    raise SystemExit(choice.exit_code)


def _use(asked: Wanted, inventory: Inventory, options: dict[str, Any]) -> Use:
    from recovery.app.control import Control, RealClock
    from recovery.app.scheduler import Use, use_of, wait_until_idle
    from recovery.errors import InterruptedRunError

    when = options["when_busy"] or ("test" if options["depth"] == "quick" else "skip")
    if when == "test":
        return Use()
    if when == "skip":
        return use_of(inventory.variables, asked.nodes)
    control = Control()
    control.install()
    try:
        return wait_until_idle(
            lambda: use_of(inventory.variables, asked.nodes),
            RealClock(control),
            limit_s=options["wait_limit"],
            say=lambda words: click.echo(words, err=True),
        )
    except InterruptedRunError as error:
        click.echo(f"{error.message}: nothing was tested", err=True)
        raise SystemExit(error.exit_code) from error


def _carried_out(
    cluster: str,
    asked: Wanted,
    parts: tuple[tuple[str, ...], tuple[str, ...]],
    inventory: Inventory,
    options: dict[str, Any],
) -> tuple[Choice, str]:
    from recovery.app import preflight
    from recovery.app.files import state_folder
    from recovery.app.running import start
    from recovery.cli.options import pairs
    from recovery.cli.sitting import watch
    from recovery.engine.history import story_of
    from recovery.store.journal import read_journal
    from recovery.store.runs import find_run

    nodes, untested = parts
    overrides = pairs(options["overrides"])
    made = preflight.prepare(cluster, asked, nodes, depth=options["depth"], overrides=overrides)
    sitting = {"yes": False, "approve": (), "fmt": "text", **options}
    apart = options["answer"] != "text"
    run, end = watch(lambda go: start(made, go), sitting, apart=apart)
    folder = find_run(state_folder(options["state"]), run)
    story = story_of(read_journal(folder.journal))
    return preflight.choose(asked, inventory, story, end, untested), run


def _answer(choice: Choice, inventory: Inventory, run: str, answer: str) -> None:
    from recovery.app import preflight

    if answer == "json":
        click.echo(json.dumps(preflight.as_values(choice, inventory, run), indent=1))
        return
    lines = preflight.told(choice, inventory, run)
    if answer == "sbatch":
        click.echo("\n".join(lines), err=True)
        if choice.exit_code == 0:
            click.echo(preflight.sbatch_options(choice))
        return
    click.echo("\n" + "\n".join(lines))
