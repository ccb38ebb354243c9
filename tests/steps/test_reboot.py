"""`reboot`: proved by a new boot id, never by an answer alone."""

import subprocess

from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from recovery.steps.reboot import ASK, REBOOT_VERB, RebootParams
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

OLD, NEW = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
DOWN = Output(Ending.NEVER_STARTED)


def boot(boot_id, uptime=20.0):
    return finished(f"{boot_id}\n{uptime} 1.0\n")


def rebooted(*answers, **params):
    left = list(answers)

    def answer(node, command):
        if command.line != ASK:
            return finished()
        return left.pop(0) if len(left) > 1 else left[0]

    world = FakeWorld(transport=FakeTransport(answer), step=a_step("reboot", timeout_s=100))
    return REBOOT_VERB.run(RebootParams(**params), (Node("a"),), world).nodes["a"], world


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


BACK = (boot(OLD, 9e5), boot(NEW, 5), boot(NEW, 15))


def ready(*answers):
    """A reboot after which the node says such things about what must work."""
    left = list(answers)

    def answer(node, command):
        if "asked all" in command.line:
            return left.pop(0) if len(left) > 1 else left[0]
        return boots.pop(0) if command.line == ASK and len(boots) > 1 else boots[0]

    boots = list(BACK)
    world = FakeWorld(transport=FakeTransport(answer), step=a_step("reboot", timeout_s=100))
    params = RebootParams(ready=("driver", "slurmd", "/lustre"))
    return REBOOT_VERB.run(params, (Node("a"),), world).nodes["a"]


def test_what_must_work_after_the_boot_is_waited_for():
    result = ready(finished("slurmd\nasked all\n"), finished("asked all\n"))

    assert result.verdict.level is Level.PASS


def test_what_does_not_work_in_time_is_named():
    result = ready(finished("slurmd\n/lustre\nasked all\n"))

    assert result.verdict.worst.finding == "rebooted, and not ready in time: slurmd, /lustre"


def test_a_node_that_does_not_say_what_works_is_not_ready():
    assert ready(finished("")).verdict.level is Level.UNKNOWN


def test_a_node_that_never_came_back_is_a_warning_where_the_next_step_decides():
    result, _ = rebooted(boot(OLD, 9e5), may_fail=True)

    assert result.verdict.level is Level.WARN


def test_the_question_what_is_ready_is_a_line_that_a_shell_can_carry_out():
    line = RebootParams(ready=("/proc", "/not there", "no-such.service")).line

    said = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)

    assert said.stdout == "/not there\nno-such.service\nasked all\n"
