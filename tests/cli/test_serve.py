"""`recover serve` opens itself to others only when told, and only with a token."""

import importlib.util
import socket

import pytest

from recovery.errors import InputError
from tests.cli.places import recover

pytest.importorskip("starlette", reason="needs recover[serve]")
pytest.importorskip("uvicorn", reason="needs recover[serve]")


def refused(*words):
    done = recover("serve", *words)

    assert isinstance(done.exception, InputError), done.output
    return done.exception.message, done.exception.remedy


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "head.example"])
def test_beyond_this_machine_a_token_is_needed(host):
    message, remedy = refused("--host", host)

    assert message == f"on {host} everybody could read it"
    assert "--token-env" in remedy


def test_a_token_that_is_short_or_not_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("SHORT", "hunter22")
    (tmp_path / "empty").write_text("\n")

    assert "less than 16 characters" in refused("--token-env", "SHORT")[0]
    assert "less than 16 characters" in refused("--token-env", "NOT_THERE")[0]
    assert "less than 16 characters" in refused("--token-file", str(tmp_path / "empty"))[0]
    assert "hunter22" not in "".join(refused("--token-env", "SHORT"))


def test_a_file_that_cannot_be_read_is_said():
    assert "cannot be read" in refused("--token-file", "/nowhere/at/all")[0]


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        message, remedy = refused("--port", str(port), "--state", str(tmp_path))

    assert message == f"127.0.0.1 port {port}: Address already in use"
    assert "--port" in remedy


def test_a_certificate_that_is_none_is_said(tmp_path):
    (tmp_path / "c.pem").write_text("nonsense")
    words = ("--cert", str(tmp_path / "c.pem"), "--key", str(tmp_path / "c.pem"), "--port", "0")

    assert "certificate or key cannot be used" in refused(*words, "--state", str(tmp_path))[0]


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert refused() == ("the web page is not installed", "pip install 'recover[serve]'")
