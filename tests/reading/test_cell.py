"""Values as NVIDIA's tools print them."""

from __future__ import annotations

import pytest

from recovery.reading.cell import bus_id, decimal, is_absent, is_failed, whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "N/A",
        "[N/A]",
        "Not Supported",
        "[Not Supported]",
        "[Insufficient Permissions]",
        "[Requested functionality has been deprecated]",
        "[Something New]",
    ],
)
def test_the_words_for_no_value(text: str) -> None:
    assert is_absent(text)
    assert not is_failed(text)


@pytest.mark.parametrize(
    "text",
    [
        "ERR!",
        "[Unknown Error]",
        "Unknown Error",
        "[GPU is lost]",
        "GPU is lost",
        "[GPU requires reset]",
    ],
)
def test_the_words_for_a_failed_reading(text: str) -> None:
    assert is_failed(text)
    assert not is_absent(text)


@pytest.mark.parametrize("text", ["0", "None", "No", "P0", "Not Active", "42 C"])
def test_plain_values_are_neither(text: str) -> None:
    assert not is_absent(text)
    assert not is_failed(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("26.562 GB/s", 26.562),
        ("26,562 GB/s", 26.562),
        ("-2 C", -2.0),
        ("1,234.5 W", 1234.5),
        ("700.00 W", 700.0),
        ("none", None),
        ("", None),
    ],
)
def test_numbers_with_decimals(text: str, number: float | None) -> None:
    assert decimal(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("81559 MiB", 81559),
        ("81,559 MiB", 81559),
        ("81.559 MiB", 81559),
        ("16x", 16),
        ("0", 0),
        ("29C", 29),
        ("-3 C", -3),
        ("x16", None),
        ("", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", ["0F:00.0", "0000:0f:00.0", "00000000:0F:00.0", "0x0000:0F:00"])
def test_addresses_have_one_form(text: str) -> None:
    assert bus_id(text) == "00000000:0F:00.0"


def test_what_is_no_address_stays() -> None:
    assert bus_id(" GPU 3 ") == "GPU 3"
