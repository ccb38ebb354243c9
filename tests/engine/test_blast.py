"""The engine disrupts and drains no more nodes than its limits, whatever the steps say."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery.engine.blast import attempts, disrupted
from recovery.engine.health import RELEASED
from recovery.engine.history import RunStory
from recovery.model.events import Noted
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


def _kick(params, nodes, world):
    from recovery.engine.outcome import command_result, node_result

    def on(node):
        spent = world.spent(node)
        if spent is not None:
            return node_result(node.name, finished(), [spent])
        world.intend("disrupt", {"node": node.name, "what": "soft"})
        world.intend("disrupt", {"node": node.name, "what": "off"})
        return command_result(world, node, world.run(node, Command("off")), what="kick")

    return StepResult(nodes=world.fan_out(nodes, on))


KICK = _verb("kick", _kick, Effect.DISRUPTIVE, rerun=Rerun.ASK)


def kicked(bench, *, before=None, **limits):
    """One step that disrupts n1, in a new run of the cluster."""
    bench.verbs["kick"] = KICK
    bench.journal.events.clear()
    parts = bench.parts()
    bench.parts = lambda: replace(parts, attempted=lambda: before or {})
    step = line("kick", "off", "kick", nodes=("n1",), effect=Effect.DISRUPTIVE, disrupts=True)
    return bench.carry_out(step, **limits), bench.story


def test_what_was_tried_twice_within_a_week_is_not_tried_again():
    bench = a_bench()
    now = bench.clock.now()

    end, story = kicked(
        bench, before={("n1", "kick"): [now - 9e5, now - 5e5, now - 60]}, attempts=2
    )

    assert end.exit_code == 1
    assert asked(bench) == set()
    worst = story.steps["kick"].results["n1"].verdict.worst
    assert worst.code == "blast.attempts"
    assert "2 within a week, the limit is 2" in worst.finding
    assert "recover return" in worst.remedy


def test_attempts_of_other_nodes_of_other_verbs_and_of_long_ago_do_not_count():
    bench = a_bench()
    now = bench.clock.now()
    before = {
        ("n2", "kick"): [now] * 2,
        ("n1", "reset"): [now] * 2,
        ("n1", "kick"): [now - 7e5, now],
    }

    end, _ = kicked(bench, before=before, attempts=2)

    assert end.exit_code == 0
    assert asked(bench) == {"n1"}


def test_attempts_are_read_from_journals_until_the_node_is_given_back():
    bench = a_bench()
    _, story = kicked(bench)
    at = bench.clock.now()

    tried = attempts([story])
    given_back = RunStory()
    given_back.tell(
        Noted(at=at, step="", message="resumed", kind=RELEASED, facts={"nodes": ["n1"]})
    )

    assert tried == {("n1", "kick"): [at]}  # two orders of one try count once
    assert attempts([story, story]) == {("n1", "kick"): [at, at]}
    assert attempts([story, given_back]) == {}
    assert attempts([story, given_back, story]) == {("n1", "kick"): [at]}
