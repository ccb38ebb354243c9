"""Which NIC of a node is bad: one communicator a rail, voted on as nodes are.

Good nodes are tested in pairs, convicted ones with a good partner, every rail at the same time on
GPUs of its own. A pooled number could not name the rail, so each rail is a launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recovery.mesh.ballots import (
    Ballot,
    Standing,
    pair_ballots,
    risk_of,
    standing_of,
    standings,
)
from recovery.mesh.folding import fold
from recovery.mesh.order import shuffled
from recovery.mesh.pairing import Pool
from recovery.mesh.words import Group, Level, Member, State


def rail_groups(state: State) -> tuple[Group, ...]:
    """The groups of the next round of rails; none when every rail is decided or not asked."""
    if Level.RAILS not in state.options.levels:
        return ()
    order = shuffled((m.name for m in state.members), state.options.seed, len(state.history))
    rails = range(state.options.n_rails)
    return tuple(g for rail in rails for g in _groups_of(state, rail, order))


def _groups_of(state: State, rail: int, order: Sequence[str]) -> list[Group]:
    found, ballots = rail_standings(state)[rail], pair_ballots(state)
    by_standing: dict[Standing, list[str]] = {standing: [] for standing in Standing}
    for name in order:
        if name in found:
            by_standing[found[name]].append(name)
    fresh, suspects, good = (
        by_standing[standing] for standing in (Standing.FRESH, Standing.SUSPECT, Standing.GOOD)
    )
    if not (fresh or suspects):
        return []
    pool = Pool({member.name: member.leaf for member in state.members})
    if not good:
        return [] if suspects else _first_pairs(standings(state), fresh, rail)
    pool.add(good)
    groups = []
    for name in (*fresh, *suspects):
        ballot = ballots.get((name, rail)) or Ballot()
        partner = pool.take(name, ballot)
        if partner is not None:
            groups.append(Group(Level.RAILS, (name, partner), name, rail))
    return groups


def _first_pairs(where: Mapping[str, Standing], fresh: list[str], rail: int) -> list[Group]:
    """Pairs of good nodes; a convicted one waits for a partner whose rail is known to be good."""
    good = [name for name in fresh if where[name] is Standing.GOOD]
    names = good if len(good) >= 2 else fresh
    pairs = zip(names[::2], names[1::2], strict=False)
    return [Group(Level.RAILS, pair, "", rail) for pair in pairs]


@fold(Level.ALONE, Level.PAIRS, Level.SUSPECTS, Level.RAILS)
def rail_standings(state: State) -> tuple[dict[str, Standing], ...]:
    """Where each node's rails stand, by rail; nodes convicted by pairs take part too."""
    where, ballots = standings(state), pair_ballots(state)
    asked = (Standing.GOOD, Standing.CONVICTED, Standing.TIED)
    takes_part = [member for member in state.members if where[member.name] in asked]
    risks = [risk_of(state, rail=rail) for rail in range(state.options.n_rails)]
    return tuple(
        {one.name: _where(one, standing_of(ballots, (one.name, rail), risk)) for one in takes_part}
        for rail, risk in enumerate(risks)
    )


def _where(member: Member, found: Standing) -> Standing:
    """A partner that is known to be good has good rails until one of them fails."""
    return Standing.GOOD if member.known_good and found is Standing.FRESH else found


def bad_rails(state: State) -> dict[str, tuple[int, ...]]:
    """The convicted rails of each node."""
    return _rails_that_are(state, (Standing.CONVICTED,))


def open_rails(state: State) -> dict[str, tuple[int, ...]]:
    """The rails of each node about which nothing is decided: not tested, or not told apart."""
    decided = (Standing.CONVICTED, Standing.GOOD)
    return _rails_that_are(state, tuple(s for s in Standing if s not in decided))


def _rails_that_are(state: State, wanted: tuple[Standing, ...]) -> dict[str, tuple[int, ...]]:
    if Level.RAILS not in state.options.levels:
        return {}
    found: dict[str, tuple[int, ...]] = {}
    for rail, standing in enumerate(rail_standings(state)):
        for name in (name for name, where in standing.items() if where in wanted):
            found[name] = (*found.get(name, ()), rail)
    return found
