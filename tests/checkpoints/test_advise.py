from __future__ import annotations

import math
import random

import pytest

from recovery.checkpoints.advise import Workload, advise, daly, lost_part, young
from recovery.errors import InputError

MINUTE, HOUR = 60.0, 3600.0

# Interruptions every M, saves that stop training for C, 10 minutes to restart: the lost time at
# M/10 and at Young's interval, in percent; event simulation agrees within half a point.
TABLE = [
    (150 * MINUTE, 10.0, 12.1, 10.8),
    (150 * MINUTE, 45.0, 15.5, 15.5),
    (150 * MINUTE, 120.0, 22.0, 20.9),
    (150 * MINUTE, 300.0, 34.4, 28.6),
    (24 * HOUR, 10.0, 5.7, 2.2),
    (24 * HOUR, 300.0, 8.9, 8.7),
]


@pytest.mark.parametrize(("mtbf_s", "stall_s", "tenth", "best"), TABLE)
def test_the_lost_time_is_the_known_one(
    mtbf_s: float, stall_s: float, tenth: float, best: float
) -> None:
    advice = advise(Workload(stall_s=stall_s, mtbf_s=mtbf_s))

    lost = {i.name: 100 * i.lost for i in advice.intervals}
    assert lost["MTBF/10"] == pytest.approx(tenth, abs=0.1)
    assert lost["Young"] == pytest.approx(best, abs=0.1)


def test_the_model_agrees_with_a_simulation_of_interruptions() -> None:
    chance = random.Random(7)
    mtbf_s, stall_s, restart_s, every_s = 9000.0, 120.0, 600.0, 1470.0
    wall_s = done_s = 0.0
    left = chance.expovariate(1 / mtbf_s)
    for _ in range(60_000):
        need = every_s + stall_s
        while left < need:
            wall_s += left
            left = chance.expovariate(1 / mtbf_s)
            while left < restart_s:
                wall_s += left
                left = chance.expovariate(1 / mtbf_s)
            wall_s, left = wall_s + restart_s, left - restart_s
        wall_s, done_s, left = wall_s + need, done_s + every_s, left - need

    assert lost_part(every_s, stall_s, mtbf_s, restart_s) == pytest.approx(
        1 - done_s / wall_s, abs=0.01
    )


def test_young_and_daly_are_the_published_formulas() -> None:
    assert young(45, 9000) == 900
    assert daly(45, 9000) == pytest.approx(900 * (1 + 0.05 / 3 + 0.0025 / 9) - 45)
    assert daly(100, 40) == 40


def test_a_tenth_of_the_mtbf_is_right_only_for_a_save_of_a_two_hundredth() -> None:
    assert young(150 * MINUTE / 200, 150 * MINUTE) == pytest.approx(15 * MINUTE)


def test_the_least_loss_comes_first() -> None:
    advice = advise(Workload(stall_s=10, mtbf_s=24 * HOUR))

    assert advice.best.name in ("Young", "Daly")
    assert advice.intervals[-1].name == "MTBF/10"


def test_bandwidth_gpu_hours_and_money_follow() -> None:
    advice = advise(
        Workload(
            stall_s=45,
            mtbf_s=9000,
            size_bytes=405e9 * 12,
            n_gpus=16384,
            gpu_hour_price=2.0,
            tiers={"pfs": 100e9, "object": 10e9},
        )
    )

    assert advice.bytes_per_s == pytest.approx(108e9)
    assert advice.gpu_hours_lost_per_day == pytest.approx(16384 * advice.best.lost * 24)
    assert advice.money_lost_per_day == pytest.approx(2 * (advice.gpu_hours_lost_per_day or 0))
    assert [t.name for t in advice.tiers] == ["pfs", "object"]
    assert advice.tiers[1].every_s > advice.tiers[0].every_s


@pytest.mark.parametrize("stall_s", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(stall_s: float) -> None:
    with pytest.raises(InputError, match="save time must be above zero"):
        advise(Workload(stall_s=stall_s, mtbf_s=100))


def test_a_hopeless_interval_loses_everything() -> None:
    assert lost_part(1e9, 1, 1, 1) == 1.0
