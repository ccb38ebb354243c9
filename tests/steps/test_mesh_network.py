"""`mesh` on real networks: Open MPI and torch gloo between hosts whose cables are really slow."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.bed import Bed, bed
from tests.testbed.controller import Controller
from tests.testbed.needs import sh, why_no_testbed
from tests.transports.servers import until

PERF = Path(__file__).parents[1] / "testbed" / "all_reduce_perf"
# Whatever the machine does, what is slow cannot reach half of the floor; a sound pair has a second
# for what takes it a twentieth of one.
SLOW = "250kbit"  # 64 KiB take 2.1 s
FLOOR = {"collective": "all_reduce", "nodes": 2, "value": 0.000064, "kind": "floor"}
NAMES = ("n1", "n2", "n3", "n4")
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="needs openmpi-bin")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
pytestmark = [
    pytest.mark.root,
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
            port, wide = at[name].port, "htb rate 10gbit quantum 60000"
            lines = [
                f"qdisc replace dev {port} root handle 1: htb default 10",
                f"class add dev {port} parent 1: classid 1:10 {wide}",
                f"class add dev {port} parent 1: classid 1:20 {wide}",
                # It cuts what the kernel sends in one piece, else 64 KiB pass at once.
                f"qdisc add dev {port} parent 1:20 tbf rate {rate} burst 4k limit 1m",
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


def slow_cable(at: Bed, name: str) -> None:
    """What a host and the others send each other; the controller reaches it as before."""
    limited(at, (name,), tuple(n for n in NAMES if n != name), SLOW)


# The machine has other work, and sound pairs differ by a lot: the floor alone judges.
MESH = {"mesh": "all_reduce", "size": "64K", "on_fail": "quarantine", "gate": "any",
        "slow_below": 0.01}  # fmt: skip


def levels(operator: Controller) -> str:
    """The worst level of each node's findings about its tests, n1 first."""
    found = operator.results()
    return " ".join(found[name]["verdict"]["findings"][0]["level"] for name in NAMES)


def noted_tests(operator: Controller) -> list[dict[str, Any]]:
    """The notes of each test."""
    return [e for e in operator.events("Noted") if e["kind"] == "mesh.test"]


@needs_mpi
def test_a_slow_cable_is_found_with_open_mpi(operator: Controller) -> None:
    slow_cable(operator.bed, "n3")

    done = operator.run(MESH)

    assert levels(operator) == "pass pass fail pass", told(operator, done.said)
    assert "by mpirun" in done.said


@needs_mpi
def test_sound_pairs_are_one_launch_read_from_its_json(operator: Controller) -> None:
    done = operator.run({**MESH, "pooled": True})

    assert levels(operator) == "pass pass pass pass", told(operator, done.said)
    assert "round 1: 2 pairs in one launch: the slowest at" in done.said
    (digest,) = {test["facts"]["evidence"] for test in noted_tests(operator)}
    (kept,) = operator.state.rglob(f"*{digest}*")
    text = kept.read_text()
    assert '"results":[' in text
    assert '"env"' not in text
    assert "Group  1" in text


@needs_mpi
def test_a_slow_cable_among_pooled_pairs_is_found_by_asking_each(operator: Controller) -> None:
    slow_cable(operator.bed, "n3")

    done = operator.run({**MESH, "pooled": True})

    assert levels(operator) == "pass pass fail pass", told(operator, done.said)
    assert "each by itself now" in done.said


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


@pytest.fixture
def stuck(four: Bed) -> Iterator[str]:
    """A host whose tests never end, and do not heed TERM."""
    program = "/opt/testbed/bin/all_reduce_perf"
    four["n3"].do(f"printf '#!/bin/sh\\ntrap \"\" TERM\\nsleep 4321\\n' >{program}")
    yield "n3"
    four["n3"].do(f"install -m 755 {PERF} {program}")


@needs_mpi
def test_a_hang_costs_one_short_wait_and_leaves_nothing_on_its_own_nodes(
    operator: Controller, stuck: str
) -> None:
    done = operator.run({**MESH, "levels": ["pairs"]})

    assert levels(operator) == "pass pass unknown unknown", told(operator, done.said)
    (hang,) = (test for test in noted_tests(operator) if not test["facts"]["ok"])
    assert hang["facts"]["code"] == "mesh.hang", hang
    assert hang["facts"]["duration_s"] < 60, hang
    hosts = operator.bed.hosts.values()
    assert until(lambda: not any(host.left() for host in hosts), within_s=60), [
        host.left() for host in hosts
    ]


@needs_mpi
def test_nodes_that_cannot_log_in_to_each_other_are_no_votes_and_meet_others(
    operator: Controller,
) -> None:
    for one, other in (("n1", "n2"), ("n2", "n1")):
        operator.bed[one].refuse_from(operator.bed[other].address)

    done = operator.run(MESH)

    assert levels(operator) == "pass pass pass pass", told(operator, done.said)
    assert "gave no answer" in done.said


@needs_torch
def test_a_slow_cable_is_found_with_torch_by_good_partners(operator: Controller) -> None:
    slow_cable(operator.bed, "n3")

    done = operator.run({**MESH, "runner": "torch", "size": "24K", "only": "n3"})

    assert levels(operator) == "pass pass fail pass", told(operator, done.said)
    assert "by torch" in done.said
