"""One sitting of a run at the terminal: the view, the end in words, the exit status."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from recovery.app.files import state_folder
from recovery.app.preparing import Prepared, prepare
from recovery.app.running import RunOptions
from recovery.cli.options import pairs
from recovery.engine.ending import RunEnd
from recovery.inventory import fold
from recovery.reports.terminal import open_view
from recovery.store.codec import encode


def prepared(cluster: str, options: Mapping[str, Any]) -> Prepared:
    """The plan that the options ask for; what looks odd in the inventory is said once."""
    plan = prepare(
        cluster,
        runbook=options["runbook"],
        overrides=pairs(options["overrides"]),
        nodes=options["nodes"],
        seed=options["seed"],
    )
    for warning in plan.inventory.warnings:
        click.echo(f"warning: {warning}", err=True)
    return plan


def carry_out(
    go: Callable[[RunOptions], tuple[str, RunEnd]], options: Mapping[str, Any], **more: Any
) -> None:
    """Carries a run out with a live view and exits with its status."""
    _, end = watch(go, options, **more)
    raise SystemExit(end.exit_code)


def watch(
    go: Callable[[RunOptions], tuple[str, RunEnd]],
    options: Mapping[str, Any],
    *,
    apart: bool = False,
    **more: Any,
) -> tuple[str, RunEnd]:
    """Carries a run out with a live view, and says how it ended.

    ``apart``: standard output is for an answer of its own, so the view goes to standard error.
    """
    as_json = options["fmt"] == "json" and not apart
    stream = sys.stderr if as_json or apart else sys.stdout
    view = open_view(stream, fold, now=time.time, quiet=options["quiet"] or as_json)
    sitting = RunOptions(
        state=state_folder(options["state"]),
        yes=options["yes"],
        approvals=frozenset(options["approve"]),
        take_over=options["take_over"],
        listen=(lambda e: print_json(e)) if as_json else view.tell,
        recall=view.recall,
        say=view.say,
        **more,
    )
    with view:
        run, end = go(sitting)
    if not as_json:
        click.echo(view.summary(), err=apart)
        click.echo(f"\nreport: recover report {run}", err=apart)
        page = state_folder(options["state"]) / "runs" / run / "reports" / "report.html"
        if page.is_file():
            click.echo(f"        {page}", err=apart)
    return run, end


def print_json(event: Any) -> None:
    """One event as a JSON line."""
    click.echo(json.dumps(encode(event), default=str))
