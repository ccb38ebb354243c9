"""One bed of four hosts for each file, sound at the start of each test; one operator a test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.bed import Bed, bed
from tests.testbed.controller import Controller
from tests.testbed.needs import why_no_testbed


@pytest.fixture(scope="session")
def testbed_here() -> None:
    """Skips where hosts in namespaces cannot be made."""
    if reason := why_no_testbed():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def four_hosts(testbed_here: None) -> Iterator[Bed]:
    """Hosts n1 .. n4, with an ext4 disk each on /data."""
    with bed(4, data_mib=16) as made:
        yield made


@pytest.fixture
def hosts(four_hosts: Bed) -> Bed:
    """The four, sound."""
    four_hosts.heal()
    return four_hosts


@pytest.fixture
def operator(hosts: Bed) -> Iterator[Controller]:
    """An operator with a home of his own, within the bed's folder."""
    folder = Path(tempfile.mkdtemp(prefix="operator-", dir=hosts.folder))
    yield Controller(hosts, folder)
    shutil.rmtree(folder, ignore_errors=True)
