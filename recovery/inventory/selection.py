"""A node expression -> node names in inventory order.

node[001-064]   @gpu   node0*   all     names, a group, a pattern, everything
A, B   A | B                            union
A & B                                   intersection, binds tighter than union
!A     A ! B                            all but A; A without B
( ... )

"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recovery.errors import SelectionError
from recovery.inventory.hostlist import fold
from recovery.inventory.ranges import PatternError, expand_pattern
from recovery.model.inventory import Inventory
from recovery.registry import did_you_mean

# Groups that a run fills: known even while nobody is in them.
RUN_GROUPS = ("drained", "quarantined")

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[&|!(),])|(?P<word>(?:[^\s&|!(),\[\]]|\[[^\[\]]*\])+)|(?P<bad>\S))"
)
_DEEPEST = 50

Names = frozenset[str]


def select(
    inventory: Inventory,
    expression: str,
    *,
    extra_groups: Mapping[str, Iterable[str]] | None = None,
    empty_ok: bool = False,
) -> tuple[str, ...]:
    """Names of the nodes that an expression means, in inventory order.

    ``extra_groups`` are groups known only now, such as ``drained``; they may be empty, and names
    in them that the inventory does not know are left out.

    Raises:
        SelectionError: an expression that cannot be read, an unknown node or group, or, unless
            ``empty_ok``, no node at all.
    """
    chosen = _Reader(expression, _Scope(inventory, extra_groups or {})).read()
    if not chosen and not empty_ok:
        raise SelectionError(
            f"node expression {expression!r} selects no node",
            remedy="widen it, or see `recover nodes` for what the inventory holds",
        )
    return tuple(name for name in inventory.nodes if name in chosen)


@dataclass(slots=True)
class _Scope:
    """What words mean: the inventory's nodes and groups, and the run's groups."""

    inventory: Inventory
    extra: Mapping[str, Iterable[str]]
    everything: Names = field(init=False)

    def __post_init__(self) -> None:
        self.everything = frozenset(self.inventory.nodes)

    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(["all", *self.inventory.groups, *self.extra, *RUN_GROUPS]))

    def group(self, name: str) -> Names:
        if name == "all":
            return self.everything
        listed = self.inventory.groups.get(name, ())
        return self.everything & {*listed, *self.extra.get(name, ())}


@dataclass(slots=True)
class _Reader:
    expression: str
    scope: _Scope
    tokens: list[tuple[str, int]] = field(default_factory=list)
    at: int = 0
    depth: int = 0

    def read(self) -> Names:
        self.tokens = list(self.scan())
        if not self.tokens:
            raise SelectionError("empty node expression", remedy="write `all` for every node")
        found = self.union()
        if self.peek():
            raise self.error(
                f"unexpected {self.peek()!r}", "put `,`, `&` or `!` between two groups of nodes"
            )
        return found

    def scan(self) -> Iterable[tuple[str, int]]:
        for found in _TOKEN.finditer(self.expression.rstrip()):
            kind = found.lastgroup or "bad"
            column = found.start(kind) + 1
            if kind == "bad":
                raise self.error(f"bracket not closed at {found[kind]!r}", "close it", column)
            yield found[kind], column

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, signs: str) -> str:
        token = self.peek()
        if token and token in signs:
            self.at += 1
            return token
        return ""

    def union(self) -> Names:
        found = self.intersection()
        while self.take(",|"):
            found |= self.intersection()
        return found

    def intersection(self) -> Names:
        found = self.term()
        while sign := self.take("&!"):
            other = self.term()
            found = found & other if sign == "&" else found - other
        return found

    def term(self) -> Names:
        if self.take("!"):
            return self.scope.everything - self.term()
        if self.take("("):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.error("too many parentheses", "write it flatter")
            found = self.union()
            if not self.take(")"):
                raise self.error("parenthesis not closed", "add a )")
            self.depth -= 1
            return found
        word = self.peek()
        if not word or word in "&|,)":
            what = f"{word!r}" if word else "the end"
            raise self.error(f"nodes expected before {what}", "write a node, a hostlist or @group")
        found = self.word(word)
        self.at += 1
        return found

    def word(self, word: str) -> Names:
        if word in ("all", "*"):
            return self.scope.everything
        if word.startswith("@"):
            return self.groups(word[1:])
        if "*" in word or "?" in word:
            return self.matching(word)
        return self.listed(word)

    def groups(self, wanted: str) -> Names:
        known = self.scope.groups()
        shape = _shape(wanted)
        names = [name for name in known if shape.fullmatch(name)]
        if not names:
            raise self.error(
                f"no group {wanted!r}{did_you_mean(wanted, known)}",
                f"groups are: {', '.join(known)}"[:400],
            )
        return frozenset().union(*map(self.scope.group, names))

    def matching(self, word: str) -> Names:
        # Brackets hold ranges here too, never a shell's character classes.
        opened = self.opened(word.replace("*", "_STAR_").replace("?", "_ANY_"))
        shapes = [_shape(n.replace("_STAR_", "*").replace("_ANY_", "?")) for n in opened]
        found = {n for n in self.scope.everything if any(shape.fullmatch(n) for shape in shapes)}
        if not found:
            raise self.error(f"no node is called like {word!r}", "list names with `recover nodes`")
        return frozenset(found)

    def listed(self, word: str) -> Names:
        found = frozenset(self.opened(word))
        if not found <= self.scope.everything:
            raise self.unknown(sorted(found - self.scope.everything))
        return found

    def opened(self, word: str) -> tuple[str, ...]:
        try:
            return expand_pattern(word)
        except PatternError as error:
            raise self.error(error.message, error.remedy) from error

    def unknown(self, names: list[str]) -> SelectionError:
        if len(names) > 1:
            remedy = f"the inventory has {fold(self.scope.everything)}"[:400]
            return self.error(f"no nodes {fold(names)}", remedy)
        if names[0] in self.scope.groups():
            return self.error(f"{names[0]!r} is a group", f"write @{names[0]}")
        near = did_you_mean(names[0], list(self.scope.inventory.nodes))
        return self.error(f"no node {names[0]!r}{near}", "list names with `recover nodes`")

    def error(self, message: str, remedy: str, column: int = 0) -> SelectionError:
        if not column:
            end = len(self.expression.rstrip()) + 1
            column = self.tokens[self.at][1] if self.at < len(self.tokens) else end
        shown = self.expression if len(self.expression) <= 80 else f"{self.expression[:77]}..."
        return SelectionError(
            f"node expression {shown!r}, column {column}: {message}", remedy=remedy
        )


def _shape(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
