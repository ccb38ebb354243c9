"""Events <-> JSON values: one line of the journal each, readable with `jq`."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any

from recovery.errors import StoreError
from recovery.model import events
from recovery.model.events import Event
from recovery.model.verdict import Level


def _event_types() -> dict[str, type[Event]]:
    found = (v for v in vars(events).values() if isinstance(v, type) and issubclass(v, Event))
    return {kind.__name__: kind for kind in found if kind is not Event}


EVENT_TYPES = _event_types()
Reader = Callable[[Any], Any]
_ATOMS = (str, int, float, bool, type(None))


def encode(event: Event) -> dict[str, Any]:
    """The event as JSON-able values; key ``event`` names its type, defaults are left out."""
    return {"event": type(event).__name__, **_plain(event)}


def decode(values: Mapping[str, Any]) -> Event:
    """The event again.

    Raises:
        StoreError: not an event that this version knows.
    """
    try:
        fields = dict(values)
        kind: type = EVENT_TYPES[fields.pop("event")]
        event = _reader(kind)(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"not an event of this version: {str(values)[:120]}",
            remedy="read the run with the version of recover that wrote it",
        ) from error
    return typing.cast("Event", event)  # EVENT_TYPES holds nothing else


def _plain(value: Any) -> Any:
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Enum):
        return value.word if isinstance(value, Level) else value.value
    if dataclasses.is_dataclass(value):
        return _plain_record(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value


def _plain_record(value: Any) -> dict[str, Any]:
    kind: type = type(value)
    pairs = ((name, default, getattr(value, name)) for name, default in _defaults(kind))
    return {name: _plain(v) for name, default, v in pairs if v != default}


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in dataclasses.fields(kind))


# A journal of 10,000 nodes has 80,000 lines: what a type needs is found out once, not per value.
@cache
def _reader(kind: Any) -> Reader:
    """What turns a JSON value into a value of this type."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = _reader(next(k for k in typing.get_args(kind) if k is not type(None)))
        return (
            inner if inner is _as_it_is else lambda value: None if value is None else inner(value)
        )
    if origin is tuple:
        each = _reader(typing.get_args(kind)[0])
        return tuple if each is _as_it_is else lambda value: tuple(map(each, value))
    if isinstance(kind, type) and issubclass(kind, Level):
        return {level.word: level for level in kind}.__getitem__
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record_reader(kind)
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _record_reader(kind: type) -> Reader:
    readers = ((name, _reader(hint)) for name, hint in typing.get_type_hints(kind).items())
    turned = tuple((name, reader) for name, reader in readers if reader is not _as_it_is)

    def read(value: Mapping[str, Any]) -> Any:
        fields = dict(value)
        for name, reader in turned:
            if name in fields:
                fields[name] = reader(fields[name])
        return kind(**fields)

    return read
