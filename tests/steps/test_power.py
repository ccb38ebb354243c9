"""`power`: to a state, as the BMC says; evidence first; nothing ordered without an answer."""

import pytest

from recovery.model.bmc import BmcAsk
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level, failed
from recovery.steps.power import POWER, PowerParams
from recovery.steps.power.feeds import losses_told, together, waves
from tests.fakes import FakeWorld, a_step, finished

A = Node("a", rack="r07", variables={"bmc": "bmc-a"})
LOST = (
    "   1 | 07/14/2026 | 03:12:40 | Power Unit #0x01 | AC lost | Asserted\n"
    "   2 | 07/14/2026 | 03:40:02 | Power Unit #0x01 | AC lost | Deasserted\n"
)


class Bmc:
    """A BMC whose state lags one question behind the order."""

    def __init__(self, power="on", *, obeys=True, sel=LOST, hung=True):
        self.power, self.next, self.obeys, self.sel = power, power, obeys, sel
        self.hung = hung  # whether its system ignores the wish that it shut down
        self.asked = []

    def __call__(self, node, question):
        self.asked.append(question)
        match question:
            case BmcAsk.STATUS:
                told, self.power = self.power, self.next
                return finished(f"Chassis Power is {told}\n")
            case BmcAsk.SEL:
                return finished(self.sel) if self.sel else finished(status=1, stderr="no SEL")
            case BmcAsk.SENSORS:
                return finished("Inlet Temp | 23 degrees C | ok\n")
        if question == BmcAsk.SOFT:
            question = "on" if self.hung else "off"
        self.next = str(question) if self.obeys else self.next
        return finished(f"Chassis Power Control: {question}\n")

    @property
    def orders(self):
        return [q for q in self.asked if q in (BmcAsk.ON, BmcAsk.SOFT, BmcAsk.OFF)]


def powered(word, bmc, *nodes, **params):
    world = FakeWorld(bmcs=bmc, step=a_step("power", timeout_s=60))
    chosen = nodes or (A,)
    return POWER.run(PowerParams(argument=word, **params), chosen, world), world


def only(word, bmc, **params):
    result, world = powered(word, bmc, **params)
    return result.nodes["a"], world


def test_a_node_that_is_on_already_gets_no_order():
    bmc = Bmc("on")

    result, _ = only("on", bmc)

    assert bmc.orders == []
    assert result.verdict.level is Level.PASS


def test_a_cycle_stays_off_for_half_a_minute():
    bmc = Bmc("on")

    result, world = only("cycle", bmc)

    assert bmc.orders == ["soft", "off", "on"]
    assert 30.0 in world.clock.slept
    assert result.values["power"] == "on"


def test_a_system_that_shuts_down_by_itself_is_not_cut_off():
    bmc = Bmc("on", hung=False)

    result, _ = only("off", bmc)

    assert bmc.orders == ["soft"]
    assert result.verdict.level is Level.PASS


def test_a_system_that_hangs_is_given_its_time_and_then_cut_off():
    bmc = Bmc("on")

    result, world = only("off", bmc, orderly="12s")

    assert bmc.orders == ["soft", "off"]
    assert 8 <= sum(world.clock.slept) <= 20
    assert result.verdict.level is Level.PASS


def test_a_bmc_that_cannot_ask_its_system_is_not_waited_for():
    bmc = Bmc("on")

    def refuses(node, question):
        said = bmc(node, question)
        return finished(status=1, stderr="Invalid command") if question == "soft" else said

    result, world = only("off", refuses)

    assert bmc.orders == ["soft", "off"]
    assert sum(world.clock.slept) <= 10
    assert "a: the BMC refused power soft: Invalid command" in [told for _, told, _ in world.notes]
    assert result.verdict.level is Level.PASS


def test_power_is_cut_at_once_where_nothing_can_be_lost():
    bmc = Bmc("on")

    only("off", bmc, orderly="0s")

    assert bmc.orders == ["off"]


def test_a_node_that_was_cycled_often_enough_gets_no_order():
    bmc = Bmc("on")
    twice = failed("no power again: 2 within a week", remedy="replace it", code="blast.attempts")
    world = FakeWorld(bmcs=bmc, step=a_step("power", timeout_s=60), holds={"a": twice})

    held = POWER.run(PowerParams(argument="cycle"), (A,), world).nodes["a"]
    excused = POWER.run(PowerParams(argument="cycle", may_fail=True), (A,), world).nodes["a"]
    POWER.run(PowerParams(argument="on"), (A,), world)

    assert bmc.orders == []
    assert held.verdict.worst.code == "blast.attempts"
    assert excused.verdict.level is Level.WARN


def test_event_log_and_sensors_are_saved_before_the_first_order():
    bmc = Bmc("on")

    result, world = only("off", bmc)

    assert bmc.asked[:4] == [BmcAsk.STATUS, BmcAsk.SEL, BmcAsk.SENSORS, BmcAsk.SOFT]
    assert {kept.name for kept in result.kept} == {"bmc-sel", "bmc-sensors"}
    assert world.intents == [
        ("disrupt", {"node": "a", "what": "power soft"}),
        ("disrupt", {"node": "a", "what": "power off"}),
    ]


