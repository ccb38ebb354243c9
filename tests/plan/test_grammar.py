"""Durations, sizes, gates, retries, batches: what is read, and what is refused with which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.model.runbook import Effect, Gate, GateKind, OnFail, Retry, RetryOn
from recovery.plan.grammar import (
    GrammarError,
    batch_sizes,
    exact_duration,
    parse_batch,
    parse_duration,
    parse_gate,
    parse_retry,
    parse_size,
    parse_word,
    show_duration,
    show_gate,
    show_retry,
)


def refusal(parse, raw):
    with pytest.raises(GrammarError) as caught:
        parse(raw)
    return caught.value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1.5h", 5400),
        (" 5s ", 5),
        ("0s", 0),
    ],
)
def test_a_duration_is_read_by_its_unit(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("raw", ["60", "", "s", "5 s", "-5s", "5S", "1h30", None, [], True, "5sec"])
def test_what_has_no_unit_that_we_know_is_no_duration(raw):
    assert "is not a duration" in refusal(parse_duration, raw).message


def test_a_bare_number_is_told_its_units():
    error = refusal(parse_duration, 60)

    assert error.message == "60 has no unit"
    assert error.remedy == "write 60s for seconds, 60m, 60h"


@pytest.mark.parametrize(
    ("text", "size"),
    [("8G", 8 << 30), ("512M", 512 << 20), ("64K", 65536), ("1.5T", 3 << 39), ("8GiB", 8 << 30)],
)
def test_a_size_counts_in_powers_of_1024(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("raw", ["8", "8GB", "8g", 8, None, "G", "-8G"])
def test_a_size_without_a_clear_unit_is_refused(raw):
    assert "is not a size" in refusal(parse_size, raw).message


@pytest.mark.parametrize(
    ("raw", "gate"),
    [
        ("all", Gate(GateKind.ALL)),
        ("any", Gate(GateKind.ANY)),
        (4, Gate(GateKind.COUNT, 4)),
        ("120", Gate(GateKind.COUNT, 120)),
        ("90%", Gate(GateKind.PERCENT, 90)),
        ("all but 2", Gate(GateKind.ALL_BUT, 2)),
        ("all but 0", Gate(GateKind.ALL_BUT, 0)),
    ],
)
def test_a_gate_is_read_in_each_of_its_forms(raw, gate):
    assert parse_gate(raw) == gate


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (0, "a gate of 0 opens when nothing passed"),
        ("0%", "a gate of 0% opens when nothing passed"),
        ("101%", "101% is more than all"),
        ("al", "'al' is not a gate (did you mean \"all\"?)"),
        (True, "True is not a gate"),
        (0.9, "0.9 is not a gate"),
        ("-3", "'-3' is not a gate"),
        ("all but", "'all but' is not a gate"),
        (None, "None is not a gate"),
    ],
)
def test_a_gate_that_could_open_on_nothing_is_refused(raw, said):
    assert refusal(parse_gate, raw).message.startswith(said)


@given(st.builds(Gate, st.sampled_from(GateKind), st.integers(1, 100)))
def test_a_gate_shown_is_read_as_the_same_gate(gate):
    plain = gate.kind in (GateKind.ALL, GateKind.ANY)

    assert parse_gate(show_gate(gate)) == (Gate(gate.kind) if plain else gate)


@pytest.mark.parametrize(
    ("raw", "retry"),
    [
        (3, Retry(3)),
        ("3", Retry(3)),
        ("3, 5s..60s on lost", Retry(3, 5, 60, frozenset({RetryOn.LOST}))),
        ("2 on rc,expect", Retry(2, 1, 60, frozenset({RetryOn.RC, RetryOn.EXPECT}))),
        ("5, 1s..2m", Retry(5, 1, 120)),
        (
            {"times": 3, "from": "5s", "cap": "60s", "on": ["lost"]},
            parse_retry("3, 5s..60s on lost"),
        ),
        ({"times": 3, "on": "busy"}, Retry(3, 1, 60, frozenset({RetryOn.BUSY}))),
    ],
)
def test_a_retry_is_read_in_its_short_and_its_long_form(raw, retry):
    assert parse_retry(raw) == retry


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (0, "'0' attempts are not possible"),
        ("three", "'three' is not a retry"),
        ("3, 5s", "'3, 5s' is not a retry"),
        ("3, 60s..5s", "the back-off begins at 60s and is capped at 5s"),
        ("3 on los", "'los' is not an ending (did you mean \"lost\"?)"),
        ({"times": 3, "form": "5s"}, "'form' is not a key of retry (did you mean \"from\"?)"),
        ({"from": "5s"}, "retry says no number of attempts"),
        ({"times": 3, "on": 7}, "7 is not a list of endings"),
        ({"times": 3, "from": 5}, "5 has no unit"),
        ({"times": True}, "True attempts are not possible"),
        (True, "True is not a retry"),
    ],
)
def test_a_retry_that_cannot_be_is_refused_in_words(raw, said):
    assert refusal(parse_retry, raw).message.startswith(said)


@given(
    st.builds(
        Retry,
        st.integers(2, 9),
        st.sampled_from([0.5, 1.0, 5.0, 60.0]),
        st.sampled_from([60.0, 90.0, 600.0, 7200.0]),
        st.frozensets(st.sampled_from(RetryOn), min_size=1),
    )
)
def test_a_retry_shown_is_read_as_the_same_retry(retry):
    assert parse_retry(show_retry(retry)) == retry


@pytest.mark.parametrize("raw", [[], [0], ["10"], ["x"], [True], ["101%"], {}, ["1", "5.5%"]])
def test_only_numbers_and_shares_are_batches(raw):
    if raw == ["10"]:
        assert parse_batch(raw) == ("10",)
    else:
        assert "is not a batch size" in refusal(parse_batch, raw).message


def test_batches_say_how_many_are_done_and_the_last_takes_the_rest():
    assert batch_sizes(("1", "10%", "100%"), 128) == (1, 12, 115)
    assert batch_sizes(("1", "10%"), 128) == (1, 12, 115)
    assert batch_sizes(("10%", "10%"), 3) == (1, 2)
    assert batch_sizes(("500",), 4) == (4,)


@given(st.lists(st.integers(1, 300).map(str), min_size=1, max_size=5), st.integers(0, 200))
def test_batches_hold_every_node_once(words, total):
    sizes = batch_sizes(tuple(words), total)

    assert sum(sizes) == total
    assert all(size > 0 for size in sizes)


def test_a_word_names_the_nearest_one_of_its_list():
    error = refusal(lambda raw: parse_word(OnFail, raw, "a word"), "quarantin")

    assert error.message == "'quarantin' is not a word (did you mean \"quarantine\"?)"
    assert error.remedy == "one of: abort, quarantine, continue"
    assert parse_word(Effect, "read", "an effect") is Effect.READ


def test_durations_for_people_have_two_units_at_most():
    shown = [show_duration(s) for s in (0.5, 5, 45, 60, 95, 600, 3600, 7500, 90_000)]

    assert shown == [
        "0.5 s", "5 s", "45 s", "1 min", "1 min 35 s", "10 min", "1 h", "2 h 05 min", "25 h",
    ]  # fmt: skip


@given(st.integers(0, 10**6))
def test_an_exact_duration_is_read_as_the_same_number(seconds):
    assert parse_duration(exact_duration(seconds)) == seconds
