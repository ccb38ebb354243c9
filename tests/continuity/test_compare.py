"""The verdict on a resume: every rule says no once, and the statistic keeps its rates."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from recovery.continuity import Continuity, Options, Strength, compare
from recovery.model.verdict import Level
from recovery.reading.training_point import Point
from recovery.reading.training_points import BY_EPOCH, Points
from tests.bench.continuity_rates import World, rates

STEP = 200
Change = Callable[[Point], Point]


def curve(first: int, last: int, *, seed: int = 7) -> list[Point]:
    """A training of 400 iterations with the noise of its batches; the same for the same seed."""
    found = []
    for n in range(first, last + 1):
        noise = random.Random(seed * 100_003 + n).gauss(0, 1)
        found.append(
            Point(
                iteration=n,
                loss=3.0 - 0.002 * n + 0.03 * noise,
                lr=1e-3 * (1 - n / 1000),
                grad_norm=math.exp(0.1 * noise),
                consumed_samples=32 * n,
                ms_per_iteration=100.0,
            )
        )
    return found


def logged(*starts: Sequence[Point], fmt: str = "plain") -> Points:
    return Points(tuple(tuple(start) for start in starts), fmt)


def judged(
    change: Change = lambda p: p,
    *,
    before: Sequence[Point] | None = None,
    after: Sequence[Point] | None = None,
    step: int | None = STEP,
    options: Options | None = None,
    fmt: str = "plain",
) -> Continuity:
    old = curve(1, 240) if before is None else before
    new = curve(201, 248) if after is None else after
    return compare(
        logged(old, fmt=fmt) if old else None,
        logged([change(p) for p in new], fmt=fmt),
        checkpoint_step=step,
        options=options or Options(),
    )


def codes(found: Continuity, level: Level) -> set[str]:
    return {f.code for f in found.verdict.findings if f.level is level}


def at(iteration: int, **changes: object) -> Change:
    """Changes one iteration."""
    return lambda p: replace(p, **changes) if p.iteration == iteration else p  # type: ignore[arg-type]  # by field


def test_a_resume_that_repeats_everything_is_verified() -> None:
    found = judged()

    assert found.verdict.level is Level.PASS
    assert (found.strength, found.overlap, found.diagnosis) == (Strength.STRONG, 40, "")
    assert found.verified
    assert "iterations 201 to 248, 40 of them compared" in found.verdict.findings[0].finding


def test_noise_of_kernels_far_below_that_of_batches_is_none() -> None:
    rng = random.Random(1)

    found = judged(lambda p: replace(p, loss=(p.loss or 0) + rng.gauss(0, 0.001)))

    assert found.verdict.level is Level.PASS


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["loss", "grad_norm"])
def test_a_value_that_is_no_number_fails(name: str, value: float) -> None:
    found = judged(at(220, **{name: value}))

    assert codes(found, Level.FAIL) == {"verify.nan"}
    assert "220" in found.verdict.worst.finding


def test_nan_iterations_that_were_counted_fail() -> None:
    assert "verify.nan" in codes(judged(at(220, nan_iterations=2)), Level.FAIL)


@pytest.mark.parametrize("first", [150, 199, 203, 230])
def test_a_wrong_first_iteration_fails(first: int) -> None:
    assert "verify.step" in codes(judged(after=curve(first, 248)), Level.FAIL)


@pytest.mark.parametrize("first", [200, 201, 202])
def test_a_first_iteration_near_the_checkpoint_is_right(first: int) -> None:
    assert judged(after=curve(first, 248)).verdict.level is Level.PASS


def test_without_a_known_checkpoint_a_gap_after_the_old_log_fails() -> None:
    assert "verify.step" in codes(judged(after=curve(250, 298), step=None), Level.FAIL)


def test_a_job_that_started_again_since_the_relaunch_fails() -> None:
    found = compare(
        logged(curve(1, 240)), logged(curve(201, 230), curve(201, 240)), checkpoint_step=STEP
    )

    assert "verify.back" in codes(found, Level.FAIL)


def test_lines_that_are_missing_warn() -> None:
    after = [p for p in curve(201, 248) if not 215 < p.iteration < 225]

    assert codes(judged(after=after), Level.WARN) == {"verify.gap"}


def test_other_consumed_samples_fail() -> None:
    found = judged(lambda p: replace(p, consumed_samples=16 * p.iteration))

    assert codes(found, Level.FAIL) == {"verify.samples"}


def test_only_skipped_iterations_fail_and_single_ones_warn() -> None:
    all_of_them = judged(lambda p: replace(p, skipped=1, loss=None, lr=0.0))
    one = judged(at(203, skipped=1))

    assert "verify.skipped" in codes(all_of_them, Level.FAIL)
    assert codes(one, Level.WARN) == {"verify.skipped"}


def test_a_megatron_line_without_a_loss_warns() -> None:
    assert "verify.loss-missing" in codes(judged(at(210, loss=None), fmt="megatron"), Level.WARN)


def test_another_batch_size_loss_scale_or_speed_warns() -> None:
    old = [replace(p, global_batch=64, loss_scale=65536.0) for p in curve(1, 240)]

    found = judged(
        lambda p: replace(p, global_batch=32, loss_scale=128.0, ms_per_iteration=400.0), before=old
    )

    expected = {"verify.batch", "verify.loss-scale", "verify.slow"}
    assert codes(found, Level.WARN) == expected


@pytest.mark.parametrize("factor", [0.5, 1.001, 1.5])
def test_another_learning_rate_fails(factor: float) -> None:
    found = judged(lambda p: replace(p, lr=(p.lr or 0) * factor))

    assert codes(found, Level.FAIL) == {"verify.lr"}
    assert found.diagnosis == "learning rate"


def test_a_learning_rate_logged_one_line_apart_is_noted() -> None:
    found = judged(lambda p: replace(p, lr=1e-3 * (1 - (p.iteration + 1) / 1000)))

    assert found.verdict.level is Level.PASS
    assert "verify.lr.shift" in codes(found, Level.PASS)


def test_a_restarted_schedule_fails_though_nothing_overlaps() -> None:
    found = judged(lambda p: replace(p, lr=1e-3), before=curve(1, 200))

    assert "verify.lr" in codes(found, Level.FAIL)


def test_a_learning_rate_that_no_longer_changes_warns() -> None:
    first = curve(201, 201)[0].lr

    found = judged(lambda p: replace(p, lr=first), before=curve(1, 200))

    assert "verify.lr.stuck" in codes(found, Level.WARN)


def test_weights_from_elsewhere_fail_from_the_first_iteration() -> None:
    found = judged(lambda p: replace(p, loss=(p.loss or 0) + 0.03))

    assert "verify.loss.pair" in codes(found, Level.FAIL)
    assert found.diagnosis == "weights"
    assert "older by one: the one before 200" in found.verdict.worst.remedy


def test_a_loss_that_drifts_away_points_at_the_optimizer() -> None:
    found = judged(lambda p: replace(p, loss=(p.loss or 0) + 0.003 * (p.iteration - 201)))

    assert found.verdict.level is Level.FAIL
    assert found.diagnosis == "optimizer state, learning rate or batch"


def test_a_lower_loss_only_warns() -> None:
    found = judged(lambda p: replace(p, loss=(p.loss or 0) - 0.03))

    assert found.verdict.level is Level.WARN


def test_another_gradient_norm_with_the_same_loss_points_at_the_batch() -> None:
    found = judged(lambda p: replace(p, grad_norm=(p.grad_norm or 0) * 1.3))

    assert codes(found, Level.FAIL) == {"verify.grad-norm.pair", "verify.grad-norm.band"}
    assert found.diagnosis == "batch or world size"


def test_another_data_order_warns_unless_it_is_known() -> None:
    other = curve(201, 248, seed=8)

    expected = judged(after=other)
    known = judged(after=other, options=Options(same_data=False))

    assert codes(expected, Level.WARN) == {"verify.order"}
    assert expected.diagnosis == "data order"
    assert known.verdict.level is Level.PASS


def test_a_loss_far_above_the_band_fails_though_nothing_overlaps() -> None:
    found = judged(lambda p: replace(p, loss=(p.loss or 0) + 0.3), before=curve(1, 200))

    assert codes(found, Level.FAIL) == {"verify.loss.band"}


def test_a_spike_that_came_back_only_warns() -> None:
    def spike(p: Point) -> Point:
        height = 0.5 * math.exp(-(p.iteration - 201) / 2)
        return replace(p, loss=(p.loss or 0) + height)

    found = judged(spike, before=curve(1, 200, seed=9), after=curve(201, 248, seed=9))

    assert "a spike that came back" in found.verdict.worst.finding
    assert found.verdict.level is Level.WARN


@pytest.mark.parametrize("last", [200, 203, 207])
def test_few_repeated_iterations_are_never_called_verified(last: int) -> None:
    found = judged(before=curve(1, last))

    assert found.strength is Strength.WEAK
    assert found.verdict.level is Level.WARN
    assert found.verdict.worst.finding.startswith("not verified: ")
    assert "replay" in found.verdict.worst.remedy
    assert not found.verified


def test_eight_repeated_iterations_are_moderate() -> None:
    found = judged(before=curve(1, 208))

    assert (found.strength, found.verdict.level) == (Strength.MODERATE, Level.PASS)


@pytest.mark.parametrize("before", [[], curve(190, 200)])
def test_nothing_to_compare_with_is_unknown(before: list[Point]) -> None:
    found = judged(before=before)

    assert found.strength is Strength.NONE
    assert found.verdict.level is Level.UNKNOWN


def test_a_log_without_losses_is_not_verified() -> None:
    bare = [replace(p, loss=None, grad_norm=None) for p in curve(1, 248)]

    found = judged(before=bare[:240], after=bare[200:])

    assert not found.verified
    assert found.verdict.level is Level.UNKNOWN


def test_no_new_line_is_no_progress() -> None:
    found = compare(logged(curve(1, 240)), None, checkpoint_step=STEP)

    assert codes(found, Level.FAIL) == {"verify.no-progress"}


def test_a_first_loss_counted_twice_is_left_out_and_noted() -> None:
    found = judged(at(201, loss=2 * (curve(201, 201)[0].loss or 0)))

    assert found.verdict.level is Level.PASS
    assert "verify.first-line" in codes(found, Level.PASS)


def test_losses_that_are_printed_coarsely_still_agree() -> None:
    coarse = [replace(p, loss=round(p.loss or 0, 2)) for p in curve(1, 248)]

    assert judged(before=coarse[:240], after=coarse[200:]).verdict.level is Level.PASS


def test_clean_resumes_are_not_failed_and_a_sigma_is_found() -> None:
    clean = rates(World(), 60, seed=3)
    one = rates(World(loss_fault=lambda n: 1.0), 40, seed=4)
    two = rates(World(loss_fault=lambda n: 2.0), 25, seed=5)

    assert clean[0] == 0.0
    assert one[0] >= 0.95
    assert two[0] == 1.0


def test_a_trend_that_bends_far_ahead_is_not_taken_for_a_fault() -> None:
    def bent(p: Point) -> Point:
        return replace(p, loss=(p.loss or 0) + 2.0 * math.exp(-p.iteration / 60))

    early = [bent(p) for p in curve(1, 300)]

    found = judged(before=early[:60], after=early[40:], step=40)

    assert found.verdict.level is Level.PASS


def test_logs_that_name_epochs_only_are_compared_by_them_and_know_no_checkpoint() -> None:
    found = judged(step=10**9, fmt=BY_EPOCH)

    assert found.verdict.level is Level.PASS
    assert found.strength is Strength.STRONG


def test_a_log_by_epoch_and_one_by_iteration_cannot_be_compared() -> None:
    old, new = logged(curve(1, 240)), logged(curve(201, 248), fmt=BY_EPOCH)

    found = compare(old, new, checkpoint_step=STEP)

    assert found.verdict.level is Level.UNKNOWN
    assert not found.verified
