"""The counters of NVLinks, old and new layout."""

import pytest

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.nvlink_errors import read_nvlink_errors

ONE = "GPU {}: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: Replay Errors: {}\n\t Link 0: CRC Errors: 0\n"


def test_counters_are_by_gpu_and_link():
    seen = read_nvlink_errors(Printed(ONE.format(0, 3) + ONE.format(1, 0)))

    assert seen.gpus == ("GPU0", "GPU1")
    assert seen.counts["GPU0", 0] == {"replay errors": 3, "crc errors": 0}
    assert seen.torn == ""


def test_a_value_that_is_not_supported_is_left_out():
    seen = read_nvlink_errors(Printed(ONE.format(0, "N/A")))

    assert seen.counts["GPU0", 0] == {"crc errors": 0}


def test_a_gpu_with_fewer_links_than_the_first_is_a_cut_text():
    more = ONE.format(0, 0) + "\t Link 1: Replay Errors: 0\n\t Link 1: CRC Errors: 0\n"

    assert "GPU1 has 1 links" in read_nvlink_errors(Printed(more + ONE.format(1, 0))).torn


def test_an_unfinished_line_is_told():
    assert read_nvlink_errors(Printed(ONE.format(0, 0).rstrip("\n"))).torn


@pytest.mark.parametrize("text", ["", "No devices were found\n", "\t Link 0: CRC Errors: 0\n"])
def test_counters_without_a_gpu_are_unreadable(text):
    with pytest.raises(ParseError):
        read_nvlink_errors(Printed(text))
