"""`recover checks`: what can be asked, and the exact command behind each question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recovery.engine.judging import AnyCheck


@click.command("checks")
@click.option("--commands", is_flag=True, help="Only the exact commands, once each, for sudoers.")
@click.option("--markdown", is_flag=True, help="A table for documents.")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def COMMAND(*, commands: bool, markdown: bool, fmt: str) -> None:  # noqa: N802 - a constant of the shelf
    """List the checks: name, question, command, effect, needs root or not, profiles that help."""
    from recovery.model.check import Check
    from recovery.registry import collect

    found = tuple(collect("recovery.checks", Check).values())
    if commands:
        for line in dict.fromkeys(check.command for check in found):
            click.echo(line)
        return
    rows = [row(check, _profiles()) for check in found]
    if fmt == "json":
        click.echo(json.dumps(rows, indent=1))
    elif markdown:
        click.echo("\n".join(as_markdown(rows)))
    else:
        click.echo("\n".join(_as_text(rows)))


_EFFECTS = {
    "active": "loads the GPUs: ask it only where no job runs",
    "writes": "leaves a file on the node",
}


def row(check: AnyCheck, profiles: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """One check as JSON-able values."""
    return {
        "check": check.name,
        "question": check.question,
        "command": check.command,
        "effect": check.effect.value,
        "root": check.needs_root,
        "needs": check.needs,
        "expects": list(check.expects),
        "profiles": [name for name, keys in profiles.items() if keys & set(check.expects)],
        "timeout_s": check.timeout_s,
    }


def _profiles() -> dict[str, frozenset[str]]:
    from recovery.app import find_profile, profile_names
    from recovery.inventory import read_profile

    return {
        name: frozenset(read_profile(*find_profile(name)).expectations) for name in profile_names()
    }


def as_markdown(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A Markdown table, one check a line."""
    lines = [
        "| check | question | command | effect | root | expectations from |",
        "|---|---|---|---|---|---|",
    ]
    for one in rows:
        command = str(one["command"]).replace("|", "\\|")
        cells = (
            one["check"],
            one["question"],
            f"`{command}`",
            one["effect"],
            "yes" if one["root"] else "",
            ", ".join(one["profiles"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _as_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    for one in rows:
        lines.append(f"{one['check']:20}{one['question']}")
        lines.append(f"{'':20}$ {one['command']}")
        notes = [_EFFECTS[one["effect"]]] if one["effect"] in _EFFECTS else []
        notes += ["needs root"] if one["root"] else []
        notes += [f"needs {one['needs']}"] if one["needs"] else []
        notes += [f"profiles: {', '.join(one['profiles'])}"] if one["profiles"] else []
        if notes:
            lines.append(f"{'':20}{'; '.join(notes)}")
    return lines
