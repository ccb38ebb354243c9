"""How often a resume is failed or warned about: clean ones, and ones with a known fault.

    python -m tests.bench.continuity_rates [RUNS]      prints the table of the package's README

Loss and gradient norm are simulated: a trend, the noise of batches, of which 90 % of the variance
is the data's and comes back with the same batches. 200 iterations before the checkpoint, 30
after it that both logs have, 48 new ones in all.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, sqrt

from recovery.continuity import Continuity, Options, compare
from recovery.model.verdict import Level
from recovery.reading.training_point import Point
from recovery.reading.training_points import Points

CHECKPOINT = 10_000
NOISE = 0.03
DEFAULTS = Options()
Fault = Callable[[int], float]


@dataclass(frozen=True)
class World:
    """One kind of training and what goes wrong with its resume."""

    overlap: int = 30
    new: int = 48
    window: int = 200
    own: float = 0.1  # share of the noise's variance that is not the data's
    trend: str = "late"
    tails: str = "gauss"
    memory: float = 0.0
    spikes: float = 0.0
    interval: int = 1
    same_data: bool = True
    loss_fault: Fault = lambda n: 0.0
    norm_factor: float = 1.0
    options: Options = DEFAULTS


def resume(world: World, rng: random.Random) -> Continuity:
    """The verdict on one simulated resume."""
    data = _noise(world, rng, world.window + max(world.overlap, world.new))
    other = data if world.same_data else _noise(world, rng, len(data))
    first = CHECKPOINT - world.window * world.interval
    before = [
        _point(world, rng, first, n, data[n], 0.0, 1.0) for n in range(world.window + world.overlap)
    ]
    after = [
        _point(
            world, rng, first, n, other[n], world.loss_fault(n - world.window), world.norm_factor
        )
        for n in range(world.window, world.window + world.new)
    ]
    return compare(
        Points((tuple(before),), "plain"),
        Points((tuple(after),), "plain"),
        checkpoint_step=CHECKPOINT,
        options=world.options,
    )


def _noise(world: World, rng: random.Random, n: int) -> list[tuple[float, float]]:
    """Noise of the data, loss and norm, in sigmas."""
    found: list[tuple[float, float]] = []
    loss = norm = spike = 0.0
    keep = sqrt(1 - world.memory**2)
    for _ in range(n):
        loss = world.memory * loss + keep * _draw(world, rng)
        norm = world.memory * norm + keep * _draw(world, rng)
        spike = spike * exp(-1 / 2.5)
        if rng.random() < world.spikes:
            spike += rng.uniform(5, 20)
        found.append((loss + spike, norm + spike))
    return found


def _draw(world: World, rng: random.Random) -> float:
    normal = rng.gauss(0, 1)
    if world.tails == "gauss":
        return normal
    chi = sum(rng.gauss(0, 1) ** 2 for _ in range(4))
    return normal / sqrt(chi / 4) / sqrt(2)  # Student's t with 4, of unit variance


def _point(
    world: World,
    rng: random.Random,
    first: int,
    n: int,
    data: tuple[float, float],
    fault: float,
    factor: float,
) -> Point:
    iteration = first + (n + 1) * world.interval
    share, rest = sqrt(1 - world.own), sqrt(world.own)
    sigma = NOISE * (1 - 0.3 * n / 250 if world.tails == "shrinking" else 1)
    loss = share * data[0] + rest * rng.gauss(0, 1) + fault
    norm = share * data[1] + rest * rng.gauss(0, 1)
    return Point(
        iteration=iteration,
        loss=_trend(world, n) + sigma * loss,
        lr=3e-4 * (1 - iteration / 50_000),
        grad_norm=0.4 * exp(0.1 * norm) * factor,
    )


def _trend(world: World, n: int) -> float:
    if world.trend == "early":
        return 4.0 + 3.0 * exp(-n / 120)
    return 2.5 - (0.002 if world.trend == "anneal" else 0.0001) * n


def bump(height: float, decay: float) -> Fault:
    """A fault that heals."""
    return lambda n: height * exp(-n / decay)


ROWS: tuple[tuple[str, World], ...] = (
    ("clean, late", World()),
    ("clean, early and steep", World(trend="early")),
    ("clean, early and steep, 50 before", World(trend="early", window=50)),
    (
        "clean, early and steep, 20 before, nothing twice",
        World(trend="early", window=20, overlap=0),
    ),
    ("clean, annealing", World(trend="anneal")),
    ("clean, heavy tails (t4)", World(tails="t4")),
    ("clean, noise with memory 0.3", World(memory=0.3)),
    ("clean, noise with memory 0.6", World(memory=0.6)),
    ("clean, 50 iterations before", World(window=50)),
    ("clean, 30 % of the noise not the data's", World(own=0.3)),
    ("clean, 3 % of the noise not the data's", World(own=0.03)),
    ("clean, a line every 10 iterations, 5 twice", World(interval=10, overlap=5)),
    ("clean, nothing logged twice", World(overlap=0)),
    ("clean, benign spikes", World(spikes=0.002)),
    ("other data order, nothing else", World(same_data=False)),
    ("loss +0.25 sigma", World(loss_fault=lambda n: 0.25)),
    ("loss +0.5 sigma", World(loss_fault=lambda n: 0.5)),
    ("loss +0.5 sigma, 60 twice", World(loss_fault=lambda n: 0.5, overlap=60, new=72)),
    ("loss +1 sigma", World(loss_fault=lambda n: 1.0)),
    ("loss +2 sigma", World(loss_fault=lambda n: 2.0)),
    ("loss +4 sigma", World(loss_fault=lambda n: 4.0)),
    ("loss +1 sigma, other data", World(loss_fault=lambda n: 1.0, same_data=False)),
    ("loss +2 sigma, other data", World(loss_fault=lambda n: 2.0, same_data=False)),
    ("loss +4 sigma, nothing logged twice", World(loss_fault=lambda n: 4.0, overlap=0)),
    ("bump 2 sigma, heals in 5", World(loss_fault=bump(2, 5))),
    ("bump 8 sigma, heals in 3", World(loss_fault=bump(8, 3))),
    ("bump 2 sigma, heals in 20", World(loss_fault=bump(2, 20))),
    ("gradient norm x 1.1", World(norm_factor=1.1)),
    ("clean, 200 twice", World(overlap=200, new=200)),
    ("clean, 1000 twice", World(overlap=1000, new=1000)),
    ("loss +1 sigma, 200 twice", World(loss_fault=lambda n: 1.0, overlap=200, new=200)),
    ("loss +1 sigma, 1000 twice", World(loss_fault=lambda n: 1.0, overlap=1000, new=1000)),
)


def rates(world: World, runs: int, seed: int = 20) -> tuple[float, float, float]:
    """Shares of FAIL, of FAIL or WARN, of verified."""
    rng = random.Random(seed)
    found = [resume(world, rng) for _ in range(runs)]
    levels = [one.verdict.level for one in found]
    failed = sum(level is Level.FAIL for level in levels)
    warned = sum(level in (Level.FAIL, Level.WARN) for level in levels)
    return failed / runs, warned / runs, sum(one.verified for one in found) / runs


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    began = time.monotonic()
    print(f"| {runs} resumes a row | FAIL | FAIL or WARN | verified |")
    print("| --- | --- | --- | --- |")
    for name, world in ROWS:
        shares = rates(world, runs)
        print(f"| {name} | " + " | ".join(f"{100 * s:.1f} %" for s in shares) + " |", flush=True)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
