"""Which part of a log is new since it was frozen."""

from recovery.continuity.frozen import near_end, since, since_tail

OLD = b"".join(b"step=%d loss=2.5\n" % n for n in range(1, 1001))


def test_what_was_appended_is_new() -> None:
    assert since(OLD, OLD + b"resumed\n") == b"resumed\n"


def test_a_log_begun_anew_is_all_new_though_it_repeats_old_lines() -> None:
    again = OLD[-6000:] + b"step=1001 loss=2.5\n"

    assert since(OLD, again) == again


def test_the_first_copy_counts_when_the_resume_logs_the_same_lines_again() -> None:
    again = OLD[-6000:] + b"step=1001 loss=2.5\n"

    assert since(OLD, OLD + again) == again
    assert since_tail(OLD, OLD[-9000:] + again) == again


def test_a_tail_that_begins_after_the_frozen_log_is_all_new() -> None:
    assert since_tail(OLD, b"step=9000 loss=1\n") == b"step=9000 loss=1\n"


def test_without_a_frozen_log_all_is_new() -> None:
    assert since(b"", b"a\n") == b"a\n"
    assert since_tail(b"", b"a\n") == b"a\n"


def test_a_long_log_is_cut_to_its_last_whole_lines() -> None:
    long = OLD * 100

    near = near_end(long)

    assert len(near) <= 1 << 20
    assert long.endswith(near)
    assert near.startswith(b"step=")
    assert near_end(OLD) == OLD
