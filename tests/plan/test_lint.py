"""What can be said about a runbook before it meets an inventory."""

from recovery.errors import InputError
from recovery.plan import lint
from tests.plan.verbs import CHECKS, VERBS, book


def problems(text, known=(), **files):
    def load(name):
        if name not in files:
            raise InputError(f"no runbook called {name!r}", remedy="check the name")
        return files[name], name

    found = lint([(text, "book.yaml")], VERBS, load=load, check_names=CHECKS, known=known)
    assert all(one.remedy for one in found)
    return [str(one) for one in found]


def test_a_sound_runbook_has_no_problem():
    assert problems(book("  - run: echo {{ a }}\n    gate: 500\n", "vars: {a: 1}\n")) == []


def test_what_an_inventory_sets_is_known_and_may_stand_anywhere():
    text = book(
        '  - run: ls {{ folder }}\n    gate: "{{ min_nodes }}"\n    timeout: "{{ limit }}"\n'
    )

    assert problems(text, known=("folder", "min_nodes", "limit")) == []
    assert len(problems(text, known=("folder",))) == 2


def test_what_must_be_given_is_no_problem():
    top = 'runbook: t\nnodes: "{{ target }}"\nvars: {target: null, log: "/{{ target }}/x"}\n'
    text = f"{top}steps:\n  - run: ls {{{{ log }}}}\n"

    assert problems(text) == []


def test_every_kind_of_problem_is_found_without_an_inventory():
    text = book(
        "  - check: gpu.cuont\n  - run: ls {{ nmae }}\n  - use: other\n  - run: w\n    when: x y\n"
    )

    assert [one.split(": ")[0] for one in problems(text)] == ["book.yaml:8:5"]
    assert [one.split(": ")[0] for one in problems(text.replace("x y", "name", 1))] == [
        "book.yaml:4:5", "book.yaml:5:5", "book.yaml:6:5", "book.yaml:8:5",
    ]  # fmt: skip


def test_text_that_is_not_yaml_keeps_its_place():
    assert problems("runbook: [\n") == [
        "book.yaml:2:1: not YAML: did not find expected node content"
    ]


def test_a_runbook_without_nodes_is_a_problem_and_a_fragment_is_not():
    assert problems("runbook: t\nsteps:\n  - run: w\n") == ["book.yaml:1:1: this says no nodes"]
    assert problems("fragment: t\nsteps:\n  - run: w\n") == []


def test_two_files_are_told_in_order_and_once():
    broken = book("  - rnu: w\n")

    found = lint(
        [(broken, "b.yaml"), (broken, "a.yaml"), (broken, "b.yaml")],
        VERBS, load=lambda name: ("", name), check_names=CHECKS, known=(),
    )  # fmt: skip

    assert [one.file for one in found] == ["a.yaml", "b.yaml"]
