"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

DAY_S = 86400.0


if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # not generic before click 8.2


class Duration(_Seconds):
    """``90s``, ``15m``, ``24h``, ``30d`` -> seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The duration in seconds; a number without a unit is refused."""
        from recovery.plan import seconds

        if isinstance(value, int | float):
            return float(value)
        days = str(value).removesuffix("d")
        if days != value and days.isdecimal():
            return int(days) * DAY_S
        try:
            return seconds(str(value))
        except ValueError:
            self.fail(f"{value!r} is no duration; write 90s, 15m, 24h or 30d", param, ctx)


DURATION = Duration()
Command = TypeVar("Command", bound=Callable[..., Any])


def plan_options(command: Command) -> Command:
    """What a plan is made from, beside the cluster."""
    for option in (
        click.option("--seed", type=int, help="Seed of all that looks random."),
        click.option("--nodes", metavar="EXPR", help="Only these nodes: node[001-064], @group."),
        click.option(
            "-e",
            "--set",
            "overrides",
            multiple=True,
            metavar="K=V",
            help="Set a runbook variable; may be repeated.",
        ),
        click.option("--runbook", default="power-loss", show_default=True, metavar="NAME"),
    ):
        command = option(command)
    return command


def state_option(command: Command) -> Command:
    """Where runs are kept."""
    return click.option(
        "--state", metavar="DIR", envvar="RECOVER_STATE", help="Folder of the runs."
    )(command)


def sitting_options(command: Command) -> Command:
    """How one sitting of a run behaves."""
    for option in (
        click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text"),
        click.option("--quiet", is_flag=True, help="Only the summary."),
        click.option("--take-over", is_flag=True, help="Stop the run that holds the cluster."),
        click.option(
            "--approve", multiple=True, metavar="ID", help="Approve this step beforehand."
        ),
        click.option("--yes", is_flag=True, help="Approve whatever is asked."),
    ):
        command = option(command)
    return state_option(command)


def pairs(words: tuple[str, ...]) -> dict[str, str]:
    """``k=v`` words as a mapping.

    Raises:
        click.BadParameter: a word without ``=``.
    """
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{word!r} is not NAME=VALUE", param_hint="-e")
        found[name] = value
    return found
