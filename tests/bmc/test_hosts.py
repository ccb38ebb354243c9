"""`recover power` on real hosts: each BMC really cuts and gives the power of its own."""

import subprocess
from contextlib import ExitStack

import pytest

from tests.bmc.simulators import PASSWORD, ipmi_sim, why_no_ipmi
from tests.testbed.bed import bed
from tests.testbed.controller import LIMIT_S, Controller, Done
from tests.testbed.needs import why_no_testbed
from tests.transports.servers import until

WHY_NOT = why_no_testbed() or why_no_ipmi()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]
HUB = "10.82.0.254"
QUICK = ("-e", "orderly=1s", "-e", "off_for=1s", "-e", "settle=1s", "-e", "every=500ms")
SILENT_PORT = 7999


class Hall:
    """Two hosts, a BMC for each, and the operator; the power of a host is its BMC's to give."""

    def __init__(self, hosts, sims, operator):
        self.hosts, self.sims, self.operator = hosts, sims, operator

    def inventory(self, **bmcs):
        self.operator.write_inventory(
            {
                name: {"bmc": {"port": self.sims[name].port, **bmcs.get(name, {})}, "rack": "r1"}
                for name in self.hosts.hosts
            }
        )
        text = self.operator.inventory.read_text()
        common = (
            f'"address": "{HUB}", "user": "admin", "cipher": 3, "password_env": "BMC_PASSWORD", '
        )
        self.operator.inventory.write_text(text.replace('"bmc": {', f'"bmc": {{{common}'))

    def power(self, *words, password=PASSWORD):
        """`recover power`, with hosts that do what their BMCs say meanwhile."""
        process = self.operator.start(
            "power", str(self.operator.inventory), *words, *QUICK, "--yes", BMC_PASSWORD=password
        )
        assert until(lambda: self._obey() or process.poll() is not None, within_s=LIMIT_S)
        said, _ = process.communicate()
        return Done(process.returncode, said)

    def _obey(self):
        for name, sim in self.sims.items():
            wanted = sim.folder / "wanted"
            if not wanted.exists():
                continue
            on = wanted.read_text().strip()
            wanted.unlink()
            host = self.hosts[name]
            host.on() if on == "1" else host.off()
            (sim.folder / "power").write_text(on)


@pytest.fixture
def hall(tmp_path):
    with bed(2) as hosts, ExitStack() as stack:
        sims = {
            name: stack.enter_context(
                ipmi_sim(
                    tmp_path / f"bmc-{name}", obeys=False, address=HUB, port=7000 + i,
                    hub=hosts.hub,
                )
            )
            for i, name in enumerate(hosts.hosts)
        }  # fmt: skip
        folder = tmp_path / "operator"
        folder.mkdir()
        made = Hall(hosts, sims, Controller(hosts, folder))
        made.inventory()
        assert until(lambda: answers(hosts, sims["n1"]) and answers(hosts, sims["n2"]))
        yield made


def answers(hosts, sim):
    """Claims that a BMC talks."""
    argv = [HUB if word == "127.0.0.1" else word for word in sim.argv]
    return not subprocess.run(
        ["nsenter", f"--net=/run/netns/{hosts.hub}", "env", f"IPMI_PASSWORD={PASSWORD}", *argv,
         "-N", "1", "-R", "1", "chassis", "power", "status"],
        capture_output=True, check=False,
    ).returncode  # fmt: skip


def test_a_cycle_cuts_one_host_and_boots_it_and_nothing_else_ever_does(hall):
    boots = {name: hall.hosts[name].boot_id() for name in hall.hosts.hosts}

    refused = hall.power("n1", "off", password="wrong-password")
    hall.inventory(n1={"port": SILENT_PORT})
    away = hall.power("n1", "cycle")
    hall.inventory()

    assert (refused.code, away.code) == (3, 3), refused.said + away.said
    assert {name: hall.hosts[name].boot_id() for name in boots} == boots

    cycled = hall.power("n1", "cycle")
    hall.hosts.await_ssh("n1")

    assert cycled.code == 0, cycled.said
    assert hall.hosts["n1"].boot_id() != boots["n1"]
    assert hall.hosts["n2"].boot_id() == boots["n2"]
    assert [e["facts"]["what"] for e in hall.operator.events("Intended")] == [
        "power soft", "power off", "power on",
    ]  # fmt: skip

    off = hall.power("n2", "off")
    status = hall.power("all", "status")

    assert off.code == 0, off.said
    assert hall.hosts["n2"].pid1() is None
    assert status.code == 0, status.said
    assert "off        n2 (1 nodes)" in status.said
    assert "next: recover power" in status.said
    written = [p.read_bytes() for p in hall.operator.state.rglob("*") if p.is_file()]
    assert not [text for text in written if PASSWORD.encode() in text]
