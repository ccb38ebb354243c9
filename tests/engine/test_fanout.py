"""Many nodes at once: one node's trouble is its own."""

import threading

import pytest

from recovery.engine.fanout import fan_out
from recovery.errors import StoreError


def run(items, work, width=4):
    told = []
    found = fan_out(
        items,
        work,
        width=width,
        broken=lambda item, trace: ("broken", item, trace),
        done=lambda item, result: told.append(item),
    )
    return found, told


def test_results_come_in_the_order_of_the_items():
    found, told = run([3, 1, 2], lambda n: n * 10)

    assert found == [30, 10, 20]
    assert sorted(told) == [1, 2, 3]


def test_nothing_to_do_is_nothing_done():
    assert run([], lambda n: n) == ([], [])


def test_an_exception_is_the_result_of_its_own_item_with_the_traceback():
    def work(n):
        if n == 2:
            raise ZeroDivisionError("two")
        return n

    found, told = run([1, 2, 3], work)

    assert found[0] == 1
    assert found[2] == 3
    assert found[1][:2] == ("broken", 2)
    assert "ZeroDivisionError: two" in found[1][2]
    assert sorted(told) == [1, 2, 3]


def test_no_more_than_the_width_run_at_once():
    lock, running, most = threading.Lock(), [0], [0]
    barrier = threading.Barrier(3)

    def work(n):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        barrier.wait(timeout=10)  # only goes on when three are really at work together
        with lock:
            running[0] -= 1
        return n

    run(range(9), work, width=3)

    assert most[0] == 3


def test_a_journal_that_cannot_be_written_stops_everything():
    def work(n):
        raise StoreError("full", remedy="free space")

    with pytest.raises(StoreError):
        run(range(100), work, width=1)
