"""Where inventories, runbooks, profiles, payloads are found: beside the operator, then shipped."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from recovery.errors import InputError, InventoryError, RunbookError
from recovery.registry import did_you_mean

_PACKAGE = Path(__file__).resolve().parents[1]
_INVENTORY_SUFFIXES = (".yaml", ".yml", ".ini", "")


def _shipped(folder: str) -> Path:
    """In a wheel: ``recovery/shipped/FOLDER``; in a checkout: the folder beside the package."""
    inside = _PACKAGE / "shipped" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


def _folders(folder: str) -> tuple[Path, ...]:
    return (Path(folder), _shipped(folder))


def _names(folder: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    found = {
        path.stem: None
        for base in _folders(folder)
        if base.is_dir()
        for path in sorted(base.iterdir())
        if path.is_file() and path.suffix in suffixes and path.stem not in ("README", "")
    }
    return tuple(n for n in found if not n.startswith("."))


def _read(path: Path, error: type[InputError]) -> tuple[str, str]:
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except UnicodeDecodeError as bad:
        raise error(f"{path}: not UTF-8 at byte {bad.start}", remedy="save it as UTF-8") from bad
    except OSError as bad:
        raise error(f"{path}: cannot be read: {bad.strerror}", remedy="check the path") from bad


def find_inventory(name: str) -> tuple[str, str]:
    """Text and source of the inventory called ``name``, or at this path.

    Raises:
        InventoryError: there is none.
    """
    path = inventory_path(name)
    return _read(path, InventoryError)


def inventory_path(name: str) -> Path:
    """The file of an inventory: ``name`` as a path, then ``./inventories``, then the shipped ones.

    Raises:
        InventoryError: there is none.
    """
    if os.sep in name or Path(name).suffix in (".yaml", ".yml", ".ini", ".json"):
        if Path(name).is_file():
            return Path(name)
        raise InventoryError(f"no inventory at {name!r}", remedy="check the path")
    for base in _folders("inventories"):
        for suffix in _INVENTORY_SUFFIXES:
            if (base / f"{name}{suffix}").is_file():
                return base / f"{name}{suffix}"
    known = inventory_names()
    raise InventoryError(
        f"no inventory called {name!r}{did_you_mean(name, known)}",
        remedy=f"write inventories/{name}.yaml, or use one of: {', '.join(known)}",
    )


def inventory_names() -> tuple[str, ...]:
    """Names of all inventories that can be found."""
    return _names("inventories", (".yaml", ".yml", ".ini"))


def find_runbook(name: str) -> tuple[str, str]:
    """Text and source of the runbook called ``name``, or at this path.

    Raises:
        RunbookError: there is none.
    """
    direct = Path(name)
    if os.sep in name and direct.is_file():
        return _read(direct, RunbookError)
    for base in _folders("runbooks"):
        for path in (base / name, base / f"{name}.yaml", base / f"{name}.yml"):
            if path.is_file():
                return _read(path, RunbookError)
    if direct.is_file():
        return _read(direct, RunbookError)
    known = runbook_names()
    raise RunbookError(
        f"no runbook called {name!r}{did_you_mean(name, known)}",
        remedy=f"write runbooks/{name}.yaml, or use one of: {', '.join(known)}",
    )


def runbook_names() -> tuple[str, ...]:
    """Names of all runbooks that can be found."""
    return _names("runbooks", (".yaml", ".yml"))


def find_profile(name: str) -> tuple[str, str]:
    """Text and source of a hardware profile.

    Raises:
        InventoryError: there is none.
    """
    for base in _folders("inventories"):
        path = base / "profiles" / f"{name}.yaml"
        if path.is_file():
            return _read(path, InventoryError)
    known = profile_names()
    raise InventoryError(
        f"no hardware profile called {name!r}{did_you_mean(name, known)}",
        remedy=f"write inventories/profiles/{name}.yaml, or use one of: {', '.join(known)}",
    )


def profile_names() -> tuple[str, ...]:
    """Names of all hardware profiles that can be found."""
    return _names("inventories/profiles", (".yaml",))


def payload(name: str) -> str:
    """The text of a file that is sent to nodes."""
    return files("recovery.payloads").joinpath(name).read_text(encoding="utf-8")


def local_file(path: str) -> bytes:
    """A file of the controller.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", remedy="check the path"
        ) from error


def state_folder(given: str | None) -> Path:
    """The folder of all runs: ``--state``, else ``$XDG_STATE_HOME/recover``."""
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "recover"
