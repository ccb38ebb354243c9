"""Node expressions: set algebra in inventory order, and a refusal for whatever names nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import SelectionError
from recovery.inventory import select
from recovery.model.inventory import Inventory
from recovery.model.node import Node

NAMES = ("head", "n4", "n3", "n2", "n1", "m01", "m02")
INVENTORY = Inventory(
    name="lab",
    source="lab.yaml",
    nodes={name: Node(name) for name in NAMES},
    groups={
        "all": NAMES,
        "gpu": ("n4", "n3", "n2", "n1"),
        "leaf1": ("n1", "n2"),
        "leaf2": ("n3", "n4"),
        "odd": ("n1", "n3"),
        "nobody": (),
    },
)
ALL = frozenset(NAMES)


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("n1", "n1"),
        ("n[1-3]", "n3 n2 n1"),
        ("n[1:3]", "n3 n2 n1"),
        ("n1,head", "head n1"),
        ("n1 | head", "head n1"),
        ("@gpu", "n4 n3 n2 n1"),
        ("@leaf*", "n4 n3 n2 n1"),
        ("@all", " ".join(NAMES)),
        ("all", " ".join(NAMES)),
        ("*", " ".join(NAMES)),
        ("m0*", "m01 m02"),
        ("?2", "n2"),
        ("n[1-2]*", "n2 n1"),
        ("@gpu & @odd", "n3 n1"),
        ("@gpu & !@odd", "n4 n2"),
        ("@gpu!@odd", "n4 n2"),
        ("!@gpu", "head m01 m02"),
        ("!!@odd", "n3 n1"),
        ("head, @gpu & @odd", "head n3 n1"),
        ("(head, @gpu) & (@odd | head)", "head n3 n1"),
        ("@gpu & !@drained & !@quarantined", "n4 n3 n2 n1"),
    ],
)
def test_an_expression_chooses_in_inventory_order(expression, chosen):
    assert select(INVENTORY, expression) == tuple(chosen.split())


def test_groups_of_the_run_are_taken_as_given():
    extra = {"drained": ["n2", "gone9"], "suspects": ()}

    assert select(INVENTORY, "@gpu & !@drained", extra_groups=extra) == ("n4", "n3", "n1")
    assert select(INVENTORY, "@drained", extra_groups=extra) == ("n2",)
    assert select(INVENTORY, "@gpu & !@suspects", extra_groups=extra) == ("n4", "n3", "n2", "n1")


def test_nobody_is_allowed_only_when_asked_for():
    assert select(INVENTORY, "@nobody", empty_ok=True) == ()


@pytest.mark.parametrize(
    ("expression", "message", "remedy"),
    [
        ("@gpux", "column 1: no group 'gpux' (did you mean \"gpu\"?)", "groups are: all, gpu"),
        ("n1 & @led*", "column 6: no group 'led*'", "groups are"),
        ("n1, m03", "column 5: no node 'm03' (did you mean \"m0", "recover nodes"),
        ("n[1-9]", "column 1: no nodes n[5-9]", "the inventory has head,m[01-02],n[1-4]"),
        ("gpu", "column 1: 'gpu' is a group", "write @gpu"),
        ("x*", "column 1: no node is called like 'x*'", "recover nodes"),
        ("n[4-1]", "column 1: range 4-1 in 'n[4-1]' is reversed", "write 1-4"),
        ("n[1-010]", "uneven padding 1-010", "001-010"),
        ("n[1-2", "column 2: bracket not closed at '['", "close it"),
        ("", "empty node expression", "write `all`"),
        ("  ", "empty node expression", "write `all`"),
        ("n1 n2", "column 4: unexpected 'n2'", "put `,`, `&` or `!` between"),
        ("n1 &", "column 5: nodes expected before the end", "write a node"),
        ("& n1", "column 1: nodes expected before '&'", "write a node"),
        ("n1,,n2", "column 4: nodes expected before ','", "write a node"),
        ("(n1", "column 4: parenthesis not closed", "add a )"),
        ("n1)", "column 3: unexpected ')'", "put `,`"),
        ("()", "column 2: nodes expected before ')'", "write a node"),
        ("(" * 60, "too many parentheses", "flatter"),
        ("@nobody", "'@nobody' selects no node", "widen it"),
        ("@leaf1 & @leaf2", "selects no node", "widen it"),
        ("@drained", "selects no node", "widen it"),
        ("!all", "selects no node", "widen it"),
    ],
)
def test_an_expression_that_means_nothing_is_refused(expression, message, remedy):
    with pytest.raises(SelectionError) as error:
        select(INVENTORY, expression)

    assert message in error.value.message
    assert remedy in error.value.remedy
    assert error.value.exit_code == 2


WORDS = st.sampled_from(["n1", "n[1-3]", "@gpu", "@odd", "@leaf1", "@nobody", "all", "m0*", "head"])


def chosen(expression):
    return frozenset(select(INVENTORY, expression, empty_ok=True))


@given(WORDS, WORDS, WORDS)
def test_the_signs_are_those_of_set_algebra(a, b, c):
    assert chosen(f"{a}, {b}") == chosen(a) | chosen(b) == chosen(f"{b}|{a}")
    assert chosen(f"{a} & {b}") == chosen(a) & chosen(b)
    assert chosen(f"{a} ! {b}") == chosen(a) - chosen(b) == chosen(f"{a} & !{b}")
    assert chosen(f"!({a}, {b})") == chosen(f"!{a} & !{b}") == ALL - chosen(a) - chosen(b)
    assert chosen(f"{a}, {b} & {c}") == chosen(f"{a}, ({b} & {c})")
    assert chosen(f"({a}, {b}) & {c}") == chosen(f"{a} & {c}, {b} & {c}")


@given(st.text(alphabet="n1-3[]@gpu&|!(), *?:", max_size=20))
def test_any_text_is_chosen_from_or_refused(text):
    with suppress(SelectionError):
        assert set(select(INVENTORY, text)) <= ALL
