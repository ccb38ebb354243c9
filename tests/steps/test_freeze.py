"""`freeze`: evidence of every node, a manifest, nothing cleared."""

import json

import pytest

from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from recovery.steps.freeze import FREEZE, FreezeParams
from tests.fakes import FakeTransport, FakeWorld, finished

A = Node("a", variables={"train_log": "log/train.log", "checkpoints": "my ckpt"})


def frozen(answer, what=("training-state",)):
    world = FakeWorld(transport=FakeTransport(answer))
    result = FREEZE.run(FreezeParams(argument=what), (A,), world)
    return result.nodes["a"], world


def test_the_manifest_names_every_piece_with_its_digest():
    result, world = frozen(lambda node, command: finished("text"))

    manifest = json.loads(world.evidence[result.kept[-1].digest])
    assert [f["name"] for f in manifest["files"]] == ["train.log", "checkpoints.txt"]
    assert manifest["files"][0]["sha256"] == result.kept[0].digest
    assert result.verdict.level is Level.PASS


def test_the_moment_of_the_outage_is_known_to_later_steps():
    line = "2026-11-30T03:12:40+0000 a systemd[1]: Started Session 812 of User root.\n"
    world = FakeWorld(transport=FakeTransport(lambda node, command: finished(line)))

    result = FREEZE.run(FreezeParams(argument=("kernel-log",)), (A,), world)

    assert result.values == {"outage_at": 1796008360.0, "first_error_at": None}


def test_paths_are_quoted():
    _, world = frozen(lambda node, command: finished("text"))

    assert any("'my ckpt'" in line for _, line in world.transport.asked)


def test_a_missing_tool_is_a_warning_and_the_rest_is_kept():
    def answer(node, command):
        return finished("x") if "sdr" in command.line else finished(status=127, stderr="not found")

    result, _ = frozen(answer, ("bmc",))

    assert result.verdict.level is Level.WARN
    assert [k.name for k in result.kept] == ["bmc-sensors", "manifest.json"]


def test_a_node_that_cannot_be_reached_is_unknown():
    result, _ = frozen(lambda node, command: Output(Ending.NEVER_STARTED))

    assert result.verdict.level is Level.UNKNOWN
    assert result.ending is Ending.NEVER_STARTED


def test_no_line_deletes_or_clears_anything():
    lines = [i.line for i in FreezeParams().items(A.variables)]

    for word in ("rm ", "clear", "-C ", "--clear", "> /", "vacuum"):
        assert not [line for line in lines if word in line]


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="'kernel-logs' is none of"):
        FreezeParams(argument=("kernel-logs",))


def test_which_machine_it_is_is_kept_for_its_vendor():
    def answer(node, command):
        return finished("product_serial: X1\n" if "product_serial" in command.line else "x")

    result, world = frozen(answer, ("bmc",))

    kept = {k.name: world.evidence[k.digest] for k in result.kept}
    assert kept["identity"] == b"product_serial: X1\n"
    assert result.verdict.level is Level.PASS
