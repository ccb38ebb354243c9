"""A fabric that is simulated, and what ours and other people's schedules conclude about it.

    python -m tests.bench.mesh_sim [RUNS]

Every test fails by chance in 1 % of cases and passes by chance in 0.5 %; 32 nodes a leaf, 16
uplinks a leaf, each flow takes one uplink of either leaf at random.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean

from recovery.mesh.ladder import next_round, record, start
from recovery.mesh.leaves import bad_leaves
from recovery.mesh.rails import bad_rails
from recovery.mesh.relative import unless_starved
from recovery.mesh.verdicts import Kind, node_verdicts
from recovery.mesh.words import Group, Level, Member, Options, Outcome, Result, Round

PAIR_LEVELS = frozenset({Level.PAIRS, Level.SUSPECTS})
FALSE_FAIL, FALSE_PASS = 0.01, 0.005
PER_LEAF, UPLINKS = 32, 16
SEED = 20261202  # of the fabrics; the rule was tuned on others
EVERY = frozenset(Level)


@dataclass
class Fabric:
    """Nodes in leaves, some bad; one test is one draw."""

    n: int
    rng: random.Random
    bad: frozenset[str] = frozenset()
    bad_leaf: str = ""
    bad_rail: tuple[str, int] | None = None
    hung: frozenset[str] = frozenset()
    starved: float = 0.0  # the share of rounds in which most tests are slow
    heeds: bool = True  # what witnesses of a starved round say
    tests: int = 0
    names: tuple[str, ...] = ()
    leaf_of: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        width = max(2, min(PER_LEAF, self.n // 2))
        self.names = tuple(f"n{i:04d}" for i in range(self.n))
        self.leaf_of = {name: f"l{i // width:02d}" for i, name in enumerate(self.names)}

    def passes(self, *nodes: str, rail: int | None = None) -> bool:
        self.tests += 1
        faulty = any(name in self.bad for name in nodes) or self._crosses(nodes)
        if self.bad_rail is not None:
            name, bad = self.bad_rail
            faulty = faulty or (name in nodes and rail in (None, bad))
        if faulty:
            return self.rng.random() < FALSE_PASS
        return self.rng.random() >= FALSE_FAIL

    def _crosses(self, nodes: Sequence[str]) -> bool:
        leaves = {self.leaf_of[name] for name in nodes}
        if self.bad_leaf not in leaves or len(leaves) == 1:
            return False
        return self.rng.randrange(UPLINKS) == 0

    def play(self, played: Round) -> list[Result]:
        slow = self.starved > 0 and self.rng.random() < self.starved
        found = [self._result(group, 0.8 if slow else 0.0) for group in played.groups]
        return unless_starved(found) if self.heeds else found

    def _result(self, group: Group, also_slow: float) -> Result:
        if self.hung & set(group.nodes):
            self.tests += 1
            return Result(group=group, outcome=Outcome.BROKEN, duration_s=30.0)
        good = self.passes(*group.nodes, rail=group.rail)
        good = good and (not also_slow or self.rng.random() >= also_slow)
        return Result(group=group, outcome=Outcome.PASS if good else Outcome.SLOW, duration_s=9.0)


@dataclass
class Tally:
    rounds: int
    tests: int
    convicted: frozenset[str]
    leaves: tuple[str, ...] = ()
    rails: dict[str, tuple[int, ...]] = field(default_factory=dict)


def ladder(fabric: Fabric, levels: frozenset[Level] = PAIR_LEVELS) -> Tally:
    members = [Member(name, fabric.leaf_of[name]) for name in fabric.names]
    state = start(members, Options(levels=levels, seed=fabric.rng.randrange(1 << 30)))
    rounds = 0
    while (played := next_round(state)) is not None:
        state = record(state, played, fabric.play(played))
        rounds += 1
    bad = (v.node for v in node_verdicts(state) if v.kind in (Kind.BAD_NODE, Kind.BAD_RAIL))
    leaves = tuple(leaf for found in bad_leaves(state) for leaf in found.leaves)
    return Tally(rounds, fabric.tests, frozenset(bad), leaves, bad_rails(state))


def with_leaves(fabric: Fabric) -> Tally:
    return ladder(fabric, PAIR_LEVELS | {Level.LEAVES})


def with_rails(fabric: Fabric) -> Tally:
    return ladder(fabric, PAIR_LEVELS | {Level.RAILS})


def matching(names: Iterable[str], rng: random.Random) -> list[tuple[str, str]]:
    order = list(names)
    rng.shuffle(order)
    return list(zip(order[::2], order[1::2], strict=False))


def two_pass(fabric: Fabric) -> Tally:
    """Random pairs, then each suspect once with a node of a passing pair; the last word counts."""
    suspects, good = [], []
    for pair in matching(fabric.names, fabric.rng):
        (good if fabric.passes(*pair) else suspects).extend(pair)
    fabric.rng.shuffle(good)
    bad = {
        name
        for i, name in enumerate(suspects)
        if good and not fabric.passes(name, good[i % len(good)])
    }
    return Tally(2, fabric.tests, frozenset(bad if good else suspects))


def matchings_15(fabric: Fabric) -> Tally:
    """Fifteen random perfect matchings; a node that failed most of its tests is bad."""
    failed = dict.fromkeys(fabric.names, 0)
    for _ in range(15):
        for pair in matching(fabric.names, fabric.rng):
            if not fabric.passes(*pair):
                for name in pair:
                    failed[name] += 1
    return Tally(15, fabric.tests, frozenset(n for n, f in failed.items() if f > 7))


def bisection(fabric: Fabric) -> Tally:
    """Both halves at the same time, failing halves again; both nodes of a last pair are bad."""
    convicted: set[str] = set()
    waiting, rounds = [list(fabric.names)], 0
    while waiting:
        rounds += 1
        failing = [group for group in waiting if not fabric.passes(*group)]
        convicted |= {name for group in failing if len(group) <= 2 for name in group}
        waiting = [
            half
            for group in failing
            if len(group) > 2
            for half in (group[: len(group) // 2], group[len(group) // 2 :])
        ]
    return Tally(rounds, fabric.tests, frozenset(convicted))


def tournament(fabric: Fabric) -> Tally:
    """Every pair once by the circle method; a node that failed most of its tests is bad."""
    failed = dict.fromkeys(fabric.names, 0)
    ring, n = list(fabric.names), fabric.n
    for _ in range(n - 1):
        for i in range(n // 2):
            pair = (ring[i], ring[n - 1 - i])
            if not fabric.passes(*pair):
                for name in pair:
                    failed[name] += 1
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return Tally(n - 1, fabric.tests, frozenset(x for x, f in failed.items() if f > (n - 1) / 2))


def serial_adjacent(fabric: Fabric) -> Tally:
    """Neighbours one after another, then each suspect with up to ten good nodes: best of any."""
    suspects, good = [], []
    for pair in zip(fabric.names[::2], fabric.names[1::2], strict=False):
        (good if fabric.passes(*pair) else suspects).extend(pair)
    bad = set()
    for name in suspects:
        partners = fabric.rng.sample(good, min(10, len(good)))
        if not any(fabric.passes(name, partner) for partner in partners):
            bad.add(name)
    return Tally(fabric.tests, fabric.tests, frozenset(bad))


Schedule = Callable[[Fabric], Tally]
SCHEDULES: dict[str, Schedule] = {
    "ladder": ladder,
    "ladder + leaves": with_leaves,
    "two-pass": two_pass,
    "15 random matchings": matchings_15,
    "bisection": bisection,
    "full tournament": tournament,
    "serial adjacent": serial_adjacent,
}


@dataclass
class Row:
    """Means over runs: rounds, tests, innocents convicted a run, bad nodes missed in percent."""

    rounds: float
    tests: float
    innocents: float
    missed_percent: float
    leaf_named: float
    false_leaves: float
    seconds: float
    worst_rounds: int = 0


def measure(
    schedule: Schedule, n: int, n_bad: int, runs: int, *, leaf: bool = False, seed: int = SEED
) -> Row:
    """Runs a schedule on fresh fabrics of one kind."""
    began, tallies, innocents, missed, named, false = time.perf_counter(), [], 0, 0, 0, 0
    for run in range(runs):
        rng = random.Random(f"{seed}/{n}/{n_bad}/{leaf}/{run}")
        fabric = Fabric(n, rng)
        fabric.bad = frozenset(rng.sample(fabric.names, n_bad))
        fabric.bad_leaf = rng.choice(sorted(set(fabric.leaf_of.values()))) if leaf else ""
        tally = schedule(fabric)
        tallies.append(tally)
        innocents += len(tally.convicted - fabric.bad)
        missed += len(fabric.bad - tally.convicted)
        named += fabric.bad_leaf in tally.leaves
        false += len(set(tally.leaves) - {fabric.bad_leaf})
    return Row(
        mean(t.rounds for t in tallies),
        mean(t.tests for t in tallies),
        innocents / runs,
        100 * missed / max(1, n_bad * runs),
        named / runs,
        false / runs,
        time.perf_counter() - began,
        max(t.rounds for t in tallies),
    )


def table(runs: int) -> Iterable[str]:
    """The one table, line by line."""
    yield (
        f"{'N':>5} {'bad':>9}  {'schedule':20} {'rounds':>8} {'tests':>9} {'innocents':>9} "
        f"{'missed %':>8} {'leaf named':>10} {'false leaf':>10}"
    )
    for n in (8, 64, 256, 1024):
        for bad, leaf in dict.fromkeys(
            [(0, False), (1, False), (n // 128, False), (n // 32, False), (0, True)]
        ):
            if leaf and n < 256:
                continue
            for name, schedule in SCHEDULES.items():
                few = _runs_of(name, n, runs)
                row = measure(schedule, n, bad, few, leaf=leaf)
                kind = f"{bad} + leaf" if leaf else str(bad)
                leaves = f"{row.leaf_named:10.2f} {row.false_leaves:10.3f}" if leaf else " " * 21
                yield (
                    f"{n:5} {kind:>9}  {name:20} {row.rounds:8.1f} {row.tests:9.0f}"
                    f" {row.innocents:9.3f} {row.missed_percent:8.2f} {leaves}"
                )


def _runs_of(name: str, n: int, runs: int) -> int:
    """Fewer for schedules that take long, more where a fabric is small."""
    if name == "full tournament":
        return 1 if n == 1024 else 3
    if name == "ladder + leaves":
        return min(runs, 30)
    return runs * 20 if n == 8 else runs


def leaves_named(runs: int = 60) -> Iterable[str]:
    """How often a bad uplink is named, in how many rounds, and whether another leaf is."""
    for n, bad in ((1024, 0), (1024, 8), (256, 0)):
        row = measure(with_leaves, n, bad, runs, leaf=True)
        yield (
            f"{n} nodes, {bad} bad, one bad uplink: named in {row.leaf_named * runs:.0f} of {runs},"
            f" {row.rounds:.1f} rounds, at worst {row.worst_rounds}, other leaves named"
            f" {row.false_leaves:.2f} a run"
        )


def rails_and_hangs(runs: int = 30) -> Iterable[str]:
    """How often a bad rail is named, and what a node that hangs costs."""
    named, waits, rounds = 0, 0, 0
    for run in range(runs):
        rng = random.Random(f"{SEED}/rail/{run}")
        fabric = Fabric(64, rng)
        fabric.bad_rail = (rng.choice(fabric.names), rng.randrange(8))
        name, rail = fabric.bad_rail
        named += with_rails(fabric).rails.get(name) == (rail,)
        hanging = Fabric(64, rng)
        hanging.hung = frozenset({rng.choice(hanging.names)})
        state = start([Member(n) for n in hanging.names], Options(levels=PAIR_LEVELS, seed=run))
        while (played := next_round(state)) is not None:
            state = record(state, played, hanging.play(played))
            rounds += 1
            waits += any(hanging.hung & set(g.nodes) for g in played.groups)
    yield f"64 nodes, one bad rail: named in {named} of {runs}"
    yield f"64 nodes, one hangs: {rounds / runs:.1f} rounds, {waits / runs:.1f} of them wait for it"


def starved_rounds(runs: int = 300) -> Iterable[str]:
    """Innocents convicted where one round in five is slow for everybody, heeded or not."""
    for n in (8, 64, 256):
        for heeds in (True, False):
            innocents, missed, rounds = 0, 0, 0
            for run in range(runs):
                rng = random.Random(f"{SEED}/starved/{n}/{run}")
                fabric = Fabric(n, rng, starved=0.2, heeds=heeds)
                fabric.bad = frozenset(rng.sample(fabric.names, 1))
                tally = ladder(fabric)
                innocents += len(tally.convicted - fabric.bad)
                missed += len(fabric.bad - tally.convicted)
                rounds += tally.rounds
            yield (
                f"{n} nodes, 1 bad, a fifth of rounds starved, {'' if heeds else 'not '}heeded:"
                f" {innocents} innocents in {runs} runs, {missed} missed,"
                f" {rounds / runs:.1f} rounds"
            )


def planning(n: int = 10_000) -> Iterable[str]:
    """CPU seconds to plan each round of a good cluster and to judge it, every level asked for."""
    members = [Member(f"n{i:05d}", f"leaf{i // PER_LEAF}") for i in range(n)]
    state, took = start(members, Options(levels=EVERY)), dict[str, float]()
    while True:
        began = time.process_time()
        played = next_round(state)
        seconds = time.process_time() - began
        name = played.stage if played else "end"
        took[name] = max(took.get(name, 0.0), seconds)
        if played is None:
            break
        results = [Result(group=group, outcome=Outcome.PASS) for group in played.groups]
        state = record(state, played, results)
    slowest = ", ".join(f"{name} {seconds:.2f}" for name, seconds in took.items())
    yield f"{n} nodes, planning one round, CPU s: {slowest}"


if __name__ == "__main__":
    for line in (*planning(), *rails_and_hangs(), *starved_rounds(), *leaves_named()):
        print(line, flush=True)
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 100):
        print(line, flush=True)
