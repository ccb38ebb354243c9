"""`recover explain` knows every code that the project can print."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from recovery.cli.explain import COMMAND, entries, entry_of, source_of
from recovery.reading.train_causes import CAUSES
from recovery.reading.xid import XIDS
from tests.checks.node_cases import cases
from tests.checks.outputs import CASES, judged, kept

PACKAGE = Path(__file__).parents[2] / "recovery"


def _strings(node: ast.expr) -> Iterator[str]:
    """The texts that an expression can be; what is filled in later is ``*``."""
    match node:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from (*_strings(body), *_strings(other))
        case ast.BoolOp(values=values):
            yield from (text for value in values for text in _strings(value))
        case ast.JoinedStr(values=values):
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else "*" for v in values)


@cache
def written() -> frozenset[str]:
    """Every code that stands in the source as ``code=...``."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = [w for node in ast.walk(tree) if isinstance(node, ast.Call) for w in node.keywords]
        found.update(text for word in words if word.arg == "code" for text in _strings(word.value))
    return frozenset(code for code in found if "." in code.strip("*.") or "*" not in code)


def _is_specific(pattern: str) -> bool:
    """Claims that an entry is about this code, not about all of its family."""
    return "*" not in pattern or pattern.startswith("*.") or pattern.rstrip("*.-").count(".") > 0


def test_codes_in_the_source_have_entries_of_their_own_and_not_that_of_their_family():
    codes = [c for c in written() if "*" not in c]
    shared = [c for c in codes if (e := entry_of(c)) is None or not _is_specific(e.code)]
    waiting = [c for c in shared if not c.startswith("launch.")]

    assert len(waiting) <= 6, f"add them to recovery/cli/codes.txt: {waiting}"


def test_enough_codes_are_found_for_this_test_to_mean_something():
    assert len(written()) > 250


@pytest.mark.parametrize("code", sorted(c for c in written() if "*" in c))
def test_a_code_that_is_filled_in_later_has_an_entry(code: str):
    known = [e for e in entries() if e.startswith(code.partition("*")[0]) or e == code]

    assert known or entry_of(code.replace("*", "x"))


def test_every_code_that_kept_outputs_bring_about_is_explained():
    kinds = [p.name for p in CASES.iterdir() if (p / "index.yaml").is_file()]
    found = [judged(case.printed(), case.context)[0] for k in kinds for case in kept(k)]
    found += [case.judged().verdict for case in cases()]
    codes = {f.code for verdict in found for f in verdict.findings if f.code}

    unknown = [c for c in codes if not CliRunner().invoke(COMMAND, [c]).output.count("do  ")]

    assert len(codes) > 100
    assert unknown == []


def test_every_entry_has_meaning_cause_remedy_and_a_source():
    for entry in entries().values():
        assert all(part.strip() for part in (entry.meaning, entry.cause, entry.remedy)), entry
        assert entry.code.startswith("*") or source_of(entry.code), entry


@pytest.mark.parametrize("code", ["mesh.bad-rail", "verify.lr", "checkpoint.c13", "node.sudo"])
def test_a_code_is_told_with_cause_remedy_and_source(code: str):
    told = CliRunner().invoke(COMMAND, [code]).output

    assert [word for word in ("cause ", "do ", "source ") if word not in told] == []


@pytest.mark.parametrize("kind", sorted(CAUSES))
def test_every_kind_of_training_error_is_explained(kind: str):
    told = CliRunner().invoke(COMMAND, [f"train.first-error.{kind.replace('_', '-')}"]).output

    assert CAUSES[kind].remedy in told


def test_every_xid_is_explained():
    assert not [n for n in XIDS if CliRunner().invoke(COMMAND, ["xid", str(n)]).exit_code]
