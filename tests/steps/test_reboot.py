"""`reboot`: proved by a new boot id, never by an answer alone."""

from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from recovery.steps.reboot import ASK, REBOOT_VERB, RebootParams
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

OLD, NEW = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
DOWN = Output(Ending.NEVER_STARTED)


def boot(boot_id, uptime=20.0):
    return finished(f"{boot_id}\n{uptime} 1.0\n")


def rebooted(*answers):
    left = list(answers)

    def answer(node, command):
        if command.line != ASK:
            return finished()
        return left.pop(0) if len(left) > 1 else left[0]

    world = FakeWorld(transport=FakeTransport(answer), step=a_step("reboot", timeout_s=100))
    return REBOOT_VERB.run(RebootParams(), (Node("a"),), world).nodes["a"], world


def test_a_new_boot_id_seen_twice_passes():
    result, _ = rebooted(boot(OLD, 9e5), DOWN, boot(NEW, 5), boot(NEW, 15))

    assert result.verdict.level is Level.PASS


def test_the_old_boot_id_that_answers_on_is_no_reboot():
    result, _ = rebooted(boot(OLD, 9e5))

    assert result.verdict.level is Level.FAIL


def test_an_error_text_is_not_a_boot_id():
    result, _ = rebooted(boot(OLD, 9e5), finished("Connection closed\n"))

    assert result.verdict.level is Level.FAIL


def test_two_different_new_ids_are_two_reboots_and_not_settled():
    other = "77777777-2222-3333-4444-555555555555"

    result, _ = rebooted(boot(OLD, 9e5), boot(NEW, 5), boot(other, 5), boot(other, 15))

    assert result.verdict.level is Level.PASS


def test_a_node_whose_boot_id_cannot_be_read_is_not_rebooted():
    result, world = rebooted(finished("", status=1))

    assert result.verdict.level is Level.UNKNOWN
    assert [line for _, line in world.transport.asked] == [ASK]
