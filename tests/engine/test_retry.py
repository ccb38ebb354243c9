"""Trying again: only what may be repeated, and with growing pauses."""

import pytest

from recovery.engine.retry import class_of, delay_s, may_retry
from recovery.model.kind import NodeResult
from recovery.model.output import Ending
from recovery.model.runbook import Effect, Rerun, Retry, RetryOn
from recovery.model.verdict import failed, passed, single, unknown
from tests.fakes import a_step

EVERY = frozenset(RetryOn)


def result(ending=Ending.FINISHED, status=None, trouble="", *, good=False):
    finding = passed("fine") if good else failed("bad", remedy="mend it")
    return NodeResult(
        node="n1", verdict=single(finding), ending=ending, exit_status=status, trouble=trouble
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (result(good=True), None),
        (result(Ending.LOST), RetryOn.LOST),
        (result(Ending.NEVER_STARTED), RetryOn.LOST),
        (result(Ending.NEVER_STARTED, trouble="busy"), RetryOn.BUSY),
        (result(Ending.TIMEOUT), RetryOn.TIMEOUT),
        (result(status=3), RetryOn.RC),
        (result(status=0), RetryOn.EXPECT),
    ],
)
def test_each_end_has_its_class(given, expected):
    assert class_of(given) is expected


def test_the_delay_doubles_up_to_the_cap_and_is_jittered_downwards():
    retry = Retry(times=9, from_s=5, cap_s=60)

    delays = [delay_s(retry, attempt, "n1") for attempt in range(1, 8)]

    full = [5, 10, 20, 40, 60, 60, 60]
    assert all(f / 2 <= d <= f for d, f in zip(delays, full, strict=True))


def test_two_nodes_do_not_wait_the_same_time():
    assert delay_s(Retry(), 1, "n1") != delay_s(Retry(), 1, "n2")


def test_attempts_end_at_the_number_given():
    step = a_step(retry=Retry(times=2, on=EVERY), effect=Effect.READ)

    assert may_retry(step, result(status=1), 1)
    assert not may_retry(step, result(status=1), 2)


def test_one_attempt_means_no_retry():
    assert not may_retry(a_step(retry=Retry(times=1, on=EVERY)), result(status=1), 1)


@pytest.mark.parametrize("ending", [Ending.LOST, Ending.TIMEOUT])
def test_a_write_that_may_have_done_its_work_is_not_repeated(ending):
    retry = Retry(times=3, on=EVERY)

    assert not may_retry(a_step(retry=retry, effect=Effect.WRITE), result(ending), 1)
    assert may_retry(a_step(retry=retry, effect=Effect.READ), result(ending), 1)
    safe = a_step(retry=retry, effect=Effect.WRITE, rerun=Rerun.SAFE)
    assert may_retry(safe, result(ending), 1)


def test_a_write_that_never_started_is_repeated():
    step = a_step(retry=Retry(times=3, on=EVERY), effect=Effect.WRITE)

    assert may_retry(step, result(Ending.NEVER_STARTED), 1)


@pytest.mark.parametrize("trouble", ["auth", "hostkey", "sudo", "unkillable", "unsure"])
def test_what_cannot_change_by_itself_is_not_asked_again(trouble):
    step = a_step(retry=Retry(times=3, on=EVERY), effect=Effect.READ)

    assert not may_retry(step, result(Ending.NEVER_STARTED, trouble=trouble), 1)


def test_an_unknown_verdict_of_a_finished_command_is_of_class_expect():
    silent = NodeResult(node="n1", verdict=single(unknown("unreadable", remedy="look")))

    assert class_of(silent) is RetryOn.EXPECT
