"""`recover lint`: what is wrong with runbooks and inventories, before a run needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from recovery.errors import InputError

Texts = list[tuple[str, str]]


@dataclass(slots=True)
class _Found:
    """Texts with their sources, by what they are."""

    runbooks: Texts = field(default_factory=list)
    inventories: Texts = field(default_factory=list)
    profiles: Texts = field(default_factory=list)


@click.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(exists=True))
def COMMAND(paths: tuple[str, ...]) -> None:  # noqa: N802 - a constant of the shelf
    """Check runbooks, inventories and profiles: all that can be found, or those at PATHS."""
    found = _at(paths) if paths else _all()
    lines = [*_runbook_problems(found), *_others(found)]
    for line in lines:
        click.echo(line)
    counts = ", ".join(
        f"{len(texts)} {one if len(texts) == 1 else many}"
        for one, many, texts in (
            ("runbook", "runbooks", found.runbooks),
            ("inventory", "inventories", found.inventories),
            ("profile", "profiles", found.profiles),
        )
        if texts
    )
    click.echo(f"{counts or 'nothing'} read: {len(lines) or 'no'} problem{'s' * (len(lines) != 1)}")
    if lines or not counts:
        raise SystemExit(InputError.exit_code)


def _all() -> _Found:
    from recovery import app

    found = _Found()
    found.runbooks = [app.find_runbook(name) for name in app.runbook_names()]
    folders = dict.fromkeys(Path(source).parent for _, source in found.runbooks)
    for folder in folders:
        found.runbooks += [_read(path) for path in sorted(folder.glob("*/*.y*ml"))]
    found.inventories = [app.find_inventory(name) for name in app.inventory_names()]
    found.profiles = [app.find_profile(name) for name in app.profile_names()]
    return found


def _at(paths: tuple[str, ...]) -> _Found:
    found = _Found()
    for path in (one for given in paths for one in _files(Path(given))):
        text, source = _read(path)
        if path.parent.name == "profiles":
            found.profiles.append((text, source))
        elif any(line.startswith(("runbook:", "fragment:", "steps:")) for line in text.split("\n")):
            found.runbooks.append((text, source))
        else:
            found.inventories.append((text, source))
    return found


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
    else:
        yield from sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml", ".ini"))


def _read(path: Path) -> tuple[str, str]:
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}", remedy="check the file") from error


def _runbook_problems(found: _Found) -> Iterator[str]:
    from recovery import app
    from recovery.plan import lint

    problems = lint(
        found.runbooks,
        app.verbs(),
        load=app.find_runbook,
        check_names=app.check_names(),
        known=_variables_of_inventories(),
    )
    for problem in problems:
        yield f"{problem}\n    {problem.remedy}"


def _variables_of_inventories() -> frozenset[str]:
    """Names that any inventory sets for all; one that cannot be read is told elsewhere."""
    from recovery import app
    from recovery.inventory import read_inventory

    names: set[str] = set()
    for name in app.inventory_names():
        try:
            names |= set(read_inventory(*app.find_inventory(name)).variables)
        except InputError:
            continue
    return frozenset(names)


def _others(found: _Found) -> Iterator[str]:
    from recovery.inventory import read_inventory, read_profile

    for texts, read in ((found.inventories, read_inventory), (found.profiles, read_profile)):
        for text, source in texts:
            try:
                read(text, source)
            except InputError as error:
                yield f"{error.message}\n    {error.remedy}"
