"""Events <-> JSON values: one line of the journal each, readable with `jq`."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
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


def encode(event: Event) -> dict[str, Any]:
    """The event as JSON-able values; key ``event`` names its type, defaults are left out."""
    return {"event": type(event).__name__, **_plain(event)}


def decode(values: Mapping[str, Any]) -> Event:
    """The event again.

    Raises:
        StoreError: not an event that this version knows.
    """
    try:
        kind = EVENT_TYPES[values["event"]]
        event = _typed(kind, {k: v for k, v in values.items() if k != "event"})
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"not an event of this version: {str(values)[:120]}",
            remedy="read the run with the version of recover that wrote it",
        ) from error
    return typing.cast("Event", event)  # EVENT_TYPES holds nothing else


def _plain(value: Any) -> Any:
    if isinstance(value, Level):
        return value.word
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        pairs = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: _plain(v) for f, v in pairs if v != f.default}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _typed(kind: Any, value: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [k for k in typing.get_args(kind) if k is not type(None)]
        return None if value is None else _typed(inner[0], value)
    if origin is tuple:
        return tuple(_typed(typing.get_args(kind)[0], v) for v in value)
    if isinstance(kind, type) and issubclass(kind, Level):
        return Level[str(value).upper()]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(**{k: _typed(hints[k], v) for k, v in value.items()})
    return value
