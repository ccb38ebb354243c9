"""The list of public reports in the README names tests that exist, and leaves no report out."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
README = (TESTS / "README.md").read_text()
FOLDERS = {"P": "promises", "T": "transports", "E": "engine"}


def test_every_test_that_the_readme_names_is_there():
    named = re.findall(r"(?:\b([PTE])[ /])?`(?:(\w+)/)?(test_\w+)(?:\.py)?`", README)
    there = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}

    missing = [
        name
        for letter, folder, name in named
        if not any(f"/{path}".endswith(_end(letter, folder, name)) for path in there)
    ]

    assert len(named) > 60
    assert missing == []


def _end(letter: str, folder: str, name: str) -> str:
    where = folder or FOLDERS.get(letter, "")
    return f"/{where}/{name}.py" if where else f"/{name}.py"


def test_all_86_reports_are_in_the_list():
    rows = re.findall(r"^\| ([\d, -]+) \| ", README, re.MULTILINE)

    numbers = sorted(number for row in rows for part in row.split(",") for number in _range(part))

    assert numbers == list(range(1, 87))


def _range(part: str) -> range:
    first, _, last = part.strip().partition("-")
    return range(int(first), int(last or first) + 1)
