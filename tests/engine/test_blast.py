"""The engine disrupts and drains no more nodes than its limits, whatever the steps say."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery.engine.blast import disrupted
from recovery.model.kind import StepResult
from recovery.model.output import Command
from recovery.model.runbook import Effect, Gate, GateKind, OnFail, Rerun
from tests.engine.runs import NODES, VERBS, Bench, _verb, line
from tests.fakes import finished

ALL = tuple(node.name for node in NODES)


def _switch(params, nodes, world):
    from recovery.engine.outcome import command_result

    def on(node):
        world.intend("disrupt", {"node": node.name, "what": "switch"})
        return command_result(world, node, world.run(node, Command("off")), what="switch")

    return StepResult(nodes=world.fan_out(nodes, on))


SWITCH = _verb("switch", _switch, Effect.DISRUPTIVE, rerun=Rerun.ASK)


def a_bench(**more):
    return Bench(verbs={**VERBS, "switch": SWITCH}, **more)


def off(id, *names, **more):
    return line(id, "off", "switch", nodes=names, effect=Effect.DISRUPTIVE, disrupts=True, **more)


def asked(bench):
    return {node for node, command in bench.transport.asked if command == "off"}


def test_a_step_beyond_the_limit_touches_nobody():
    bench = a_bench()

    end = bench.carry_out(off("one", "n1", "n2"), off("two", "n3"), disrupt=2)

    assert asked(bench) == {"n1", "n2"}
    assert end.exit_code == 1
    worst = bench.story.steps["two"].verdict.worst
    assert worst.code == "blast.disrupt"
    assert "test.yaml:1:1" in worst.finding


def test_a_node_may_be_disrupted_again():
    bench = a_bench()

    end = bench.carry_out(off("one", "n1", "n2"), off("two", "n1"), disrupt=2)

    assert end.exit_code == 0


def test_runs_of_the_last_hour_count():
    bench = a_bench()
    asked_since = []

    def before(since):
        asked_since.append(since)
        return ("n3", "n4")

    parts = bench.parts()
    bench.parts = lambda: replace(parts, disrupted=before)

    end = bench.carry_out(off("one", "n1"), disrupt_per_hour=2)

    assert end.exit_code == 1
    assert asked(bench) == set()
    assert asked_since == [bench.clock.now() - 3600]


def test_a_plain_command_that_says_it_disrupts_is_journaled_and_counted():
    bench = a_bench()
    step = line("kick", "kick", nodes=("n1",), effect=Effect.DISRUPTIVE, disrupts=True)

    bench.carry_out(step, off("two", "n2"), disrupt=1)

    assert list(disrupted(bench.story)) == ["n1"]
    assert asked(bench) == set()


def test_a_resumed_run_remembers_whom_it_disrupted():
    bench = a_bench()
    bench.carry_out(off("one", "n1"), line("stop", "false"), disrupt=1)
    bench.transport.answer = lambda node, command: finished(status=1)

    bench.carry_out(off("one", "n1"), off("two", "n2"), disrupt=1)

    assert asked(bench) == {"n1"}


def test_more_nodes_than_the_limit_are_not_drained_and_that_is_said():
    bench = a_bench()
    bench.transport.answer = lambda node, command: finished(status=node.name != "n4")
    one = line("look", gate=Gate(GateKind.ANY), on_fail=OnFail.QUARANTINE)

    bench.carry_out(one, drain=2)

    assert bench.drained == []
    assert "not drained: 3 nodes" in bench.story.quarantined["n1"].reason


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(st.sets(st.sampled_from(ALL), min_size=1), min_size=1, max_size=4),
    limit=st.integers(min_value=1, max_value=4),
)
def test_no_run_switches_more_nodes_than_its_limit(steps, limit):
    bench = a_bench()
    plan = [off(f"s{i}", *sorted(names)) for i, names in enumerate(steps)]

    end = bench.carry_out(*plan, disrupt=limit)

    assert len(asked(bench)) <= limit
    assert (end.exit_code == 0) == (len(set().union(*steps)) <= limit)
