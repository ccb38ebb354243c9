"""`power`: to a state, as the BMC says; 30 s off before on."""

import pytest

from recovery.model.node import Node
from recovery.model.verdict import Level
from recovery.steps.power import POWER, PowerParams
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

A = Node("a", variables={"bmc": {"address": "bmc-a", "user": "ops", "password_env": "BMC_PW"}})


class Bmc:
    """A BMC whose state lags one question behind the order."""

    def __init__(self, power="on", *, obeys=True):
        self.power, self.next, self.obeys, self.orders = power, power, obeys, []

    def __call__(self, node, command):
        word = command.line.split()[-1]
        if word == "status":
            told, self.power = self.power, self.next
            return finished(f"Chassis Power is {told}\n")
        self.orders.append(word)
        self.next = word if self.obeys else self.next
        return finished(f"Chassis Power Control: {word}\n")


def powered(word, bmc, node=A):
    world = FakeWorld(transport=FakeTransport(bmc), step=a_step("power", timeout_s=20))
    return POWER.run(PowerParams(argument=word), (node,), world).nodes["a"], world


def test_a_node_that_is_on_already_gets_no_order():
    bmc = Bmc("on")

    result, _ = powered("on", bmc)

    assert bmc.orders == []
    assert result.verdict.level is Level.PASS


def test_a_cycle_stays_off_for_half_a_minute():
    bmc = Bmc("on")

    result, world = powered("cycle", bmc)

    assert bmc.orders == ["off", "on"]
    assert 30.0 in world.clock.slept
    assert result.values["power"] == "on"


def test_a_node_that_never_went_off_was_not_cycled():
    bmc = Bmc("on", obeys=False)

    result, _ = powered("cycle", bmc)

    assert bmc.orders == ["off"]
    assert result.verdict.level is Level.FAIL


def test_an_order_that_is_not_obeyed_fails():
    result, _ = powered("off", Bmc("on", obeys=False))

    assert result.verdict.level is Level.FAIL


def test_a_bmc_that_says_nothing_is_unknown_and_gets_no_order():
    result, world = powered("off", lambda node, command: finished("", status=1, stderr="timeout"))

    assert result.verdict.level is Level.UNKNOWN
    assert len(world.transport.asked) == 1


@pytest.mark.parametrize("word", ["on", "off", "status"])
def test_a_node_without_bmc_is_unknown_and_nothing_is_asked(word):
    result, world = powered(word, Bmc(), Node("a"))

    assert result.verdict.level is Level.UNKNOWN
    assert world.transport.asked == []


def test_the_password_is_never_in_argv():
    _, world = powered("status", Bmc())

    line = world.transport.asked[0][1]
    assert '"${BMC_PW:-}"' in line
    assert " -E " in line
    assert " -P " not in line
