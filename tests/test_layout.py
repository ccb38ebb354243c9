"""The house holds: names at the top, sizes, one broad except, documented and typed."""

import ast
import re
import subprocess
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "recovery"
TOP = {"pyproject.toml", "Makefile", "LICENSE", "README.md", "runbooks", "recovery", "inventories",
       "tests"}  # fmt: skip
# Files that are sent to a node as one piece, or are data in the form of Python.
ONE_PIECE = ("payloads/", "lab/tools/", "lab/jobs/")


def modules():
    return [p for p in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in p.parts]


def ours():
    return [p for p in modules() if not str(p.relative_to(PACKAGE)).startswith(ONE_PIECE)]


def functions(path):
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return listed.stdout.splitlines()


def test_the_top_level_holds_the_agreed_names_and_dotfiles_only():
    names = {line.split("/")[0] for line in tracked()}

    assert {n for n in names if not n.startswith(".")} <= TOP


def test_no_module_is_longer_than_400_lines():
    sizes = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in ours()}

    assert {p: n for p, n in sizes.items() if n > 400} == {}


def test_functions_are_short():
    lengths = [f.end_lineno - f.lineno + 1 for p in ours() for f in functions(p)]

    assert median(lengths) <= 10
    assert quantiles(lengths, n=10)[-1] <= 30


def test_there_is_one_broad_except():
    pattern = re.compile(r"except (Base)?Exception|except:")
    found = [
        f"{p.relative_to(ROOT)}:{n}"
        for p in ours()
        for n, line in enumerate(p.read_text().splitlines(), 1)
        if pattern.search(line) and "the boundary named above" in line
    ]
    others = [
        f"{p.relative_to(ROOT)}:{n}"
        for p in ours()
        for n, line in enumerate(p.read_text().splitlines(), 1)
        if pattern.search(line)
        and "raise" not in p.read_text().splitlines()[n]
        and "the boundary named above" not in line
        and "pool.shutdown" not in p.read_text().splitlines()[n]
    ]

    assert len(found) == 1
    assert others == []


def test_ignores_state_their_reason():
    bare = re.compile(r"(type: ignore(\[[a-z-, ]*\])?|noqa(: [A-Z0-9, ]+)?)\s*$")
    found = [
        f"{p.relative_to(ROOT)}:{n}"
        for p in ours()
        for n, line in enumerate(p.read_text().splitlines(), 1)
        if bare.search(line)
    ]

    assert found == []


def test_tests_do_not_sleep_and_do_not_mock():
    bad = re.compile(r"time\.sleep\(|unittest\.mock|MagicMock|mocker\b")
    found = [
        f"{p.relative_to(ROOT)}:{n}"
        for p in sorted((ROOT / "tests").rglob("*.py"))
        if p != Path(__file__)
        for n, line in enumerate(p.read_text().splitlines(), 1)
        if bad.search(line) and "poll" not in line
    ]

    assert found == []
