from __future__ import annotations

import pytest

from recovery.checkpoints.quantities import amount, duration_s, span, volume
from recovery.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("150m", 9000), ("2.5h", 9000), ("1d", 86400)]
)
def test_durations_carry_a_unit(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "number"), [("405B", 405e9), ("20GB", 20e9), ("1.5TB/s", 1.5e12), ("7", 7)]
)
def test_amounts_are_powers_of_ten(text: str, number: float) -> None:
    assert amount(text) == number


@pytest.mark.parametrize("text", ["", "45", "fast", "-3s"])
def test_a_duration_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a duration"):
        duration_s(text)


def test_an_amount_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="not an amount"):
        amount("many")


def test_people_read_short_numbers() -> None:
    assert (span(45), span(900), span(9000), span(200000)) == ("45 s", "15 min", "2.5 h", "2.31 d")
    assert (volume(5e5), volume(4.86e12)) == ("500 kB", "4.86 TB")
