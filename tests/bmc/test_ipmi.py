"""`ipmi`: ipmitool against a real IPMI 2.0 simulator."""

import pytest

from recovery.bmc.ipmi import IPMI, argv_of
from recovery.model.bmc import BmcAddress, BmcAsk
from recovery.model.output import Ending, Printed
from recovery.reading.bmc import parse_power
from recovery.reading.bmc_sel import parse_sel
from recovery.steps.power.order import read_power
from tests.bmc.simulators import PASSWORD, ipmi_sim, why_no_ipmi
from tests.transports.servers import until

pytestmark = pytest.mark.skipif(bool(why_no_ipmi()), reason=why_no_ipmi())
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    with ipmi_sim(tmp_path_factory.mktemp("ipmi") / "n1") as made:
        assert until(lambda: IPMI.ask(at(made), BmcAsk.STATUS, LIMIT_S).ok)
        yield made


def at(sim, **changes):
    values = {"address": "127.0.0.1", "user": "admin", "password": PASSWORD}
    options = {"cipher": 3, "port": sim.port}
    return BmcAddress(node="n1", options=options, **{**values, **changes})


def test_an_order_switches_the_machine_and_the_bmc_says_so(sim):
    assert read_power(IPMI.ask(at(sim), BmcAsk.STATUS, LIMIT_S)) == "on"

    off = IPMI.ask(at(sim), BmcAsk.OFF, LIMIT_S)

    assert off.ok
    assert until(lambda: read_power(IPMI.ask(at(sim), BmcAsk.STATUS, LIMIT_S)) == "off")
    assert sim.power == "0"
    assert IPMI.ask(at(sim), BmcAsk.ON, LIMIT_S).ok
    assert until(lambda: sim.power == "1")


def test_the_event_log_is_read_and_stays(sim):
    sim.add_ac_lost()

    first = IPMI.ask(at(sim), BmcAsk.SEL, LIMIT_S)
    again = IPMI.ask(at(sim), BmcAsk.SEL, LIMIT_S)

    assert first.stdout == again.stdout
    assert any("AC lost" in e.what for e in parse_sel(Printed(first.text)).events)


def test_a_wrong_password_gives_no_state_and_switches_nothing(sim):
    before = list(sim.asked)

    said = IPMI.ask(at(sim, password="wrong-password"), BmcAsk.OFF, LIMIT_S)

    assert not said.ok
    assert read_power(said) == ""
    assert sim.asked == before


def test_a_dead_bmc_is_no_state(sim):
    nobody = BmcAddress(
        node="n9", address="127.0.0.1", user="admin", password=PASSWORD,
        options={"cipher": 3, "port": 9},
    )  # fmt: skip

    said = IPMI.ask(nobody, BmcAsk.STATUS, LIMIT_S)

    assert not said.ok
    assert {"-N", "-R"} <= set(argv_of(nobody, BmcAsk.STATUS))  # 2 s, not ipmitool's 20
    assert parse_power(Printed(said.text, said.error_text, said.exit_status)).refused is not None


def test_a_bmc_that_takes_too_long_ends_at_the_limit(sim):
    said = IPMI.ask(at(sim, address="127.0.0.2"), BmcAsk.STATUS, 0.05)

    assert said.ending is Ending.TIMEOUT


def test_the_password_is_nowhere_in_the_command(sim):
    assert PASSWORD not in " ".join(argv_of(at(sim), BmcAsk.OFF))
    assert PASSWORD not in repr(at(sim))


def test_without_ipmitool_the_answer_names_it(sim, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    said = IPMI.ask(at(sim), BmcAsk.STATUS, LIMIT_S)

    assert said.ending is Ending.NEVER_STARTED
    assert "ipmitool" in said.reason
