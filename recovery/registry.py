"""Finding extensions: a frozen constant in a file on a shelf, nothing else.

A shelf is a package (``recovery.checks``); each module of it defines constants of the shelf's
type (``ECC = Check(...)``). `pick` imports only the one module asked for, so that ``--help``
never pays for a library that it does not use.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import TypeVar

from recovery.errors import RegistryError

T = TypeVar("T")


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str:
    """Returns ``' (did you mean "x"?)'`` for the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f' (did you mean "{near[0]}"?)' if near else ""


def module_names(package: str) -> tuple[str, ...]:
    """Names of the modules on a shelf, sorted; modules that begin with ``_`` are private."""
    shelf = import_module(package)
    found = (m.name for m in pkgutil.iter_modules(shelf.__path__) if not m.name.startswith("_"))
    return tuple(sorted(found))


def collect(package: str, kind: type[T]) -> dict[str, T]:
    """All extensions of a shelf by their ``name``, those of installed packages included.

    Raises:
        RegistryError: two extensions of one name.
    """
    found: dict[str, T] = {}
    for source, value in _constants(package, kind):
        name = str(getattr(value, "name"))  # noqa: B009 - T has a name by the shelf's convention
        if name in found and found[name] is not value:
            raise RegistryError(
                f"{source}: {name!r} is defined twice", remedy="rename one of the two"
            )
        found[name] = value
    return dict(sorted(found.items()))


def pick(package: str, kind: type[T], name: str) -> T:
    """The one extension called ``name``; its module is called the same, ``-`` and ``.`` as ``_``.

    Raises:
        RegistryError: nothing on the shelf has this name.
    """
    wanted = name.replace("-", "_").replace(".", "_")
    if wanted in module_names(package):
        for value in _of_module(import_module(f"{package}.{wanted}"), kind):
            if getattr(value, "name", None) == name:
                return value
    everything = collect(package, kind)
    if name not in everything:
        shelf = package.rpartition(".")[2]
        raise RegistryError(
            f"no {name!r} in {shelf}{did_you_mean(name, list(everything))}",
            remedy=f"one of: {', '.join(everything)}",
        )
    return everything[name]


class Shelf(Mapping[str, T]):
    """The extensions of a shelf by name, each imported when it is asked for.

    ``one_each``: every module holds one extension, called as the module is, so that their names
    cost no import.
    """

    def __init__(self, package: str, kind: type[T], *, one_each: bool = False) -> None:
        self._package, self._kind, self._one_each = package, kind, one_each
        self._found: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """The one called so, or `KeyError`."""
        if name not in self._found:
            try:
                self._found[name] = pick(self._package, self._kind, name)
            except RegistryError as error:
                raise KeyError(name) from error
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        """All names, sorted."""
        if not self._one_each:
            return iter(collect(self._package, self._kind))
        added = (str(getattr(v, "name")) for _, v in _plugged_in(self._package, self._kind))  # noqa: B009 - as in `collect`
        return iter(sorted({*module_names(self._package), *added}))

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)


def _constants(package: str, kind: type[T]) -> Iterator[tuple[str, T]]:
    for module in module_names(package):
        for value in _of_module(import_module(f"{package}.{module}"), kind):
            yield f"{package}.{module}", value
    yield from _plugged_in(package, kind)


def _plugged_in(package: str, kind: type[T]) -> Iterator[tuple[str, T]]:
    for entry in entry_points(group=package.replace("recovery.", "recover.")):
        for value in _of_module(entry.load(), kind):
            yield entry.value, value


def _of_module(module: ModuleType, kind: type[T]) -> list[T]:
    constants: Mapping[str, object] = vars(module)
    return [v for n, v in constants.items() if not n.startswith("_") and isinstance(v, kind)]
