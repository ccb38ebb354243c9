"""What the leash is sent, and what is concluded from what it says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recovery.model.output import Command, Ending, Output
from recovery.reading.leash import Capture, Cut, Ended, leashed, one_line, output, refusal

NOTHING = (b"", 0)
PLAIN = Command("x")


def conclude(
    command: Command = PLAIN,
    *,
    status: int | None = 0,
    stderr: bytes = b"",
    cut: Cut = Cut.NOT,
    why: str = "",
    **more: bool,
) -> Output:
    ended = Ended(status=status, stdout=NOTHING, stderr=(stderr, 0), cut=cut, why=why, **more)
    return output(command, "beef", ended)


def test_an_exit_status_is_kept_and_a_signal_named() -> None:
    assert conclude(status=3).exit_status == 3
    assert (conclude(status=137).signal, conclude(status=137).exit_status) == ("KILL", None)
    assert conclude(status=255).exit_status == 255


def test_the_words_of_the_leash_do_not_stay_in_the_output() -> None:
    found = conclude(stderr=b"mine\n\nrecover-leash:beef missing setsid proc\nmore")

    assert found.stderr == b"mine\nmore"
    assert found.reason == "the node lacks setsid, proc"


def test_words_with_another_mark_are_output() -> None:
    text = b"\nrecover-leash:cafe cut\n"

    found = conclude(stderr=text)

    assert (found.ending, found.stderr) == (Ending.FINISHED, text)


def test_a_command_cut_at_its_limit_is_a_timeout() -> None:
    found = conclude(status=143, stderr=b"\nrecover-leash:beef cut \n", cut=Cut.LIMIT)

    assert (found.ending, found.exit_status, found.trouble) == (Ending.TIMEOUT, None, "")


def test_a_command_that_ended_by_itself_just_before_the_cut_has_finished() -> None:
    assert conclude(status=0, cut=Cut.LIMIT).ok


def test_what_kill_did_not_end_is_named_by_pid() -> None:
    found = conclude(status=143, stderr=b"\nrecover-leash:beef cut 12 34\n", cut=Cut.LIMIT)

    assert found.trouble == "unkillable"
    assert "pid 12, 34" in found.reason


def test_a_node_that_does_not_confirm_the_end_may_have_processes_left() -> None:
    for cut, ending in ((Cut.LIMIT, Ending.TIMEOUT), (Cut.STOP, Ending.LOST)):
        found = conclude(status=None, cut=cut)

        assert (found.ending, found.trouble) == (ending, "unsure")
        assert "may be left" in found.reason


def test_a_command_that_the_node_never_had_in_full_was_not_started() -> None:
    for cut, words in ((Cut.LIMIT, "did not take it within 60 s"), (Cut.STOP, "stopped")):
        found = conclude(Command("x", timeout_s=60), status=None, cut=cut, is_sent=False)

        assert found.ending is Ending.NEVER_STARTED
        assert words in found.reason


def test_a_session_that_went_away_is_lost() -> None:
    found = conclude(status=None, cut=Cut.LOST, why="the connection was lost after 2.0 s")

    assert (found.ending, found.trouble) == (Ending.LOST, "")
    assert found.reason.startswith("the connection was lost after 2.0 s")


def test_a_refusing_sudo_is_a_trouble_of_its_own() -> None:
    sudo = Command("x", sudo=True)

    asks = conclude(sudo, status=1, stderr=b"sudo: a password is required\n")
    broken = conclude(sudo, status=1, stderr=b"sudo: unable to open /etc/sudoers\n")
    worked = conclude(
        sudo, status=1, stderr=b"\nrecover-leash:beef started\nsudo: a password is required"
    )

    assert (asks.ending, asks.trouble) == (Ending.NEVER_STARTED, "sudo")
    assert (broken.ending, broken.trouble) == (Ending.NEVER_STARTED, "")
    assert (worked.ending, worked.exit_status) == (Ending.FINISHED, 1)


def test_what_never_started_says_why() -> None:
    found = conclude(status=69, stderr=b"\nrecover-leash:beef never its text was cut short\n")

    assert found.ending is Ending.NEVER_STARTED
    assert "cut short" in found.reason


def test_sudo_is_never_asked_to_prompt() -> None:
    assert leashed(Command("x", sudo=True), "L", "m", limit_s=3).line.startswith(
        "exec sudo -n /bin/sh"
    )


def test_the_header_counts_lines_and_bytes() -> None:
    command = Command("a\nb", env={"X": "1\n2"}, stdin=b"\0\n", timeout_s=7, grace_s=4)

    opening = leashed(command, "L", "m", limit_s=7.2).opening

    assert opening == b"L\nm 8 2 2 2 2 0\nexport X='1\n2'\na\nb\n\0\n"


def test_the_joined_leash_is_one_line_without_comments() -> None:
    script = "# note\nf() {\n  if a; then\n    b &\n  fi\n}\n\nf ||\n  c\n"

    assert one_line(script) == "f() { if a; then b & fi; }; f || c"


def test_only_what_a_shell_can_take_is_sent() -> None:
    assert refusal(Command("x", env={"A": "b"})) == ""
    assert "NUL" in refusal(Command("x", env={"A": "\0"}))
    assert "environment variable" in refusal(Command("x", env={"1A": ""}))


@given(pieces=st.lists(st.binary(max_size=40)), cap=st.integers(2, 60))
def test_a_capture_keeps_head_and_tail_and_counts_the_rest(pieces: list[bytes], cap: int) -> None:
    capture = Capture(cap)
    for piece in pieces:
        capture.add(piece)

    kept, dropped = capture.take()

    whole = b"".join(pieces)
    assert len(kept) + dropped == len(whole)
    assert len(kept) <= cap
    if dropped:
        assert kept == whole[: cap // 2] + whole[len(whole) - (cap - cap // 2) :]
    else:
        assert kept == whole
