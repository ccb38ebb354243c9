"""`recover monitoring`: alert rules and a dashboard for Prometheus, Alertmanager, Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from recovery.monitoring import Limits


@click.group("monitoring")
def COMMAND() -> None:  # noqa: N802 - a constant of the shelf
    """Write alert rules and a dashboard for Prometheus, Alertmanager and Grafana.

    \b
    recover monitoring export ./monitoring
    promtool check rules ./monitoring/recover-alerts.yaml
    """  # noqa: D301 - the mark is a character for click


@COMMAND.command("export")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def export(folder: Path) -> None:
    """Write the files into DIR; limits of temperature and power are those of the profiles."""
    from recovery.monitoring import rendered

    for name, text in rendered(_machines()).items():
        click.echo(_written(folder / name, text))
    click.echo(f"next: {folder / 'README.md'} says where each file goes")


def _machines() -> list[Limits]:
    from recovery.app.files import find_profile, profile_names
    from recovery.inventory import read_profile
    from recovery.monitoring import limits_of

    read = (read_profile(*find_profile(name)) for name in profile_names())
    return [limits_of(p.name, p.match, p.expectations) for p in read if p.match]


def _written(path: Path, text: str) -> str:
    """Writes one file and says so; what an operator has changed in it is kept beside it."""
    from recovery.errors import InputError

    word = "written"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.read_text(encoding="utf-8") != text:
            path.replace(path.with_name(f"{path.name}.old"))
            word = "written, the one before is kept as .old"
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be written: {error}", remedy="name a folder of your own"
        ) from error
    return f"{word}: {path}"
