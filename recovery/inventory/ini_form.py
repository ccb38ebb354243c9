"""An Ansible INI inventory -> Draft.

Source: ansible-core, plugins/inventory/ini.py (sections ``[group]``, ``[group:vars]`` and
``[group:children]``; values are Python literals where they can be read so).
"""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from recovery.errors import InventoryError
from recovery.inventory.draft import Draft, HostLine
from recovery.model.runbook import Place
from recovery.registry import did_you_mean

_SECTION = re.compile(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:[#;].*)?")
_WORD = re.compile(r"([^:\]\s]+)\s*(?:#.*)?")
_QUOTING = re.compile(r"[\\'\"#]")
_KINDS = ("hosts", "vars", "children")
# Most values are addresses and words: asking Python's parser for these would cost half a second
# at 10,000 hosts. Whatever could be a literal still goes to it.
_TEXT = re.compile(r"(?![TFN]|[bBrRuUfF]{1,2}['\"])[A-Za-z_/~%{][^'\"]*|[0-9]+(?:[.:][0-9]+){2,}")


def draft_from_ini(text: str, source: str) -> Draft:
    """The draft of an INI inventory.

    Raises:
        InventoryError: a line that is not a section, a host, a variable or a child where it
            stands, or a section for a group that is never declared.
    """
    reader = _Reader(Draft(source))
    for number, line in enumerate(text.splitlines(), 1):
        reader.line(number, line)
    reader.refuse_undeclared()
    return reader.draft


@dataclass(slots=True)
class _Reader:
    draft: Draft
    group: str = "ungrouped"
    kind: str = "hosts"
    undeclared: dict[str, tuple[Place, str]] = field(default_factory=dict)

    def line(self, number: int, line: str) -> None:
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            return
        place = Place(self.draft.source, number, line.index(stripped[0]) + 1)
        if stripped[0] == "[" and (found := _SECTION.fullmatch(stripped)):
            self.section(place, found[1], found[2] or "hosts")
        elif stripped[0] == "[" and stripped[-1] == "]":
            raise InventoryError(
                f"{place}: {stripped!r} is not a section",
                remedy="write [group], [group:vars] or [group:children]",
            )
        elif self.kind == "hosts":
            self.host(place, line)
        elif self.kind == "vars":
            self.variable(place, stripped)
        else:
            self.child(place, stripped)

    def section(self, place: Place, group: str, kind: str) -> None:
        if kind not in _KINDS:
            raise InventoryError(
                f"{place}: [{group}:{kind}] is not a section{did_you_mean(kind, _KINDS)}",
                remedy="write [group], [group:vars] or [group:children]",
            )
        self.group, self.kind = group, kind
        if kind == "vars":
            if group not in self.draft.groups:
                self.undeclared.setdefault(group, (place, f"[{group}:vars]"))
        else:
            self.declare(group, place)

    def declare(self, group: str, place: Place) -> None:
        self.draft.add_group(group, place)
        self.undeclared.pop(group, None)

    def host(self, place: Place, line: str) -> None:
        pattern, *assignments = _words(line, place)
        variables: dict[str, object] = {}
        places: dict[str, Place] = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            column = line.find(f"{name}{equals}", len(pattern)) + 1 or place.column
            here = Place(place.file, place.line, column)
            if not equals or not name:
                raise InventoryError(
                    f"{here}: {assignment!r} is not a variable of {pattern!r}",
                    remedy="write name=value, without blanks around the =",
                )
            variables[name], places[name] = literal(value), here
        if self.group not in self.draft.groups:
            self.declare(self.group, place)
        where = partial(_where, places, place)
        self.draft.hosts.append(HostLine(pattern, self.group, variables, where))

    def variable(self, place: Place, line: str) -> None:
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise InventoryError(
                f"{place}: {line[:60]!r} is not a variable of group {self.group!r}",
                remedy="write name=value",
            )
        self.draft.set_variable(self.group, name.strip(), literal(value.strip()), place)

    def child(self, place: Place, line: str) -> None:
        found = _WORD.fullmatch(line)
        if found is None:
            raise InventoryError(
                f"{place}: {line[:60]!r} is not the name of a group",
                remedy="write one group a line",
            )
        if found[1] not in self.draft.groups:
            self.undeclared.setdefault(found[1], (place, f"[{self.group}:children]"))
        self.draft.children.setdefault(self.group, {}).setdefault(found[1], place)

    def refuse_undeclared(self) -> None:
        for group, (place, section) in self.undeclared.items():
            if group not in ("all", "ungrouped"):
                raise InventoryError(
                    f"{place}: {section} names group {group!r}, which is not declared"
                    f"{did_you_mean(group, list(self.draft.groups))}",
                    remedy=f"add a section [{group}]",
                )


def literal(text: str) -> object:
    """An INI value as Ansible reads it: a Python literal where it is one, text where not."""
    if _TEXT.fullmatch(text):
        return text
    try:
        value: object = literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | list | dict | None) else text


def _words(line: str, place: Place) -> list[str]:
    if not _QUOTING.search(line):
        return line.split()
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise InventoryError(
            f"{place}: {error} in {line.strip()[:60]!r}", remedy="close the quote"
        ) from error


def _where(places: Mapping[str, Place], line: Place, name: str) -> Place:
    return places.get(name, line)
