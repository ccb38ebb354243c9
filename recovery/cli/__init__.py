"""A shelf: one click command per file, loaded only when named.

``SUMMARIES`` is what `recover --help` prints, so that it need not import a single command; a test
holds it against the commands themselves.
"""

from __future__ import annotations

from importlib import import_module

import click

SUMMARIES = {
    "run": "Carry a runbook out on a cluster.",
    "resume": "Go on with a run that was stopped.",
    "plan": "Show what a run would do; touches nothing.",
    "preflight": "Are there healthy nodes for a job, and which?",
    "gate": "Were enough nodes healthy lately? Touches nothing.",
    "nodes": "State, reason and history of every node.",
    "return": "Test a repaired node, then give it back.",
    "power": "Switch nodes by their BMCs, or ask how they stand.",
    "schedule": "Start preflights by themselves.",
    "runs": "List the runs and how they ended.",
    "report": "Print or write a report of a run.",
    "serve": "Show the runs on a web page, live.",
    "bundle": "Pack one node's evidence for a vendor's ticket.",
    "monitoring": "Alert rules and a dashboard to export.",
    "rejudge": "Judge a run's evidence again with today's rules.",
    "baseline": "Keep a golden run, and compare with it.",
    "lint": "Check runbooks and inventories.",
    "schema": "Print the JSON Schema for editors.",
    "judge": "Judge captured output offline.",
    "check": "Ask this machine, within seconds; for Slurm's hooks.",
    "checks": "List the checks and their exact commands.",
    "explain": "Explain an Xid or a finding.",
    "triage": "Name the first error of a crashed training.",
    "checkpoint": "Inspect checkpoints; advise an interval.",
    "verify": "Compare training logs before and after a resume.",
    "hosts": "Trust new host keys after a re-image.",
    "lab": "The simulated cluster.",
}


class LazyGroup(click.Group):
    """A group whose commands are files of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, most used first."""
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the one command that is named."""
        if cmd_name not in SUMMARIES:
            return None
        module = import_module(f"recovery.cli.{cmd_name}")
        command: click.Command = module.COMMAND
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with a "did you mean" for a misspelt command."""
        if args and args[0] not in SUMMARIES and not args[0].startswith("-"):
            from recovery.registry import did_you_mean

            hint = did_you_mean(args[0], list(SUMMARIES))
            ctx.fail(f"no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Prints the summaries without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="recover", prog_name="recover")
def ROOT() -> None:  # noqa: N802 - a constant of the shelf
    """Bring a GPU training cluster back after a power loss, and prove it.

    \b
    recover plan cluster-a      show what would be done
    recover run cluster-a       do it
    recover resume last         go on after an interruption
    """  # noqa: D301 - the mark is a character for click
