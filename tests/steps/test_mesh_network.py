"""`mesh` on real networks: Open MPI and torch gloo between hosts whose cables are really slow."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.noisy import noisy
from tests.testbed.bed import Bed, bed
from tests.testbed.controller import Controller
from tests.testbed.needs import sh, why_no_testbed

PERF = Path(__file__).parents[1] / "testbed" / "all_reduce_perf"
FLOOR = {"collective": "all_reduce", "nodes": 2, "value": 0.0012, "kind": "floor"}
SLOW = "4mbit"  # half of the floor; a sound pair reaches four times the floor under load
NAMES = ("n1", "n2", "n3", "n4")
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="needs openmpi-bin")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
# A busy machine starves a host now and then, which makes sound pairs slow as well.
pytestmark = [
    pytest.mark.root,
    noisy,
    pytest.mark.skipif(bool(why_no_testbed()), reason=why_no_testbed()),
]


@pytest.fixture(scope="module")
def four() -> Iterator[Bed]:
    with bed(4) as made:
        for host in made.hosts.values():
            if not host.do(f"ls {PERF}", check=False):
                pytest.skip(f"{PERF.parent} is in a folder that the hosts have of their own")
            host.do(f"install -m 755 {PERF} /opt/testbed/bin/all_reduce_perf")
            # Open MPI starts its daemons over ssh from the first node: that node needs a key.
            host.do(
                "umask 077; mkdir -p /root/.ssh;"
                f" printf %s '{made.key.read_text()}' >/root/.ssh/id_ed25519"
            )
        yield made


@pytest.fixture
def operator(four: Bed) -> Controller:
    four.heal()
    made = Controller(four, Path(tempfile.mkdtemp(prefix="operator-", dir=four.folder)))
    made.write_inventory(
        {name: {"leaf": f"leaf{at // 2}", "mpi_host": four[name].address}
         for at, name in enumerate(NAMES)},
        torch_python=sys.executable, expected_gpus=1, busbw=[FLOOR, {**FLOOR, "algorithm": "ring"}],
    )  # fmt: skip
    return made


def limited(at: Bed, ones: tuple[str, ...], others: tuple[str, ...], rate: str) -> None:
    """What flows between two sets of hosts, as through an uplink or a path of this rate."""
    for receivers, senders in ((ones, others), (others, ones)):
        for name in receivers:
            port, of_path = at[name].port, "parent 1: classid 1:20 htb burst 16k rate"
            lines = [
                f"qdisc replace dev {port} root handle 1: htb default 10",
                f"class add dev {port} parent 1: classid 1:10 htb rate 10gbit quantum 60000",
                f"class add dev {port} {of_path} {rate}",
            ]
            lines += [
                f"filter add dev {port} parent 1: protocol ip u32 match ip src {at[sender].address}"
                " flowid 1:20"
                for sender in senders
            ]
            sh("tc", "-n", at.hub, "-batch", "-", said="\n".join(lines) + "\n")


def told(operator: Controller, said: str) -> str:
    """All that was said, for a test that fails."""
    return f"{said}\n{operator.results()}"


MESH = {"mesh": "all_reduce", "size": "256K", "on_fail": "quarantine", "gate": "any",
        "slow_below": 0.2}  # fmt: skip  # the machine has other work: sound pairs differ


def levels(operator: Controller) -> str:
    """The worst level of each node's findings about its tests, n1 first."""
    found = operator.results()
    return " ".join(found[name]["verdict"]["findings"][0]["level"] for name in NAMES)


def rounds(operator: Controller) -> list[str]:
    """What was said of each test."""
    return [e["message"] for e in operator.events("Noted") if e["kind"] == "mesh.test"]


@needs_mpi
def test_a_slow_cable_is_found_with_open_mpi(operator: Controller) -> None:
    operator.bed["n3"].slow(SLOW)

    done = operator.run(MESH)

    assert levels(operator) == "pass pass fail pass", told(operator, done.said)
    assert "by mpirun" in done.said


@needs_mpi
def test_a_slow_path_blames_neither_end(operator: Controller) -> None:
    limited(operator.bed, ("n1",), ("n2",), SLOW)

    done = operator.run(MESH)

    assert "fail" not in levels(operator), told(operator, done.said)
    assert "n1 and n2 failed together once" in done.said or "n2 and n1" in done.said, done.said


@needs_mpi
def test_a_slow_uplink_is_named_and_no_node_is_drained_for_it(operator: Controller) -> None:
    limited(operator.bed, ("n1", "n2"), ("n3", "n4"), SLOW)

    done = operator.run({**MESH, "levels": ["pairs", "suspects", "leaves"]})

    assert "fail" not in levels(operator), told(operator, done.said)
    assert "links of leaf leaf0 or leaf1" in done.said, done.said


@needs_torch
def test_a_slow_cable_is_found_with_torch_by_good_partners(operator: Controller) -> None:
    operator.bed["n3"].slow(SLOW)

    done = operator.run({**MESH, "runner": "torch", "size": "96K", "only": "n3"})

    assert levels(operator) == "pass pass fail pass", told(operator, done.said)
    assert "by torch" in done.said
