"""Secrets never reach the journal, by whatever way a text gets into an event."""

from dataclasses import replace

from recovery.engine.secrecy import strike_out, strike_out_bytes
from recovery.model.events import Intended, NodeFinished, Noted
from recovery.model.kind import NodeResult
from recovery.model.verdict import failed, single
from tests.engine.runs import Bench, line
from tests.fakes import finished

SECRETS = ("hunter22", "hunter2")


def test_texts_at_any_depth_are_struck_and_the_longer_secret_first():
    event = Intended(
        at=1.0, step="s", what="launch", facts={"line": "a hunter22", "n": [1, ("hunter2",)]}
    )

    struck = strike_out(event, SECRETS)

    assert struck.facts == {"line": "a [secret]", "n": [1, ("[secret]",)]}
    assert struck.at == 1.0


def test_findings_and_values_of_a_node_are_struck_and_its_name_is_not():
    result = NodeResult(
        node="hunter22", verdict=single(failed("said hunter22", remedy="ask hunter2")),
        values={"stdout": "x=hunter22\n"},
    )  # fmt: skip

    struck = strike_out(NodeFinished(at=1.0, step="hunter22", attempt=1, result=result), SECRETS)

    assert (struck.step, struck.result.node) == ("hunter22", "hunter22")
    assert struck.result.verdict.worst.finding == "said [secret]"
    assert struck.result.verdict.worst.remedy == "ask [secret]"
    assert struck.result.values == {"stdout": "x=[secret]\n"}


def test_without_a_secret_in_it_an_event_stays_the_same_object():
    event = Noted(at=1.0, step="s", message="nothing here")

    assert strike_out(event, SECRETS) is event
    assert strike_out(event, ()) is event


def test_evidence_is_struck():
    assert strike_out_bytes(b"\xff hunter22 \0", SECRETS) == b"\xff [secret] \0"


def test_nothing_that_a_run_journals_holds_a_secret():
    bench = Bench(lambda node, command: finished("tok-1234\n", status=2, stderr="bad tok-1234"))
    parts = bench.parts
    bench.parts = lambda: replace(parts(), secrets=("tok-1234",))

    bench.carry_out(line("a", "one", keep=()))

    assert "bad [secret]" in repr(bench.journal.events)
    assert "tok-1234" not in repr(bench.journal.events)
