"""Which NIC of a node is bad: one communicator a rail, voted on as nodes are.

Good nodes are tested in pairs, convicted ones with a good partner, every rail at the same time on
GPUs of its own. A pooled number could not name the rail, so each rail is a launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recovery.mesh.ballots import (
    Ballot,
    Key,
    Standing,
    pair_ballots,
    risk_of,
    standing_of,
    standings,
)
from recovery.mesh.order import shuffled
from recovery.mesh.pairing import Pool
from recovery.mesh.words import Group, Level, State


def rail_groups(state: State) -> tuple[Group, ...]:
    """The groups of the next round of rails; none when every rail is decided or not asked."""
    if Level.RAILS not in state.options.levels:
        return ()
    where = standings(state)
    ballots = pair_ballots(state.history)
    rails = range(state.options.n_rails)
    return tuple(g for rail in rails for g in _groups_of(state, where, ballots, rail))


def _groups_of(
    state: State, where: Mapping[str, Standing], ballots: Mapping[Key, Ballot], rail: int
) -> list[Group]:
    found = rail_standings(state, where, ballots, rail)
    salt = (state.options.seed, len(state.history), "rail")
    fresh = shuffled(_at(found, Standing.FRESH), *salt)
    suspects = shuffled(_at(found, Standing.SUSPECT), *salt)
    good = shuffled(_at(found, Standing.GOOD), *salt)
    pool = Pool({member.name: member.leaf for member in state.members})
    if not good:
        return [] if suspects else _first_pairs(where, fresh, rail)
    pool.add(good)
    groups = []
    for name in (*fresh, *suspects):
        ballot = ballots.get((name, rail)) or Ballot()
        partner = pool.take(name, ballot.partners)
        if partner is not None:
            groups.append(Group(Level.RAILS, (name, partner), name, rail))
    return groups


def _at(found: Mapping[str, Standing], standing: Standing) -> Iterable[str]:
    return (name for name, where in found.items() if where is standing)


def _first_pairs(where: Mapping[str, Standing], fresh: list[str], rail: int) -> list[Group]:
    """Pairs of good nodes; a convicted one waits for a partner whose rail is known to be good."""
    good = [name for name in fresh if where[name] is Standing.GOOD]
    names = good if len(good) >= 2 else fresh
    pairs = zip(names[::2], names[1::2], strict=False)
    return [Group(Level.RAILS, pair, "", rail) for pair in pairs]


def rail_standings(
    state: State, where: Mapping[str, Standing], ballots: Mapping[Key, Ballot], rail: int
) -> dict[str, Standing]:
    """Where each node's rail stands; nodes that were convicted by pairs take part too."""
    risk = risk_of(ballots, len(state.members), rail=rail)
    asked = (Standing.GOOD, Standing.CONVICTED, Standing.TIED)
    names = (member.name for member in state.members if where[member.name] in asked)
    return {name: standing_of(ballots, (name, rail), risk) for name in names}


def bad_rails(state: State) -> dict[str, tuple[int, ...]]:
    """The convicted rails of each node."""
    if Level.RAILS not in state.options.levels:
        return {}
    where = standings(state)
    ballots = pair_ballots(state.history)
    found: dict[str, tuple[int, ...]] = {}
    for rail in range(state.options.n_rails):
        for name in _at(rail_standings(state, where, ballots, rail), Standing.CONVICTED):
            found[name] = (*found.get(name, ()), rail)
    return found
