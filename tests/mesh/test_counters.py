"""Counters before and after a round: what rose is told, noise is not."""

from recovery.mesh.counters import read_sample, rises

PORT = "/sys/class/infiniband/mlx5_0/ports/1/counters/"
HEAD, TCP = "Tcp: OutSegs RetransSegs\n", "Tcp: {} {}\n"


def sample(down=0, symbols=0, sent=0, resent=0):
    return read_sample(
        f"{PORT}link_downed:{down}\n{PORT}symbol_error:{symbols}\n{HEAD}{TCP.format(sent, resent)}"
    )


def test_a_link_that_went_down_is_broken_and_comes_first():
    found = rises(sample(), sample(down=1, symbols=40))

    assert [(rise.component, rise.broken) for rise in found] == [
        ("mlx5_0", True),
        ("mlx5_0", False),
    ]


def test_a_few_symbol_errors_are_noise():
    assert rises(sample(symbols=5), sample(symbols=9)) == ()


def test_segments_sent_again_tell_of_loss():
    (rise,) = rises(sample(sent=0), sample(sent=10_000, resent=500))

    assert rise.words == "5.0 % of TCP segments were sent again (500 of 10000)"


def test_few_segments_say_nothing():
    assert rises(sample(), sample(sent=100, resent=50)) == ()


def test_no_counters_are_an_empty_sample():
    assert read_sample("").empty
    assert rises(read_sample(""), read_sample("")) == ()
