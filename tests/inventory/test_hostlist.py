"""Folding never loses or invents a node."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import SelectionError
from recovery.inventory import expand, fold

NAMES = st.one_of(
    st.from_regex(r"[a-z]{1,2}[0-9]{1,4}", fullmatch=True),
    st.from_regex(r"[a-c][0-9]{1,2}-[a-c]?[0-9]{1,3}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}", fullmatch=True),
)


@given(st.lists(NAMES, max_size=30))
def test_what_is_folded_opens_to_the_same_names(names):
    assert expand(fold(names)) == tuple(sorted(set(names)))


@given(st.text(max_size=12), st.text(max_size=12))
def test_folding_takes_any_text_without_an_error(one, two):
    assert one in fold([one, two])


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([f"node{i:03d}" for i in range(1, 129)], "node[001-128]"),
        (["a3", "a1", "a2", "a1"], "a[1-3]"),
        (["node1"], "node1"),
        ([], ""),
        (["head", "n1", "n2"], "head,n[1-2]"),
    ],
)
def test_many_names_become_one_hostlist(names, folded):
    assert fold(names) == folded


def test_mixed_padding_is_kept():
    names = ["c09", "c010", "c9", "c10"]

    assert expand(fold(names)) == tuple(sorted(names))


def test_names_that_are_not_plain_stay_a_list():
    assert fold(["@b", "a x"]) == "@b,a x"


def test_a_hostlist_takes_commas_and_blanks_between_its_parts():
    assert expand("n1 n2,n[3-4]  m[1, 2]\nn1") == ("m1", "m2", "n1", "n2", "n3", "n4")


def test_an_empty_hostlist_is_no_names():
    assert expand(" , ") == ()


def test_a_bad_part_is_named_with_the_whole():
    with pytest.raises(SelectionError) as error:
        expand("n1,n[9-3]")

    assert error.value.message == "range 9-3 in 'n[9-3]' is reversed in 'n1,n[9-3]'"
    assert error.value.remedy == "write 3-9"


def test_importing_the_package_does_not_load_clustershell():
    code = "import sys, recovery.inventory; print('ClusterShell' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
