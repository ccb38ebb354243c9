"""Reading training logs line by line, of one rank or of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.train_steps import KEPT
from recovery.reading.trainlog import parse_training_log, read_training_log, read_training_logs


def test_a_long_log_is_counted_whole_and_kept_in_part():
    def lines() -> Iterator[str]:
        for n in range(KEPT + 2000):
            yield f" iteration {n}/ 99999 | lm loss: 2.0E+00 |\n"

    log = read_training_log(lines())

    assert log.n_iterations == KEPT + 2000
    assert len(log.attempts[-1].iterations) == KEPT


def test_a_bar_of_carriage_returns_is_many_lines_and_its_end_may_be_an_error():
    bars = "\r".join(f"Epoch 4:  24%|##   | {n}/5000 [02:00<06:11, 9.87it/s]" for n in range(50))

    log = read_training_log([f"{bars}RuntimeError: CUDA error: unspecified launch failure\n"])

    assert (log.bar_step, log.bar_total) == (49, 5000)
    assert log.first is not None
    assert log.first.kind == "cuda_error"


def error(at: str, rank: int) -> str:
    return f"[rank{rank}]:[E1129 {at} x.cpp:1] CUDA error: unspecified launch failure\n"


def test_clocks_that_differ_are_set_right_before_errors_are_compared():
    sources = [("n1", [error("10:00:00.0", 1)]), ("n2", [error("10:00:05.0", 9)])]

    as_told = read_training_logs(sources)
    corrected = read_training_logs(sources, offsets={"n2": 30.0})

    assert as_told.first is not None
    assert as_told.first.rank == 1
    assert corrected.first is not None
    assert corrected.first.rank == 9
    assert corrected.first.said.host == "n2"


@given(st.text(max_size=2000))
def test_any_text_is_read_or_refused(text: str):
    with suppress(ParseError):  # the only error that may come out
        parse_training_log(Printed(text, command="torchrun x.py"))