def test_an_event_log_that_cannot_be_read_is_a_warning():
    result, _ = only("off", Bmc("on", sel=""))

    assert result.verdict.level is Level.WARN
    assert "bmc-sel could not be saved: no SEL" in result.verdict.worst.finding


def test_a_node_that_never_went_off_was_not_cycled():
    bmc = Bmc("on", obeys=False)

    result, _ = only("cycle", bmc)

    assert bmc.orders == ["soft", "off"]
    assert result.verdict.level is Level.FAIL


def test_a_node_that_does_not_stay_on_is_not_on():
    bmc = Bmc("off")

    def dies(node, question):
        said = bmc(node, question)
        if bmc.asked.count(BmcAsk.STATUS) > 3:
            return finished("Chassis Power is off\n")
        return said

    result, _ = only("on", dies)

    assert result.verdict.worst.code == "power.not-as-asked"


def test_an_order_that_is_refused_says_so():
    bmc = Bmc("on", obeys=False)

    def refuses(node, question):
        said = bmc(node, question)
        return finished(status=1, stderr="Insufficient privilege") if question == "off" else said

    result, _ = only("off", refuses)

    assert "Insufficient privilege" in "".join(f.finding for f in result.verdict.findings)
    assert result.verdict.level is Level.FAIL


@pytest.mark.parametrize(
    "answer",
    [
        finished("", status=1, stderr="Error: Unable to establish IPMI v2 / RMCP+ session"),
        finished("", status=1, stderr="RAKP 2 HMAC is invalid"),
        finished("\x00\xff garbage"),
        finished(""),
        finished('{"PowerState": "PoweringOn"}'),
        Output(Ending.TIMEOUT),
        Output(Ending.NEVER_STARTED, reason="ipmitool is not on this machine"),
    ],
)
@pytest.mark.parametrize("word", ["on", "off", "cycle", "status"])
def test_a_bmc_that_gives_no_state_is_unknown_and_gets_no_order(answer, word):
    asked = []

    def silent(node, question):
        asked.append(question)
        return answer

    result, _ = only(word, silent)

    assert result.verdict.level is Level.UNKNOWN
    assert asked == [BmcAsk.STATUS]


def test_a_bmc_that_falls_silent_after_the_order_is_unknown():
    bmc = Bmc("on")

    def falls(node, question):
        said = bmc(node, question)
        return finished("???") if bmc.orders and question == BmcAsk.STATUS else said

    result, _ = only("cycle", falls)

    assert bmc.orders == ["soft"]
    assert result.verdict.worst.code == "power.no-answer"
    assert "may be off" in result.verdict.worst.remedy


@pytest.mark.parametrize("word", ["on", "off", "status"])
def test_a_node_without_bmc_is_unknown(word):
    result, _ = only(word, lambda node, question: None)

    assert result.verdict.level is Level.UNKNOWN


def test_status_says_who_lost_power_together_and_who_did_not_come_back():
    rack = tuple(Node(f"n{i}", rack="r07") for i in range(3))
    states = {"n0": Bmc("on"), "n1": Bmc("on"), "n2": Bmc("off")}

    result, world = powered("status", lambda n, q: states[n.name](n, q), *rack)

    assert [told for _, told, _ in world.notes] == [
        "all of rack r07 lost AC at 03:12:40 (2026-07-14): 3 nodes"
    ]
    assert result.values["off"] == ["n2"]
    assert "did not come back" in result.nodes["n2"].verdict.worst.finding
    assert "recover power test n2 on" in result.nodes["n2"].verdict.worst.remedy
    assert result.nodes["n0"].verdict.level is Level.PASS


def test_losses_far_apart_are_not_one_event():
    times = {"a": "2026-07-14T03:12:40", "b": "2026-07-14T03:13:00", "c": "2026-07-14T09:00:00"}

    assert list(together(times)) == [("a", "b")]


def test_a_rack_that_lost_a_part_of_its_nodes_is_told_so():
    nodes = tuple(Node(f"n{i}", rack="r1") for i in range(4))

    (told,) = losses_told(nodes, {"n0": "2026-07-14T03:12:40", "n3": "2026-07-14T03:12:41"})

    assert told == "2 of 4 nodes of rack r1 lost AC at 03:12:40 (2026-07-14): n[0,3]"


def test_a_wave_has_at_most_so_many_nodes_of_a_feed():
    nodes = tuple(Node(f"n{i}", rack=f"r{i % 2}") for i in range(10))

    cut = waves(nodes, "rack", 2)

    assert [len(wave) for wave in cut] == [4, 4, 2]
    assert sorted(n.name for wave in cut for n in wave) == sorted(n.name for n in nodes)


def test_only_what_starts_nodes_is_done_in_waves():
    nodes = tuple(Node(f"n{i}") for i in range(5))

    assert len(POWER.waves(PowerParams(argument="on", inrush=2), nodes)) == 3
    assert POWER.waves(PowerParams(argument="off", inrush=2), nodes) == (nodes,)
