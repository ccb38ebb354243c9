"""Secrets struck out of whatever is written: of events at the journal's door, of evidence."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

STRUCK = "[secret]"
# What runs are put together by; a password that is like a node's name must not rename the node.
_NAMES = frozenset(
    {"step", "node", "nodes", "run", "verb", "id", "what", "digest", "without", "unfinished"}
)


def strike_out(value: Any, secrets: tuple[str, ...]) -> Any:
    """The value without any of the secrets in its texts, at any depth; names are left alone."""
    return _struck(value, _pattern(secrets)) if secrets else value


def strike_out_bytes(content: bytes, secrets: tuple[str, ...]) -> bytes:
    """The same for evidence."""
    for secret in secrets:
        content = content.replace(secret.encode(), STRUCK.encode())
    return content


@functools.lru_cache(maxsize=8)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(s) for s in sorted(secrets, key=len, reverse=True)))


def _struck(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        return pattern.sub(STRUCK, value)
    if isinstance(value, Mapping):
        return {_struck(k, pattern): _struck(v, pattern) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_struck(one, pattern) for one in value])
    if is_dataclass(value) and not isinstance(value, type):
        return _struck_fields(value, pattern)
    return value


def _struck_fields(value: Any, pattern: re.Pattern[str]) -> Any:
    own = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _NAMES}
    new = {name: _struck(inner, pattern) for name, inner in own.items()}
    changed = {name: inner for name, inner in new.items() if inner != own[name]}
    return replace(value, **changed) if changed else value
