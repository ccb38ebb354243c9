"""Several lines in one command: each with its own bytes, status and limit, by a real shell."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.engine.bundle import bundle, bundle_limit_s, unbundle
from recovery.model.output import Ending, Output


def ran(lines, limit_s=20.0, cut=None):
    limits = dict.fromkeys(lines, limit_s)
    done = subprocess.run(
        ["/bin/sh", "-c", bundle(limits, seed="s")], capture_output=True, check=False
    )
    stdout = done.stdout if cut is None else done.stdout[:cut]
    output = Output(Ending.FINISHED, exit_status=done.returncode, stdout=stdout, stderr=done.stderr)
    return unbundle(output, limits, seed="s")


def test_each_line_has_its_own_streams_and_status():
    found = ran(["echo one; echo err >&2", "printf two; exit 7", "nosuchtool -x"])

    first, second, third = found.values()
    assert (first.stdout, first.stderr, first.exit_status) == (b"one\n", b"err\n", 0)
    assert (second.stdout, second.stderr, second.exit_status) == (b"two", b"", 7)
    assert third.exit_status == 127
    assert b"nosuchtool" in third.stderr


def test_a_line_that_hangs_costs_its_limit_and_the_next_is_asked():
    found = ran(["echo half; exec sleep 600", "echo next"], limit_s=1.0)

    hung, after = found.values()
    assert (hung.ending, hung.stdout) == (Ending.TIMEOUT, b"half\n")
    assert after.stdout == b"next\n"


def test_a_line_cannot_end_the_others():
    found = ran(["exit 3", "kill $PPID; echo still", "cd /nowhere"])

    assert next(iter(found.values())).exit_status == 3


def test_output_without_an_end_mark_is_never_a_plain_end():
    whole = Output(Ending.LOST, stdout=b"", reason="gone")

    found = unbundle(whole, {"a": 1.0, "b": 1.0}, seed="s")

    assert {o.ending for o in found.values()} == {Ending.LOST}


def test_cut_anywhere_a_line_is_whole_or_not_finished():
    lines = ["echo alpha", "echo beta"]
    limits = dict.fromkeys(lines, 9.0)
    done = subprocess.run(
        ["/bin/sh", "-c", bundle(limits, seed="s")], capture_output=True, check=False
    )

    for cut in range(len(done.stdout)):
        whole = Output(Ending.FINISHED, exit_status=0, stdout=done.stdout[:cut])
        for line, output in unbundle(whole, limits, seed="s").items():
            if output.ending is Ending.FINISHED:
                assert output.text.strip() == line.split()[1]


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200).filter(lambda b: b"\0" not in b))
def test_any_bytes_arrive_unchanged(content):
    octal = "".join(f"\\0{byte:o}" for byte in content)

    (output,) = ran([f"printf %b '{octal}'"]).values()

    assert output.stdout == content


@pytest.mark.parametrize("line", ["echo 'a b' \"c\"", "echo $((1+2)); # '", "cat <<X\nhi\nX"])
def test_any_line_is_quoted(line):
    expected = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False).stdout

    (output,) = ran([line]).values()

    assert output.stdout == expected


def test_the_whole_may_take_as_long_as_all_its_lines():
    assert bundle_limit_s({"a": 10.0, "b": 20.0}) >= 30.0
