"""An answer is read once, and why there is none is said as often as it is asked."""

from __future__ import annotations

import pytest

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.once import once


def test_the_same_answer_is_read_once():
    asked: list[str] = []

    @once
    def read(printed: Printed) -> int:
        asked.append(printed.text)
        return len(printed.text)

    assert [read(Printed("abc")), read(Printed("abc")), read(Printed("abcd"))] == [3, 3, 4]
    assert asked == ["abc", "abcd"]


def test_another_status_or_command_is_another_answer():
    asked: list[Printed] = []

    @once
    def read(printed: Printed) -> int:
        asked.append(printed)
        return 0

    for printed in (Printed("a"), Printed("a", exit_status=1), Printed("a", command="ibstat")):
        read(printed)

    assert len(asked) == 3


def test_what_cannot_be_read_is_refused_each_time_with_the_remedy():
    @once
    def read(printed: Printed) -> int:
        raise ParseError(f"not {printed.text}", remedy="do that")

    errors = []
    for _ in range(2):
        with pytest.raises(ParseError, match="not x") as caught:
            read(Printed("x"))
        errors.append(caught.value)

    assert [e.remedy for e in errors] == ["do that", "do that"]
    assert errors[0] is not errors[1]


def test_a_very_large_text_is_not_kept():
    asked: list[int] = []

    @once
    def read(printed: Printed) -> int:
        asked.append(1)
        return 0

    large = Printed("a" * 2_000_001)
    read(large)
    read(large)

    assert len(asked) == 2
