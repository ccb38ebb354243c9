"""A hardware profile: what healthy means for a kind of machine, each number with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.document import Document, Path, read_yaml
from recovery.errors import InventoryError
from recovery.inventory.draft import show
from recovery.model.node import Node
from recovery.reading.nccl_size import size_bytes
from recovery.registry import did_you_mean

KINDS = ("floor", "measured", "spec")
COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "broadcast",
    "reduce",
    "sendrecv",
)

_KEYS = ("profile", "about", "match", "expect", "busbw")
_EXPECT_KEYS = ("value", "kind", "source", "note")
_ROW_KEYS = (
    "collective",
    "nodes",
    "gpus",
    "payload",
    "algorithm",
    "value",
    "kind",
    "source",
    "note",
)
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Profile:
    """Expectations by name, where each comes from, and bus bandwidths by test.

    ``sources`` holds (kind, source) of each expectation. A row of ``busbw`` has ``collective``,
    ``nodes``, ``gpus`` (of a node), ``payload`` (text or None), ``payload_bytes``, ``algorithm``
    ("" for NCCL's own choice), ``value`` in GB/s, ``kind`` and ``source``.
    """

    name: str
    about: str
    match: tuple[str, ...]
    expectations: Mapping[str, Any]
    sources: Mapping[str, tuple[str, str]]
    busbw: tuple[Mapping[str, Any], ...]


def read_profile(text: str, source: str) -> Profile:
    """The profile that a YAML text describes.

    Raises:
        InventoryError: a number without value, kind or source, or a key that is not known.
        DocumentError: YAML that cannot be read.
    """
    document = read_yaml(text, source)
    top = _mapping(document, (), document.value, _KEYS)
    name = _words(document, ("profile",), top.get("profile"))
    entries = _expectations(document, top.get("expect"))
    rows = top.get("busbw") or []
    if not isinstance(rows, list):
        raise _error(document, ("busbw",), "busbw must be a list of rows", "begin a row with `- `")
    return Profile(
        name=name,
        about=str(top.get("about") or ""),
        match=_match(document, top.get("match")),
        expectations={key: value for key, (value, _, _) in entries.items()},
        sources={key: (kind, origin) for key, (_, kind, origin) in entries.items()},
        busbw=tuple(_row(document, ("busbw", i), row) for i, row in enumerate(rows)),
    )


def merge_expectations(profile: Profile | None, node: Node) -> dict[str, Any]:
    """What a node is judged by: the profile's expectations, its variables over them.

    The key ``busbw`` holds the rows, an empty list without a profile.
    """
    if profile is None:
        return {"busbw": [], **node.variables}
    return {**profile.expectations, "busbw": list(profile.busbw), **node.variables}


def _expectations(document: Document, body: Any) -> dict[str, tuple[Any, str, str]]:
    if not isinstance(body, Mapping) or not body:
        raise _error(
            document, ("expect",), "no expectations", "write `expect:` and, under it, the numbers"
        )
    return {name: _expectation(document, ("expect", name), body[name]) for name in body}


def _expectation(document: Document, path: Path, body: Any) -> tuple[Any, str, str]:
    if not isinstance(path[-1], str) or not _NAME.fullmatch(path[-1]):
        raise _error(document, path, f"{path[-1]!r} is not a name", "write it like temp_max_c")
    entry = _mapping(document, path, body, _EXPECT_KEYS)
    value = entry.get("value")
    if not isinstance(value, int | float | str):
        raise _error(
            document, path, f"no value for {path[-1]!r}", "write `value:` and a number or a word"
        )
    return value, _kind(document, path, entry), _source(document, path, entry)


def _row(document: Document, path: Path, body: Any) -> dict[str, Any]:
    row = _mapping(document, path, body, _ROW_KEYS)
    collective = row.get("collective")
    if collective not in COLLECTIVES:
        raise _error(
            document,
            (*path, "collective"),
            f"no collective {show(collective)}{did_you_mean(str(collective), COLLECTIVES)}",
            f"one of: {', '.join(COLLECTIVES)}",
        )
    value = row.get("value")
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise _error(
            document, (*path, "value"), f"no bandwidth: {show(value)}", "write GB/s as a number"
        )
    payload = row.get("payload")
    payload_bytes = size_bytes(payload)
    if payload is not None and payload_bytes is None:
        raise _error(
            document, (*path, "payload"), f"not a size: {show(payload)}", "write 8G or 512M"
        )
    return {
        "collective": collective,
        "nodes": _count(document, (*path, "nodes"), row.get("nodes")),
        "gpus": _count(document, (*path, "gpus"), row.get("gpus")),
        "payload": payload,
        "payload_bytes": payload_bytes,
        "algorithm": str(row.get("algorithm") or ""),
        "value": value,
        "kind": _kind(document, path, row),
        "source": _source(document, path, row),
    }


def _count(document: Document, path: Path, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise _error(document, path, f"{path[-1]} cannot be {show(value)}", "write a number from 1")


def _kind(document: Document, path: Path, entry: Mapping[str, Any]) -> str:
    kind = entry.get("kind")
    if kind in KINDS:
        return str(kind)
    what = f"no kind {show(kind)}{did_you_mean(str(kind), KINDS)}" if kind else "no kind"
    raise _error(document, (*path, "kind"), what, f"say what the number is: {', '.join(KINDS)}")


def _source(document: Document, path: Path, entry: Mapping[str, Any]) -> str:
    source = entry.get("source")
    if isinstance(source, str) and source.strip():
        return source
    raise _error(
        document,
        (*path, "source"),
        f"no source for {path[-1]!r}",
        "say where the number comes from: repository and line, manual, or machine measured",
    )


def _match(document: Document, body: Any) -> tuple[str, ...]:
    if isinstance(body, list) and body and all(isinstance(name, str) for name in body):
        return tuple(body)
    raise _error(
        document,
        ("match",),
        "no product names to match",
        'write `match: ["NVIDIA H100 80GB HBM3"]`, as nvidia-smi -L prints it',
    )


def _words(document: Document, path: Path, value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise _error(document, path, f"no {path[-1]}", f"write `{path[-1]}: a name`")


def _mapping(
    document: Document, path: Path, body: Any, known: tuple[str, ...]
) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise _error(document, path, f"keys expected, not {show(body)}", f"use {', '.join(known)}")
    for key in body:
        if key not in known:
            raise _error(
                document,
                (*path, key),
                f"no key {key!r} here{did_you_mean(str(key), known)}",
                f"one of: {', '.join(known)}",
            )
    return body


def _error(document: Document, path: Path, message: str, remedy: str) -> InventoryError:
    return InventoryError(f"{document.place(*path)}: {message}", remedy=remedy)
