"""YAML as people mean it: 1.2 scalars, places, and no silent traps."""

import pytest

from recovery.document import read_yaml
from recovery.errors import DocumentError


def refused(text):
    with pytest.raises(DocumentError) as caught:
        read_yaml(text, "f.yaml")
    assert caught.value.remedy
    return caught.value.message


def test_scalars_are_those_of_yaml_1_2():
    text = "[1, -2, 1.5, true, False, null, ~, x, 'on', \"0777\", .inf, 1.10]"

    assert read_yaml(text, "f").value == [
        1, -2, 1.5, True, False, None, None, "x", "on", "0777", float("inf"), 1.1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "scalar",
    ["on", "No", "yes", "y", "0777", "0o17", "0x1f", "12:30", "12:30:45", "1_000", "1e3",
     "2026-11-30", "2026-11-30T10:00:00Z"],
)  # fmt: skip
def test_a_scalar_that_the_versions_read_differently_is_refused_with_its_place(scalar):
    message = refused(f"a: 1\nb: {scalar}\n")

    assert message.startswith(f"f.yaml:2:4: {scalar!r} is ambiguous")


def test_a_duplicate_key_is_refused_and_both_places_are_named():
    with pytest.raises(DocumentError) as caught:
        read_yaml("a:\n  b: 1\n  b: 2\n", "f.yaml")

    assert caught.value.message == "f.yaml:3:3: key 'b' stands twice"
    assert "f.yaml:2:3" in caught.value.remedy


@pytest.mark.parametrize("text", ["a: !foo 1", "a: !vault |\n  x", "a: !x [1]", "a: !y {b: 1}"])
def test_tags_are_refused(text):
    assert "is not read here" in refused(text)


def test_an_explicit_text_is_text():
    assert read_yaml("a: !!str 3", "f").value == {"a": "3"}


def test_aliases_are_read():
    assert read_yaml("a: &x {b: 1}\nc: *x\n", "f").value == {"a": {"b": 1}, "c": {"b": 1}}


def test_an_alias_into_itself_is_refused():
    assert "contains itself" in refused("a: &x [*x]")


def test_aliases_of_aliases_cannot_fill_the_memory():
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
    )

    assert "values" in refused(bomb)


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\ta: 1", "a: 1\n---\nb: 2\n", "? [a]\n: b"])
def test_what_is_no_single_document_is_refused_with_its_place(text):
    assert refused(text).startswith("f.yaml:")


def test_a_number_of_thousands_of_digits_is_refused():
    assert "5000 digits" in refused("a: " + "9" * 5000)


def test_nothing_is_none():
    assert read_yaml("# only a comment\n", "f").value is None


def test_every_value_has_its_place():
    document = read_yaml("steps:\n  - run: x\n    nodes: [a, b]\n", "f.yaml")

    assert str(document.place("steps", 0, "nodes")) == "f.yaml:3:5"
    assert str(document.place("steps", 0, "nodes", 1)) == "f.yaml:3:16"
    assert str(document.place("steps", 0, "missing", 7)) == "f.yaml:2:5"
