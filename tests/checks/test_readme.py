"""The README of the shelf names every check, and only files that are there."""

import re
from pathlib import Path

from click.testing import CliRunner

from recovery.cli.checks import COMMAND
from recovery.model.check import Check
from recovery.registry import collect

ROOT = Path(__file__).parents[2] / "recovery"
README = (ROOT / "checks" / "README.md").read_text(encoding="utf-8")
CHECKS, _, FEATURES = README.partition("## What health checkers")


def test_the_table_names_every_check_of_the_shelf():
    rows = {m[1] for m in re.finditer(r"^\| ([a-z][\w.-]+) \| [A-Z]", CHECKS, re.MULTILINE)}

    assert rows == set(collect("recovery.checks", Check)), "recover checks --markdown"


def test_the_table_is_what_the_command_prints():
    printed = CliRunner().invoke(COMMAND, ["--markdown"], catch_exceptions=False)

    assert printed.output.strip() in CHECKS, "replace the table by `recover checks --markdown`"


def test_there_is_a_mark_for_each_of_the_sixty_features():
    assert len(re.findall(r"^\| [^|]+ \| [●◐·] \|", FEATURES, re.MULTILINE)) == 60


def test_every_file_named_is_there():
    missing = []
    for row in FEATURES.splitlines():
        folder = ""
        for name in re.findall(r"`([\w/]+\.(?:py|md))`", row):
            head, slash, tail = name.rpartition("/")
            folder = head if slash else folder
            file = ROOT / folder / tail
            if not (file.is_file() or file.with_suffix("").is_dir()):  # a module may be a package
                missing.append(f"{folder}/{tail}")

    assert missing == []
