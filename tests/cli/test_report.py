"""`recover report`: to the screen or to a file, and what is said where it cannot be written."""

from recovery.errors import InputError, RegistryError
from tests.cli.places import recover
from tests.reports.stories import events_of
from tests.stored_runs import store


def asked(tmp_path, *words):
    if not (tmp_path / "runs").exists():
        store(tmp_path, "20261201-000000-c-ab12", lambda evidence: events_of(4, evidence))
    return recover("report", "last", *words, "--state", str(tmp_path))


def test_it_is_printed_or_written(tmp_path):
    file = tmp_path / "run.html"

    assert "DONE: all steps done" in asked(tmp_path).output
    assert asked(tmp_path, "--format", "html", "-o", str(file)).output == f"written: {file}\n"
    assert file.read_text().startswith("<!doctype html>")


def test_a_place_where_it_cannot_be_written_is_our_input(tmp_path):
    done = asked(tmp_path, "-o", str(tmp_path / "no" / "where.txt"))

    assert isinstance(done.exception, InputError)
    assert "cannot be written: No such file" in done.exception.message


def test_a_format_that_is_misspelt_gets_a_near_one(tmp_path):
    done = asked(tmp_path, "--format", "htm")

    assert isinstance(done.exception, RegistryError)
    assert 'did you mean "html"?' in done.exception.message
