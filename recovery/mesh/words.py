"""The words of the mesh, as frozen values: who, which groups, what came out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any


class Level(IntEnum):
    """The rungs of the ladder, in the order they are climbed."""

    ALONE = 0
    PAIRS = 1
    SUSPECTS = 2
    LEAVES = 4
    RAILS = 5
    ALL = 6

    @property
    def word(self) -> str:
        """The word in runbooks and reports."""
        return self.name.lower()


NODE_LEVELS = frozenset({Level.ALONE, Level.PAIRS, Level.SUSPECTS})


class Outcome(StrEnum):
    """What one test says about its group. NOT_RUN is no vote: nothing was learned."""

    PASS = "pass"  # noqa: S105 - a word, not a password
    SLOW = "slow"
    BROKEN = "broken"  # an error or a hang of the test itself
    WRONG = "wrong"  # wrong values: silent corruption, the gravest
    NOT_RUN = "not-run"

    @property
    def failed(self) -> bool:
        """Claims that the test ran and speaks against its group."""
        return self not in _NO_FAULT


_NO_FAULT = (Outcome.PASS, Outcome.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the mesh. ``known_good`` serves as a partner and is not itself in question."""

    name: str
    leaf: str = ""
    known_good: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to climb: which levels, from which seed, and how many rounds the leaves get.

    ``leaf_rounds`` of 0 means 8, or 12 with 8 leaves or fewer. ``n_rails`` is the number of NICs.
    """

    levels: frozenset[Level] = NODE_LEVELS
    seed: int = 1
    leaf_rounds: int = 0
    n_rails: int = 8


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that run one collective together.

    ``subject`` is the node in question when the other one is known to be good; empty when all
    are in question. ``rail`` restricts the test to one NIC of each node. A ``witness`` is a pair
    of good nodes that runs beside suspects: it is no vote, it tells whether the round was fair.
    """

    level: Level
    nodes: tuple[str, ...]
    subject: str = ""
    rail: int | None = None
    collective: str = ""
    witness: bool = False

    @property
    def pair(self) -> frozenset[str]:
        """The nodes without their order."""
        return frozenset(self.nodes)


@dataclass(frozen=True, slots=True)
class Round:
    """Groups that run at the same time, each node in one of them (in one a rail)."""

    number: int
    stage: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of one group. ``blamed`` are the nodes for which NOT_RUN is their own fault."""

    group: Group
    outcome: Outcome
    busbw_gb_per_s: float | None = None
    finding: str = ""
    remedy: str = ""
    code: str = ""
    blamed: tuple[str, ...] = ()
    duration_s: float = 0.0
    evidence: str = ""  # digest of the raw output
    status: int | None = None  # exit status of the test; None where it did not end by itself
    size_bytes: int = 0  # of that output


@dataclass(frozen=True, slots=True)
class Played:
    """A round and its results, in the order of its groups."""

    round: Round
    results: tuple[Result, ...]


Fold = tuple[str, frozenset[Level]]  # its name, and the levels whose tests it looks at


@dataclass(frozen=True, slots=True)
class State:
    """All there is to know: members, options and what was played. Everything else is a fold.

    ``folds`` keeps what was concluded from it (`recovery.mesh.folding`).
    """

    members: tuple[Member, ...]
    options: Options = field(default_factory=Options)
    history: tuple[Played, ...] = ()
    folds: dict[Fold, Any] = field(default_factory=dict, compare=False, repr=False)

    def after(self, played: Played) -> State:
        """The state with one more round; what that round says nothing about stays concluded."""
        asked = {group.level for group in played.round.groups}
        kept = {key: found for key, found in self.folds.items() if not key[1] & asked}
        return State(self.members, self.options, (*self.history, played), kept)
