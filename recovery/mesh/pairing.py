"""The rounds that find bad nodes: alone, first pairs, and suspects with good partners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recovery.mesh.ballots import Ballot, Key, Standing, alone_standings, pair_ballots, standings
from recovery.mesh.order import shuffled
from recovery.mesh.words import Group, Level, State

Leaves = Mapping[str, str]
_MOST_REMIXES = 4
_WITNESSES = 3  # by majority: one of them may fail by chance


@dataclass
class Pool:
    """Good partners that are still free in this round, by leaf, in the order of the seed."""

    leaf_of: Leaves
    by_leaf: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, names: Iterable[str]) -> None:
        """Offers partners, first offered first taken."""
        for name in names:
            self.by_leaf[self.leaf_of[name]].append(name)

    def take(self, subject: str, ballot: Ballot) -> str | None:
        """A partner that the subject was never with: of its own leaf, else of the fullest.

        One whose test with it did not run is taken where nobody else is left.
        """
        new = self._take(subject, ballot.met)
        return new if new is not None else self._take(subject, ballot.partners)

    def _take(self, subject: str, tried: Iterable[str]) -> str | None:
        home = self.leaf_of[subject]
        others = sorted((leaf for leaf in self.by_leaf if leaf != home), key=self._most_free)
        for leaf in (home, *others):
            free = self.by_leaf.get(leaf, [])
            chosen = next((name for name in free if name not in tried and name != subject), None)
            if chosen is not None:
                free.remove(chosen)
                return chosen
        return None

    def left(self) -> list[str]:
        """Who is still free."""
        return [name for leaf in sorted(self.by_leaf) for name in self.by_leaf[leaf]]

    def _most_free(self, leaf: str) -> tuple[int, str]:
        return (-len(self.by_leaf[leaf]), leaf)


def node_groups(state: State) -> tuple[Group, ...]:
    """The groups of the next round about nodes; none when every node is decided or stuck."""
    groups = [*_alone_groups(state)]
    if Level.PAIRS in state.options.levels:
        groups += _pair_groups(state)
        # Who waits for another's verdict need not, once nothing else is left to ask.
        groups = groups or _pair_groups(state, hurried=Standing.WAITING)
    return tuple(groups)


def _alone_groups(state: State) -> list[Group]:
    if Level.ALONE not in state.options.levels:
        return []
    open_ = (Standing.FRESH, Standing.SUSPECT)
    found = alone_standings(state)
    return [Group(Level.ALONE, (name,), name) for name, where in found.items() if where in open_]


def _pair_groups(state: State, hurried: Standing | None = None) -> list[Group]:
    alone = alone_standings(state)
    where = {
        name: Standing.SUSPECT if standing is hurried else standing
        for name, standing in standings(state).items()
        if alone[name] is Standing.GOOD
    }
    ballots = pair_ballots(state)
    return _Round(state, where, ballots).groups()


class _Round:
    """One round under construction: each node is used once, no pair comes twice."""

    def __init__(
        self, state: State, where: Mapping[str, Standing], ballots: Mapping[Key, Ballot]
    ) -> None:
        self.salt = (state.options.seed, len(state.history))
        self.leaf_of = {member.name: member.leaf for member in state.members}
        self.where = where
        self.ballots = ballots
        self.asks_suspects = Level.SUSPECTS in state.options.levels
        self.n_remixes = sum(1 for played in state.history if played.round.stage == "remix")

    def groups(self) -> list[Group]:
        fresh, suspects = self._in(Standing.FRESH), self._in(Standing.SUSPECT)
        if not self.asks_suspects:
            suspects = []
        good = self._in(Standing.GOOD) or self._promising()
        if not good:
            return self._without_good(fresh, suspects)
        suspects = [name for name in suspects if name not in good]
        return self._with_good(fresh, suspects, good)

    def _in(self, standing: Standing) -> list[str]:
        return shuffled((n for n, where in self.where.items() if where is standing), *self.salt)

    def _promising(self) -> list[str]:
        """Suspects with a pass and nothing against them: the best partners when none is good."""
        found = (name for name in self._in(Standing.SUSPECT) if self._ballot(name).looks_good)
        return list(found)

    def _ballot(self, name: str) -> Ballot:
        return self.ballots.get((name, None)) or Ballot()

    def _with_good(
        self, fresh: Sequence[str], suspects: Sequence[str], good: Sequence[str]
    ) -> list[Group]:
        pool = Pool(self.leaf_of)
        pool.add(good)
        groups, left = [], []
        for name in (*fresh, *suspects):
            partner = pool.take(name, self._ballot(name))
            if partner is None:
                left.append(name)
            else:
                level = Level.PAIRS if name in set(fresh) else Level.SUSPECTS
                groups.append(Group(level, (name, partner), name))
        unpaired = [name for name in left if self.where[name] is Standing.FRESH]
        witnesses = self._witnesses(pool.left()) if suspects else []
        return groups + self._matching(unpaired) + witnesses

    def _witnesses(self, free: Sequence[str]) -> list[Group]:
        """Pairs of good nodes that were never together, beside the suspects of a round."""
        waiting = self._in(Standing.WAITING)
        some = (*free[: 8 * _WITNESSES], *waiting[:_WITNESSES])
        pairs, _ = self._pairs(some, Level.SUSPECTS)
        return [replace(pair, witness=True) for pair in pairs[:_WITNESSES]]

    def _without_good(self, fresh: Sequence[str], suspects: Sequence[str]) -> list[Group]:
        """First pairs; where all of those failed, the suspects among themselves, mixed anew."""
        groups = self._matching(fresh)
        if groups:
            return groups
        if self.n_remixes >= _MOST_REMIXES:
            return []
        return self._matching([*fresh, *suspects])

    def _matching(self, names: Sequence[str]) -> list[Group]:
        """Pairs inside a leaf first, then of what is left over; never a pair twice."""
        by_leaf: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_leaf[self.leaf_of[name]].append(name)
        groups, left = [], []
        for leaf in sorted(by_leaf):
            pairs, rest = self._pairs(by_leaf[leaf])
            groups += pairs
            left += rest
        across, _ = self._pairs(left)
        return groups + across

    def _pairs(
        self, names: Sequence[str], level: Level = Level.PAIRS
    ) -> tuple[list[Group], list[str]]:
        groups, waiting = [], list(names)
        left: list[str] = []
        while waiting:
            name = waiting.pop(0)
            ballot = self._ballot(name)
            at = _first(waiting, ballot.met)
            at = at if at is not None else _first(waiting, ballot.partners)
            if at is None:
                left.append(name)
            else:
                groups.append(Group(level, (name, waiting.pop(at))))
        return groups, left


def _first(names: Sequence[str], tried: Collection[str]) -> int | None:
    return next((at for at, name in enumerate(names) if name not in tried), None)
