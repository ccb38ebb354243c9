"""Rules that need no statistic: iterations, NaN, samples, skipped steps, scale, speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from recovery.continuity.words import Case
from recovery.model.verdict import Finding, failed, warned
from recovery.reading.training_point import Point

_SCALE_FACTOR = 16.0
_SLOWER = 1.5
_SLOWER_AT_LEAST_MS = 50.0  # below that a busy machine's scheduler makes the difference
_WARM_UP = 2  # lines whose time includes compiling and filling caches


def rules(case: Case) -> Iterator[Finding]:
    """Everything wrong that one line or one pair of lines shows."""
    yield from _not_numbers(case)
    yield from _steps(case)
    yield from _samples(case)
    yield from _skipped(case)
    yield from _without_loss(case)
    yield from _settings(case)
    yield from _speed(case)


def _not_numbers(case: Case) -> Iterator[Finding]:
    for name, words in (("loss", "loss"), ("grad_norm", "gradient norm")):
        for point in case.after:
            value = getattr(point, name)
            if value is not None and not math.isfinite(value):
                yield failed(
                    f"the {words} is {value} at iteration {point.iteration}",
                    remedy=case.go_back,
                    code="verify.nan",
                )
                break
    counted = sum(p.nan_iterations or 0 for p in case.after)
    if counted:
        yield failed(
            f"{counted} iterations since the relaunch were NaN",
            remedy=case.go_back,
            code="verify.nan",
        )


def _steps(case: Case) -> Iterator[Finding]:
    first = case.after[0].iteration
    for one, other in pairwise(case.logged.starts):
        yield failed(
            f"the iteration went back from {one[-1].iteration} to {other[0].iteration}"
            " since the relaunch: the job started again",
            remedy="read its log at that place: why did it start again? `recover triage LOG`",
            code="verify.back",
        )
    newest = case.before[-1].iteration if case.before else None
    known = case.step if case.step is not None else newest
    if case.step is not None and first < case.step:
        yield failed(
            f"it began at iteration {first}, before the checkpoint at {case.step}",
            remedy="stop the job: did it get the resume argument? which checkpoint did it load?",
            code="verify.step",
        )
    elif known is not None and first > known + 2 * case.interval:
        what = "the checkpoint is" if case.step is not None else "the log from before ends at"
        yield failed(
            f"it began at iteration {first}, {what} {known}",
            remedy="stop the job: which checkpoint did it load? or is the log's beginning missing?",
            code="verify.step",
        )
    holes = [(a, b) for a, b in _neighbours(case) if b - a > 3 * case.interval]
    if holes:
        yield warned(
            f"no line between iterations {holes[0][0]} and {holes[0][1]}",
            remedy="was the log cut or rotated? look at the whole of it",
            code="verify.gap",
        )


def _neighbours(case: Case) -> Iterator[tuple[int, int]]:
    return pairwise(point.iteration for point in case.after)


def _samples(case: Case) -> Iterator[Finding]:
    for old, new in case.pairs:
        if None not in (old.consumed_samples, new.consumed_samples) and (
            old.consumed_samples != new.consumed_samples
        ):
            yield failed(
                f"{new.consumed_samples} samples were consumed at iteration {new.iteration},"
                f" {old.consumed_samples} before",
                remedy="stop the job: the data order or the batch size is not what it was",
                code="verify.samples",
            )
            return


def _skipped(case: Case) -> Iterator[Finding]:
    told = [p for p in case.after if p.skipped is not None]
    idle = [p for p in told if p.skipped and p.loss is None and p.lr in (None, 0.0)]
    if len(told) >= 2 and len(idle) == len(told):
        yield failed(
            f"all {sum(p.skipped or 0 for p in told)} iterations were skipped",
            remedy=case.go_back,
            code="verify.skipped",
        )
        return
    more = [n.iteration for o, n in case.pairs if (n.skipped or 0) > (o.skipped or 0)]
    if more:
        yield warned(
            f"iteration {more[0]} was skipped now and was not before",
            remedy="was the loss scale restored? it should settle within some iterations",
            code="verify.skipped",
        )


def _without_loss(case: Case) -> Iterator[Finding]:
    some = any(p.loss is not None for p in (*case.before, *case.after))
    without = [p for p in case.after if p.loss is None and not p.skipped]
    megatron = case.logged.format == "megatron"
    if some and megatron and without:
        yield warned(
            f"iteration {without[0].iteration} has no loss in its line",
            remedy="Megatron leaves a NaN loss out: look at the next lines",
            code="verify.loss-missing",
        )


def _settings(case: Case) -> Iterator[Finding]:
    batches = _last_both(case, "global_batch")
    if batches and batches[0] != batches[1]:
        yield warned(
            f"the global batch is {batches[1]:.0f}, it was {batches[0]:.0f}",
            remedy="meant so? else stop the job and give it the batch of before",
            code="verify.batch",
        )
    scales = _last_both(case, "loss_scale")
    if scales and min(scales) > 0 and max(scales) / min(scales) > _SCALE_FACTOR:
        yield warned(
            f"the loss scale is {scales[1]:g}, it was {scales[0]:g}",
            remedy="was the scaler's state restored? look whether iterations are skipped",
            code="verify.loss-scale",
        )


def _last_both(case: Case, name: str) -> tuple[float, float] | None:
    old = [v for p in case.before if (v := getattr(p, name)) is not None]
    new = [v for p in case.after if (v := getattr(p, name)) is not None]
    return (float(old[-1]), float(new[0])) if old and new else None


def _speed(case: Case) -> Iterator[Finding]:
    old, new = _times(case.before), _times(case.after[_WARM_UP:])
    if len(old) < 3 or len(new) < 3:
        return
    was, now = median(old), median(new)
    if now > _SLOWER * was and now - was > _SLOWER_AT_LEAST_MS:
        yield warned(
            f"an iteration takes {now:.0f} ms, it took {was:.0f} ms",
            remedy="correct but slow: look for a slow node or link, `mesh` finds it",
            code="verify.slow",
        )


def _times(points: Sequence[Point]) -> list[float]:
    return [p.ms_per_iteration for p in points if p.ms_per_iteration is not None]
