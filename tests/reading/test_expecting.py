"""Expectations are read in the forms in which people write them."""

import pytest

from recovery.reading.expecting import flag, number, wanted, word


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, ()),
        ("a, b", ("a", "b")),
        (["a", 2], ("a", "2")),
        ({"/lustre": "2T"}, ("/lustre",)),
        (" , ", ()),
        (7, ("7",)),
    ],
)
def test_a_list_may_be_written_with_commas(value, read):
    assert wanted({"x": value}, "x") == read


def test_a_number_is_no_truth_value_and_no_text():
    assert number({"x": 3}, "x") == 3.0
    assert number({"x": True}, "x") is None
    assert number({"x": "3"}, "x") is None
    assert number({}, "x") is None


def test_a_version_that_yaml_takes_for_a_number_is_text():
    assert word({"x": 5.15}, "x") == "5.15"
    assert word({}, "x") is None


def test_only_true_and_false_are_a_flag():
    assert flag({"x": False}, "x") is False
    assert flag({"x": "yes"}, "x") is None
