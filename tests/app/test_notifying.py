"""People are told, in few words and with the next command; a run never waits or fails for it."""

import importlib.util
import json
import threading

import pytest

from recovery.app.notifying import About, Herald, Message, message_of, sender
from recovery.model.events import (
    Asked,
    GateDecided,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
)
from tests.app.receiver import STRANGE, receiving, strange


def needs_apprise(test):
    """For tests that send; one of its plugins imports what Python will drop."""
    there = importlib.util.find_spec("apprise") is not None
    quiet = pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")
    return pytest.mark.skipif(not there, reason="apprise is not installed")(quiet(test))


ABOUT = About(run="run-1", cluster="cluster-a", runbook="power-loss", n_nodes=128)
STARTED = RunStarted(at=0, run="run-1", cluster="c", runbook="b", digest="d", nodes=("n",), seed=1,
                     version="0", owner="ada@head")  # fmt: skip
SHUT = GateDecided(at=1, step="mesh", decision="shut", passed=9, needed=10, total=12,
                   reason="9 of 12 passed, 10 needed")  # fmt: skip
ASKED = Asked(at=1, step="relaunch", id="relaunch", question="Start again from 120?")
DONE = RunFinished(at=2, outcome="done", exit_code=0, reason="all steps done")
STOPPED = RunFinished(at=2, outcome="shut", exit_code=1, reason="the gate of mesh is shut",
                      next_command="recover resume run-1")  # fmt: skip


@pytest.mark.parametrize(
    ("event", "title", "command", "kind"),
    [
        (STARTED, "power-loss started", "next: recover runs", "info"),
        (RunResumed(at=0, owner="x"), "power-loss goes on", "next: recover runs", "info"),
        (SHUT, "gate shut: mesh", "next: recover report run-1", "failure"),
        (ASKED, "approval wanted: relaunch", "recover resume run-1 --approve relaunch", "warning"),
        (DONE, "power-loss done", "next: recover report run-1", "success"),
        (STOPPED, "power-loss shut", "next: recover resume run-1", "failure"),
    ],
)
def test_a_message_says_what_happened_and_what_to_type(event, title, command, kind):
    message = message_of(event, ABOUT)

    assert message.title == f"recover cluster-a: {title}"
    assert command in message.body
    assert message.kind == kind
    assert len(message.body) < 200


def test_most_events_are_nobodys_news():
    opened = GateDecided(at=1, step="s", decision="open", passed=1, needed=1, total=1)

    assert message_of(opened, ABOUT) is None
    assert message_of(StepFinished(at=1, step="s", outcome="done"), ABOUT) is None


def test_nobody_is_called_for_an_approval_that_was_given_beforehand():
    about = About(run="r", cluster="c", runbook="b", n_nodes=1, answered=lambda step: True)

    assert message_of(ASKED, about) is None


def told(send, *events):
    failures = []
    herald = Herald(ABOUT, send, failures.append)
    for event in events:
        herald.hear(event)
    herald.close()
    return failures


def test_messages_are_sent_in_order():
    sent = []

    def send(message):
        sent.append(message.title)
        return ()

    assert told(send, STARTED, SHUT, STOPPED) == []
    assert [title.partition(": ")[2] for title in sent] == [
        "power-loss started",
        "gate shut: mesh",
        "power-loss shut",
    ]


def test_a_failure_is_said_and_the_next_message_is_tried():
    tried = []

    def send(message):
        tried.append(message)
        return [f"not sent {len(tried)}"]

    assert told(send, STARTED, DONE) == ["not sent 1", "not sent 2"]


def test_a_service_that_hangs_holds_nobody_and_says_nothing_later():
    go_on, done = threading.Event(), threading.Event()
    failures = []

    def send(message):
        go_on.wait()
        yield "too late"
        done.set()

    herald = Herald(ABOUT, send, failures.append)
    herald.hear(STARTED)
    herald.close(wait_s=0.0)
    go_on.set()
    done.wait()

    assert failures == ["notify: still not sent after 0 s, given up"]


def test_without_addresses_there_is_nobody_to_tell():
    assert sender({}) is None
    assert sender({"notify": []}) is None
    assert told(None, STARTED) == []


def sent_to(*addresses, secrets=(), message=None):
    send = sender({"notify": list(addresses)}, secrets)
    return list(send(message or Message("a title", "a body", "warning")))


@needs_apprise
def test_a_real_receiver_gets_it():
    with receiving() as server:
        said = sent_to(f"json://{server.place}/hook-token")

    assert said == []
    _, path, _, body = server.taken[0]
    values = json.loads(body)
    assert path.startswith("/hook-token")
    assert (values["title"], values["message"], values["type"]) == ("a title", "a body", "warning")


@needs_apprise
def test_secrets_are_struck_out():
    with receiving() as server:
        sent_to(f"json://{server.place}", secrets=("hunter22",), message=Message("t", "a hunter22"))

    assert json.loads(server.taken[0][3])["message"] == "a [secret]"


@needs_apprise
def test_an_address_may_stand_in_the_environment(monkeypatch):
    with receiving() as server:
        monkeypatch.setenv("HOOK", f"json://{server.place}")
        assert sent_to("env:HOOK") == []

    assert len(server.taken) == 1


@needs_apprise
def test_each_address_that_fails_is_said_by_number_and_never_by_name(capfd):
    with receiving(status=500) as broken, receiving() as well:
        said = sent_to(f"json://{broken.place}/tok-1", "nonsense://tok-2", f"json://{well.place}",
                       "env:NOWHERE_AT_ALL")  # fmt: skip

    assert said == [
        "notify: address 1 of 4: the service did not take the message",
        "notify: address 2 of 4: not an address that apprise knows; see `apprise --help`",
        "notify: address 4 of 4: the environment variable NOWHERE_AT_ALL is not set",
    ]
    assert len(well.taken) == 1
    assert "tok-" not in "".join(capfd.readouterr())


def test_without_apprise_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert sent_to("json://x") == [
        "notify: address 1 of 1: apprise is not installed: pip install 'recover[notify]'"
    ]


@needs_apprise
@pytest.mark.parametrize("kind", ["garbage", "nothing at all", "an endless head"])
def test_a_service_that_answers_nonsense_is_said_and_the_next_is_told(kind):
    with strange(STRANGE[kind]) as (place, taken), receiving() as well:
        said = sent_to(f"json://{place}/tok-1", f"json://{well.place}")

    assert said == ["notify: address 1 of 2: the service did not take the message"]
    assert len(taken) == 1
    assert len(well.taken) == 1


@needs_apprise
def test_a_service_that_never_answers_costs_its_limit_and_holds_nobody():
    said = []
    with strange(None) as (place, taken):
        herald = Herald(ABOUT, sender({"notify": f"json://{place}/tok-1?rto=0.3"}), said.append)
        herald.hear(STARTED)
        herald.close(wait_s=120)

    assert said == ["notify: address 1 of 1: the service did not take the message"]
    assert len(taken) == 1


@needs_apprise
@pytest.mark.parametrize(
    "address",
    [
        "slack://TokenA/TokenB/TokenC/#ops",
        "workflows://host.example:443/0123456789abcdef/sig0123456789",
        "feishu://0123456789abcdef",
        "dingtalk://secret@abcdefgh0123",
        "wecombot://0123abcd-0123-0123-0123-0123456789ab",
        "mailto://ops:pw@mail.example?to=oncall@mail.example",
        "jsons://hook.example/path",
    ],
)
def test_the_kinds_of_address_that_the_documentation_names_are_known(address):
    import apprise

    assert apprise.Apprise().add(address)
