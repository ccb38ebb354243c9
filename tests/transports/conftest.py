"""Every promise of a transport is asked of each: the controller, a paramiko server, OpenSSH."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recovery.model.node import CONTROLLER
from recovery.model.ports import Transport, TransportKind
from recovery.transports.local import LOCAL
from recovery.transports.ssh import SSH
from tests.transports.servers import Place, farm_place, sshd_place, why_no_sshd

LEASH = (Path(__file__).parents[2] / "recovery" / "payloads" / "leash.sh").read_text()


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A node served by paramiko, everywhere."""
    with farm_place(tmp_path_factory.mktemp("farm")) as place:
        yield place


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A node served by OpenSSH, where it is installed and we are root."""
    if reason := why_no_sshd():
        pytest.skip(reason)
    with sshd_place(tmp_path_factory.mktemp("sshd")) as place:
        yield place


@pytest.fixture(params=["local", "farm", pytest.param("sshd", marks=pytest.mark.root)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of node in turn."""
    if request.param == "local":
        return Place(CONTROLLER, lambda: None, tmp_path / "none", tmp_path / "none")
    found: Place = request.getfixturevalue(request.param)
    return found


def kind_of(place: Place) -> TransportKind:
    """The transport for a place."""
    return LOCAL if place.node is CONTROLLER else SSH


@pytest.fixture
def transport(place: Place) -> Iterator[Transport]:
    """A transport to the place, ended after the test."""
    opened = kind_of(place).open({"leash": LEASH, "state_dir": "", "width": 8})
    yield opened
    opened.stop(1)
    opened.close()
