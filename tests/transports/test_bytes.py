"""What a node prints arrives as it was, whole or with the cut counted."""

from __future__ import annotations

import shlex

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery.model.output import Command, Ending
from recovery.model.ports import Transport
from recovery.reading.leash import CAP_BYTES
from tests.transports.servers import Place

ANY_TEXT = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=60
)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}_Q", fullmatch=True)
PATIENT = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def test_both_streams_and_the_status_arrive_apart(place: Place, transport: Transport) -> None:
    output = transport.run(place.node, Command("echo out; echo err >&2; exit 7"))

    assert (output.stdout, output.stderr, output.exit_status) == (b"out\n", b"err\n", 7)
    assert output.ending is Ending.FINISHED


def test_the_signal_that_ended_a_command_is_named(place: Place, transport: Transport) -> None:
    output = transport.run(place.node, Command("kill -s SEGV $$"))

    assert (output.ending, output.signal, output.exit_status) == (Ending.FINISHED, "SEGV", None)


def test_twenty_megabytes_on_both_streams_keep_head_and_tail(
    place: Place, transport: Transport
) -> None:
    size = 21_000_000
    line = f"(echo first; head -c {size} /dev/zero; echo last) | tee /dev/stderr"

    output = transport.run(place.node, Command(line))

    for kept, dropped in (
        (output.stdout, output.stdout_dropped),
        (output.stderr, output.stderr_dropped),
    ):
        assert kept.startswith(b"first\n\0\0\0")
        assert kept.endswith(b"\0\0\0last\n")
        assert len(kept) <= CAP_BYTES
        assert len(kept) + dropped == size + 11


def test_bytes_that_are_no_text_survive(place: Place, transport: Transport) -> None:
    output = transport.run(place.node, Command(r"printf '\351\000\377\r\033[31m\n'"))

    assert output.stdout == b"\xe9\0\xff\r\x1b[31m\n"
    assert output.text.startswith("\\xe9\0\\xff")


def test_a_background_child_that_keeps_the_output_does_not_hold_the_step(
    place: Place, transport: Transport
) -> None:
    output = transport.run(place.node, Command("sleep 60 & echo done", timeout_s=120))

    assert output.ok
    assert output.stdout == b"done\n"
    assert output.duration_s < 40
    assert "background process" in output.reason


def test_a_large_input_arrives_exactly(place: Place, transport: Transport) -> None:
    content = bytes(range(256)) * 12_000

    output = transport.run(place.node, Command("cat", stdin=content))

    assert output.stdout == content


def test_input_that_nobody_reads_does_not_hold_the_step(place: Place, transport: Transport) -> None:
    output = transport.run(place.node, Command("echo done", stdin=b"x" * 3_000_000))

    assert output.ok
    assert output.stdout == b"done\n"


def test_a_command_without_input_reads_its_end_at_once(place: Place, transport: Transport) -> None:
    assert transport.run(place.node, Command("cat; echo over")).stdout == b"over\n"


@PATIENT
@given(words=st.lists(ANY_TEXT, min_size=1, max_size=4))
def test_any_argument_arrives_unchanged(
    place: Place, transport: Transport, words: list[str]
) -> None:
    line = shlex.join(["printf", r"%s\000", *words])

    output = transport.run(place.node, Command(line))

    assert output.stdout == b"".join(word.encode() + b"\0" for word in words)


@PATIENT
@given(env=st.dictionaries(NAMES, ANY_TEXT, min_size=1, max_size=3), content=st.binary())
def test_any_environment_and_input_arrive_unchanged(
    place: Place, transport: Transport, env: dict[str, str], content: bytes
) -> None:
    shown = " ".join(f'"${name}"' for name in env)

    output = transport.run(
        place.node, Command(f"printf '%s\\000' {shown}; cat", env=env, stdin=content)
    )

    values = b"".join(value.encode() + b"\0" for value in env.values())
    assert output.stdout == values + content


def test_an_environment_value_does_not_show_among_the_arguments(
    place: Place, transport: Transport
) -> None:
    shown = "for f in /proc/[0-9]*/cmdline; do tr '\\000' ' ' <$f; done 2>/dev/null"
    seen = f"{shown} | grep -c hush-[h]ush"

    output = transport.run(place.node, Command(seen, env={"TOKEN": "hush-hush"}))

    assert output.stdout == b"0\n"


def test_what_cannot_be_sent_is_never_started(place: Place, transport: Transport) -> None:
    for command in (
        Command("echo \0"),
        Command("true", env={"A B": "1"}),
        Command("echo " + "x" * 130_000),
    ):
        output = transport.run(place.node, command)

        assert output.ending is Ending.NEVER_STARTED
        assert output.reason


def test_a_command_is_told_of_an_interrupt(place: Place, transport: Transport) -> None:
    output = transport.run(
        place.node, Command("trap 'echo told; exit 5' INT; kill -s INT $$; echo no")
    )

    assert (output.stdout, output.exit_status) == (b"told\n", 5)


def test_output_that_never_ends_is_cut_at_the_limit(place: Place, transport: Transport) -> None:
    output = transport.run(place.node, Command("exec cat /dev/zero", timeout_s=4, grace_s=20))

    assert output.ending is Ending.TIMEOUT
    assert output.trouble == ""
    assert output.stdout_dropped > 0
    assert output.duration_s < 30
