"""What a batch script asks for, in all spellings that sbatch takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import InputError
from recovery.reading.sbatch import JobRequest, read_job


def asked(*lines, options=()):
    return read_job("\n".join(("#!/bin/bash", *lines)), "train.sbatch", options)


@pytest.mark.parametrize(
    ("line", "least", "most"),
    [
        ("-N 4", 4, 4),
        ("-N4", 4, 4),
        ("--nodes=4", 4, 4),
        ("--nodes 4", 4, 4),
        ("--nodes=4-8", 4, 8),
        ("-N 4-8", 4, 8),
        ("--nodes=1k", 1024, 1024),
        ("--nodes=4,8,16", 4, 16),
        ("--nodes=4-16:4", 4, 16),
        ("-HN4", 4, 4),
        ("-J name -N 4 # not -N 9", 4, 4),
        ("--job-name='two words' --nodes=4", 4, 4),
        ("-N 4 # it isn't closed", 4, 4),
        ("--ntasks=64 --ntasks-per-node=8", 8, 8),
        ("-n 65 --ntasks-per-node 8", 9, 9),
        ("--gpus=h100:64 --gpus-per-node=h100:8", 8, 8),
        ("--time=1:00:00", 1, 1),
        ("--ntasks=8", 1, 1),
        ("--exclusive -N 2", 2, 2),
        ("--exclusive=user -N 2", 2, 2),
        ("--parsable -N 2", 2, 2),
    ],
)
def test_the_number_of_nodes(line, least, most):
    job = asked(f"#SBATCH {line}")

    assert (job.least_nodes, job.most_nodes) == (least, most)


@pytest.mark.parametrize(
    "line", ["-p gpu,long", "-pgpu,long", "--partition=gpu,long", "--partition gpu,long",
             "--part=gpu,long"],
)  # fmt: skip
def test_partitions(line):
    assert asked(f"#SBATCH {line}").partitions == ("gpu", "long")


@pytest.mark.parametrize("line", ["-x n[1-2]", "--exclude=n[1-2]", "--exclude n[1-2]", "-xn[1-2]"])
def test_nodes_to_leave_out(line):
    assert asked(f"#SBATCH {line}").exclude == "n[1-2]"


@pytest.mark.parametrize("line", ["-w n[1-2]", "--nodelist=n[1-2]", "--nodel=n[1-2]"])
def test_nodes_that_must_be_in_it(line):
    assert asked(f"#SBATCH {line}").nodelist == "n[1-2]"


def test_the_later_line_wins_and_the_command_line_over_both():
    lines = ("#SBATCH -N 4", "#SBATCH --nodes=8")

    assert asked(*lines).least_nodes == 8
    assert asked(*lines, options=("-N", "2")).least_nodes == 2


def test_what_follows_the_first_command_is_no_option():
    job = asked("", "# a comment", "  # another", "#SBATCH -N 2", "srun true", "#SBATCH -N 9")

    assert job.least_nodes == 2


@pytest.mark.parametrize("line", ["##SBATCH -N 9", "# SBATCH -N 9", " #SBATCH -N 9"])
def test_a_commented_line_is_no_option(line):
    assert asked(line) == JobRequest()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("#SBATCH -N four",), "--nodes cannot be 'four'"),
        (("#SBATCH -N=4",), "--nodes cannot be '=4'"),
        (("#SBATCH -N 0",), "--nodes cannot be '0'"),
        (("#SBATCH -N 8-4",), "--nodes cannot be '8-4'"),
        (("#SBATCH --ntasks=8 --ntasks-per-node=0",), "--ntasks-per-node cannot be '0'"),
        (("#SBATCH -N",), "train.sbatch:2: -N has no value"),
        (("#SBATCH -J 'open",), "train.sbatch:2: cannot be read: no closing quotation"),
        (("#SBATCH -N 1", "#SBATCH hetjob", "#SBATCH -N 4"), "train.sbatch:3: a job of several"),
        (("#SBATCH -w ./hosts",), "nodes are named in a file"),
        (("#SBATCH -F hosts",), "nodes are named in a file"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy(lines, said):
    with pytest.raises(InputError) as caught:
        asked(*lines)

    assert said in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["", "srun true\n", "\x7fELF"])
def test_what_sbatch_would_not_take_is_refused(text):
    with pytest.raises(InputError, match="not a batch script"):
        read_job(text, "x")


@given(st.text(max_size=80))
def test_any_directive_is_read_or_refused_in_words(text):
    try:
        job = read_job(f"#!/bin/sh\n#SBATCH {text}\n", "x")
    except InputError:
        return
    assert 1 <= job.least_nodes <= job.most_nodes
