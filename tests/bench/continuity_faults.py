"""What `verify` says of real trainings whose resume leaves something out.

    python -m tests.bench.continuity_faults [CRASHES]      prints the table of the package's README

The training is the lab's job on one rank (plain Python, Adam, schedule, dropout, shuffled data):
once without interruption, then resumed from its own checkpoints, each time with one fault.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recovery.lab
from recovery.continuity import Continuity, compare
from recovery.model.verdict import Level
from recovery.reading.training_points import read_points

sys.path.insert(0, str(Path(recovery.lab.__file__).parent / "jobs"))
import network
import ranks
import train

ITERATIONS, EVERY, NEW = 240, 20, 48
FIRST = 60
Job = Any
Fault = Callable[[Job], None]


class Lines:
    """The job's log in memory."""

    def __init__(self) -> None:
        self.text = ""

    def say(self, line: str) -> None:
        self.text += line + "\n"


def fresh(home: str, log: Lines) -> Job:
    options = argparse.Namespace(
        home=home, iterations=ITERATIONS, interval=EVERY, pause=0, piece_pause=0, keep=0
    )
    return train.Job(options, log)


def lost_moments(job: Job) -> None:
    job.moments = {n: ([0.0] * len(w), [0.0] * len(w)) for n, w in job.weights.items()}


def lost_rng(job: Job) -> None:
    job.rng = random.Random(99)


def other_order(job: Job) -> None:
    job._samples = random.Random(5).sample(job._samples, len(job._samples))


def one_matrix_anew(job: Job) -> None:
    name = next(iter(job.weights))
    job.weights[name] = network.fresh_weights(99)[name]


FAULTS: dict[str, Fault] = {
    "nothing left out": lambda job: None,
    "dropout's random numbers lost": lost_rng,
    "optimizer state lost": lost_moments,
    "data in another order": other_order,
    "one matrix initialised anew": one_matrix_anew,
}


def resumed(home: str, step: int, fault: Fault, *, weights_of: int, rate: float = 1.0) -> str:
    log = Lines()
    job = fresh(home, log)
    job.load(weights_of)
    job.step = step
    fault(job)
    usual = network.learning_rate
    network.learning_rate = lambda n, total: usual(n, total) * rate
    try:
        for _ in range(NEW):
            job.iterate(ranks.from_environment())
    finally:
        network.learning_rate = usual
    return log.text


def judge(whole: list[str], step: int, overlap: int, after: str) -> Continuity:
    before = "".join(line + "\n" for line in whole[: step + overlap])
    return compare(read_points(before), read_points(after), checkpoint_step=step)


def main() -> None:
    crashes = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    with tempfile.TemporaryDirectory() as home:
        log = Lines()
        job, group = fresh(home, log), ranks.from_environment()
        while job.step < ITERATIONS:
            job.iterate(group)
            if job.step % EVERY == 0:
                job.save()
        whole = [line for line in log.text.splitlines() if line.startswith("step=")]
        steps = range(FIRST, FIRST + crashes * EVERY, EVERY)
        rows = [(n, f, 0, 1.0) for n, f in FAULTS.items()]
        rows += [("learning rate x 1.5", FAULTS["nothing left out"], 0, 1.5)]
        rows += [("checkpoint 40 iterations too old", FAULTS["nothing left out"], 40, 1.0)]
        print(f"| {crashes} resumes a row: FAIL / FAIL or WARN | 48 twice | 16 | none |")
        print("| --- | --- | --- | --- |")
        for name, fault, older, rate in rows:
            cells = []
            logs = {s: resumed(home, s, fault, weights_of=s - older, rate=rate) for s in steps}
            for overlap in (48, 16, 0):
                levels = [judge(whole, s, overlap, logs[s]).verdict.level for s in steps]
                weak = "" if overlap else " (never verified)"
                fails = sum(level is Level.FAIL for level in levels)
                either = sum(level in (Level.FAIL, Level.WARN) for level in levels)
                cells.append(f"{fails} / {either}{weak}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
