"""Matrices of nvbandwidth."""

import pytest

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.nvbandwidth import read_nvbandwidth

CASE = """Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.10     26.40

SUM host_to_device_memcpy_ce 81.50
"""


def test_each_column_is_a_gpu():
    seen = read_nvbandwidth(Printed(CASE))

    assert seen.cases == {"host_to_device_memcpy_ce": {"GPU0": 55.1, "GPU1": 26.4}}
    assert seen.whole == {"host_to_device_memcpy_ce"}


def test_of_several_rows_the_slowest_counts_and_the_diagonal_does_not():
    rows = " 0   N/A   300.1\n 1  290.5   N/A\n 2  280.0 310.0\n"
    text = f"Running device_to_device.\n{rows}SUM device_to_device 1\n"

    assert read_nvbandwidth(Printed(text)).cases["device_to_device"] == {
        "GPU0": 280.0,
        "GPU1": 300.1,
    }


@pytest.mark.parametrize("end", [40, 100, 130, len(CASE) - 20])
def test_a_case_without_its_sum_is_not_whole(end):
    assert read_nvbandwidth(Printed(CASE[:end])).whole == frozenset()


def test_an_error_is_kept_in_the_tools_words():
    seen = read_nvbandwidth(Printed("", "[CUDA_ERROR_NO_DEVICE] no device\n", 1))

    assert seen.troubles == ("[CUDA_ERROR_NO_DEVICE] no device",)


def test_another_text_is_unreadable():
    with pytest.raises(ParseError):
        read_nvbandwidth(Printed("hello\n"))
