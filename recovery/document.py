"""YAML text -> plain values with places, so that every error can name file, line and column.

PyYAML's C scanner composes; scalars are read by the YAML 1.2 core schema. A plain scalar that
YAML 1.1 (Ansible, most tools) reads differently is refused, and so is a duplicate key: both are
silent traps in a file that people read in a hurry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from recovery.errors import DocumentError
from recovery.model.runbook import Place

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml: slower, same answers
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]  # the same interface

Path = tuple[str | int, ...]


class _PlainLoader(_Loader):
    """The scanner alone: tags that nobody wrote are not worked out, `_Reader` reads scalars."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """No tag, unless one is written."""
        return ""


_MOST_VALUES = 2_000_000
_LONGEST_INT = 30  # far beyond any size in bytes; Python itself refuses 4,300 digits
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)\.[0-9]*)([eE][-+][0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    "-.inf": float("-inf"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_MAY_DIFFER = frozenset("0123456789.+-yYnNoO<=")
_DIFFERS = (
    (re.compile(r"(?i:y|n|yes|no|on|off)"), "a boolean in YAML 1.1 and text in 1.2"),
    (re.compile(r"[-+]?0[0-9]+"), "octal in YAML 1.1 and decimal in 1.2"),
    (re.compile(r"0o[0-7]+"), "octal in YAML 1.2 and text in 1.1"),
    (re.compile(r"[-+]?0[bx][0-9a-fA-F_]+"), "a number in YAML 1.1"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"), "base 60 in YAML 1.1"),
    (re.compile(r"[-+]?[0-9]+(_[0-9]+)+(\.[0-9_]*)?"), "a number in YAML 1.1 and text in 1.2"),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+"), "text in YAML 1.1"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?"), "a date in YAML 1.1"),
    (re.compile(r"<<|="), "special in YAML 1.1"),
)


@dataclass(frozen=True, slots=True)
class Document:
    """A value read from YAML, and where each part of it stands."""

    source: str
    value: Any
    marks: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    def place(self, *path: str | int) -> Place:
        """Where the value at ``path`` stands, or its nearest ancestor that is written."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.marks:
                line, column = self.marks[path[:end]]
                return Place(self.source, line, column)
        return Place(self.source, 1, 1)


def read_yaml(text: str, source: str) -> Document:
    """Reads one YAML document.

    Raises:
        DocumentError: not YAML, several documents, a duplicate key, a key that is not text or a
            number, a tag, an alias into itself, or a scalar that is ambiguous between versions.
    """
    try:
        root = yaml.compose(text, Loader=_PlainLoader)
    except yaml.YAMLError as error:
        raise _broken(error, source) from error
    if root is None:
        return Document(source, None)
    marks: dict[Path, tuple[int, int]] = {}
    value = _Reader(source, marks).read(root, ())
    return Document(source, value, marks)


def read_scalar(text: str, source: str) -> Any:
    """Reads one value given outside a file (``-e NAME=VALUE``) by the same rules as in one.

    What is in quotes is text; all that is no number and no word of YAML is text as it stands.

    Raises:
        DocumentError: a scalar that is ambiguous between YAML versions.
    """
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return read_yaml(text, source).value
    mark = yaml.Mark(source, 0, 0, 0, None, None)  # type: ignore[arg-type]  # no buffer: the stub errs
    return _Reader(source, {}).scalar(yaml.ScalarNode("", text, mark, mark))


def _broken(error: yaml.YAMLError, source: str) -> DocumentError:
    mark = getattr(error, "problem_mark", None)
    place = Place(source, mark.line + 1, mark.column + 1) if mark else Place(source, 1, 1)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return DocumentError(f"{place}: not YAML: {problem}", remedy="mend the line named")


@dataclass(slots=True)
class _Reader:
    source: str
    marks: dict[Path, tuple[int, int]]
    open_nodes: set[int] = field(default_factory=set)

    def read(self, node: yaml.Node, path: Path) -> Any:
        self.marks[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        self.refuse_tag(node)
        if len(self.marks) > _MOST_VALUES:
            raise self.error(
                node, f"more than {_MOST_VALUES} values", "aliases of aliases? write less"
            )
        if id(node) in self.open_nodes:
            raise self.error(node, "an alias that contains itself", "write the value out")
        self.open_nodes.add(id(node))
        value = (
            self.mapping(node, path)
            if isinstance(node, yaml.MappingNode)
            else self.items(node, path)
        )
        self.open_nodes.discard(id(node))
        return value

    def refuse_tag(self, node: yaml.Node) -> None:
        if node.tag:
            raise self.error(node, f"tag {node.tag!r} is not read here", "leave the tag out")

    def items(self, node: yaml.Node, path: Path) -> list[Any]:
        return [self.read(child, (*path, i)) for i, child in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            if key in found:
                first = Place(self.source, *self.marks[(*path, key)])
                raise self.error(key_node, f"key {key!r} stands twice", f"the first is at {first}")
            found[key] = None
            value = self.read(value_node, (*path, key))
            # The key's place reads better in a message than its value's.
            self.marks[(*path, key)] = (
                key_node.start_mark.line + 1,
                key_node.start_mark.column + 1,
            )
            found[key] = value
        return found

    def key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "a key must be a word", "quote it, or indent what follows")
        # `retry: {times: 3, on: [lost]}` is our own language: as a key, `on` can only be the word.
        return "on" if node.value == "on" else self.scalar(node)

    def scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if node.tag != "tag:yaml.org,2002:str":
            self.refuse_tag(node)
        if node.tag or node.style:  # said to be text, quoted, or a block: as it stands
            return text
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in _MAY_DIFFER:
            return text
        return self.number_or_text(node, text)

    def number_or_text(self, node: yaml.Node, text: str) -> Any:
        if _INT.fullmatch(text):
            if len(text) > _LONGEST_INT:
                raise self.error(node, f"a number of {len(text)} digits", "quote it for text")
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        for pattern, why in _DIFFERS:
            if pattern.fullmatch(text):
                remedy = f'write "{text}" in quotes for text, or true/false or a plain number'
                raise self.error(node, f"{text!r} is ambiguous: {why}", remedy)
        return text

    def error(self, node: yaml.Node, message: str, remedy: str) -> DocumentError:
        place = Place(self.source, node.start_mark.line + 1, node.start_mark.column + 1)
        return DocumentError(f"{place}: {message}", remedy=remedy)
