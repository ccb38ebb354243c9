"""`check`: each exact command runs once; what cannot be judged is unknown."""

import re
from dataclasses import dataclass, replace

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.runbook import Effect
from recovery.model.verdict import Level, failed, single, verdict
from recovery.registry import pick
from recovery.steps.check import CHECK, CheckParams
from tests.fakes import FakeTransport, FakeWorld, finished

A, B, C = Node("a"), Node("b"), Node("c")


@dataclass(frozen=True)
class Number:
    value: int


def parse(printed):
    if not printed.text.strip().isdigit():
        raise ParseError("not a number", remedy="look")
    return Number(int(printed.text))


def below(limit):
    def judge(facts, expect):
        bad = (
            [failed(f"{facts.value} is too much", remedy="lower it")] if facts.value > limit else []
        )
        return verdict(bad, otherwise="low")

    return judge


def compare(facts, share):
    values = sorted(f.value for f in facts.values())
    middle = values[len(values) // 2]
    return {
        n: single(failed(f"differs from {middle}", remedy="compare"))
        for n, f in facts.items()
        if f.value != middle
    }


def a_check(name, limit, compare=None):
    return Check(
        name=name,
        question="?",
        command="count",
        parse=parse,
        expect=lambda raw: raw,
        judge=below(limit),
        needs="the package counters",
        compare=compare,
    )


REAL = ("train.first-error", "gpu.xid")
CHECKS = {
    **{name: replace(pick("recovery.checks", Check, name), command="count") for name in REAL},
    "low": a_check("low", 10),
    "lower": a_check("lower", 5),
    "same": a_check("same", 99, compare),
}


class World(FakeWorld):
    def check(self, name):
        return CHECKS[name]


def framed(text):
    """A shell that prints ``text`` to the only line of the bundle."""

    def shell(node, command):
        mark = re.search(r"@@[0-9a-f]{24}", command.line)[0]
        frame = f"{mark} begin 0\n%s\n{mark} end 0 0\n"
        return finished(frame % text, stderr=frame % "")

    return shell


def asked(names, answer):
    """The fake node's shell: runs each line of the bundle by ``answer``."""

    def shell(node, command):
        output = answer(node, Command("count"))
        if output.ending is not Ending.FINISHED:
            return output
        mark = re.search(r"@@[0-9a-f]{24}", command.line)[0].encode()
        frame = b"%s begin 0\n%%s\n%s end 0 %d\n" % (mark, mark, output.exit_status)
        return replace(
            output, exit_status=0, stdout=frame % output.stdout, stderr=frame % output.stderr
        )

    world = World(transport=FakeTransport(shell))
    return CHECK.run(CheckParams(argument=names), (A, B, C), world).nodes, world


def test_two_checks_of_one_command_ask_once_a_node():
    nodes, world = asked(["low", "lower"], lambda node, command: finished("7"))

    assert [name for name, _ in world.transport.asked] == ["a", "b", "c"]
    assert all(line.count("/bin/sh -c count") == 1 for _, line in world.transport.asked)
    assert nodes["a"].values["checks"] == {"low": "pass", "lower": "fail"}
    assert nodes["a"].verdict.worst.finding == "lower: 7 is too much"


def test_unreadable_output_is_unknown():
    nodes, _ = asked(["low"], lambda node, command: finished("seven"))

    assert nodes["a"].verdict.level is Level.UNKNOWN


def test_silence_is_unknown():
    nodes, _ = asked(["low"], lambda node, command: finished(""))

    assert nodes["a"].verdict.level is Level.UNKNOWN


def test_a_missing_tool_is_unknown_and_names_the_package():
    nodes, _ = asked(["low"], lambda node, command: finished(status=127, stderr="count: not found"))

    assert nodes["a"].verdict.level is Level.UNKNOWN
    assert "the package counters" in nodes["a"].verdict.worst.remedy


def test_a_node_that_cannot_be_reached_says_so_once_and_is_not_asked_on():
    nodes, _world = asked(["low", "same"], lambda node, command: Output(Ending.NEVER_STARTED))

    assert len(nodes["a"].verdict.findings) == 1
    assert nodes["a"].ending is Ending.NEVER_STARTED


def test_nodes_are_compared_with_one_another():
    nodes, _ = asked(["same"], lambda node, command: finished("9" if node.name == "c" else "7"))

    assert nodes["a"].verdict.level is Level.PASS
    assert nodes["c"].verdict.worst.finding == "same: differs from 7"


def test_the_answer_is_kept_under_its_command_with_its_status():
    nodes, _world = asked(["low"], lambda node, command: finished("7", stderr="warn"))

    assert [k.name for k in nodes["a"].kept] == ["count", "stderr of: count"]
    assert nodes["a"].values["statuses"] == {"count": 0}


def test_a_check_that_the_inventory_leaves_out_is_not_asked():
    world = World(transport=FakeTransport(lambda node, command: finished("99")))
    node = Node("a", variables={"not_applicable": ["low"]})

    result = CHECK.run(CheckParams(argument=("low",)), (node,), world).nodes["a"]

    assert world.transport.asked == []
    assert result.values["checks"] == {"low": "pass"}
    assert "not applicable" in result.verdict.worst.finding


def test_the_other_checks_of_a_node_are_still_asked():
    world = World(transport=FakeTransport(lambda node, command: finished("")))
    node = Node("a", variables={"not_applicable": "low, other"})

    result = CHECK.run(CheckParams(argument=("low", "lower")), (node,), world).nodes["a"]

    assert result.verdict.level is Level.UNKNOWN
    assert result.values["checks"] == {"lower": "unknown", "low": "pass"}


def test_a_share_that_is_none_holds_the_gate():
    world = World(transport=FakeTransport(framed("7")), variables={"agreement_share": "most"})

    nodes = CHECK.run(CheckParams(argument=("same",)), (A, B, C), world).nodes

    assert {r.verdict.level for r in nodes.values()} == {Level.UNKNOWN}
    assert "above 0.5" in nodes["a"].verdict.worst.remedy


def test_a_check_that_loads_gpus_or_writes_is_more_than_reading():
    assert CHECK.effect_of(CheckParams(argument="gpu.count")) is Effect.READ
    assert CHECK.effect_of(CheckParams(argument=["gpu.count", "gpu.burn"])) is Effect.WRITE
    assert CHECK.effect_of(CheckParams(argument="bugreport")) is Effect.WRITE


def test_a_crash_names_what_the_kernel_of_the_same_node_said_near_it():
    text = (
        "[rank9]:[E1129 10:00:01.0 x.cpp:1] CUDA error: uncorrectable ECC error encountered\n"
        "2026-11-29T10:00:02,000000+00:00 NVRM: Xid (PCI:0000:1b:00): 48, pid=1, x\n"
        "2026-11-29T18:00:00,000000+00:00 NVRM: Xid (PCI:0000:2b:00): 13, pid=1, y\n"
    )

    nodes, _ = asked(["train.first-error", "gpu.xid"], lambda node, command: finished(text))

    said = next(f.finding for f in nodes["a"].verdict.findings if "rank 9" in f.finding)
    assert said.endswith(
        "; the kernel within 2 min of it: NVRM: Xid (PCI:0000:1b:00): 48, pid=1, x"
    )
