"""People told about a run: short, with the next command; never at the price of the run."""

from __future__ import annotations

import importlib.util
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.model.events import Asked, Event, GateDecided, RunFinished, RunResumed, RunStarted

VARIABLE = "notify"
FLUSH_S = 15.0  # how long the end of a run waits for messages that are still on their way
LONGEST = 1000  # of a message; some services refuse more


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``kind``: info, success, warning, failure."""

    title: str
    body: str
    kind: str = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The run that messages are about. ``answered`` tells which approvals need nobody."""

    run: str
    cluster: str
    runbook: str
    n_nodes: int
    answered: Callable[[str], bool] = lambda approval: False


def message_of(event: Event, about: About) -> Message | None:
    """What people are told of an event; None for most."""
    match event:
        case RunStarted() | RunResumed():
            word = "started" if isinstance(event, RunStarted) else "goes on"
            body = f"{about.n_nodes} nodes, by {event.owner}\nnext: recover runs"
            return _message(about, f"{about.runbook} {word}", body)
        case GateDecided(decision="shut" | "undecided"):
            body = f"{event.reason}\nnext: recover report {about.run}"
            return _message(about, f"gate {event.decision}: {event.step}", body, "failure")
        case Asked() if not about.answered(event.id):
            command = f"recover resume {about.run} --approve {event.id}"
            body = f"{event.question}\nanswer at its terminal, or when it has ended: {command}"
            return _message(about, f"approval wanted: {event.id}", body, "warning")
        case RunFinished():
            command = event.next_command or f"recover report {about.run}"
            kinds = {"done": "success", "undecided": "warning", "interrupted": "warning"}
            body = f"{event.reason}\nnext: {command}"
            kind = kinds.get(event.outcome, "failure")
            return _message(about, f"{about.runbook} {event.outcome}", body, kind)
        case _:  # all other events: people read reports for them
            return None


def _message(about: About, what: str, body: str, kind: str = "info") -> Message:
    return Message(f"recover {about.cluster}: {what}", f"{body}\nrun {about.run}"[:LONGEST], kind)


Send = Callable[[Message], Iterable[str]]
"""Sends a message everywhere; yields a line for each place that did not take it."""


@dataclass(slots=True)
class Herald:
    """Hears every event and sends from a thread of its own: a slow service never holds a run."""

    about: About
    send: Send | None  # None: there is nobody to tell
    failed: Callable[[str], None]
    _todo: queue.Queue[Message | None] = field(default_factory=queue.Queue)
    _thread: threading.Thread | None = None
    _given_up: threading.Event = field(default_factory=threading.Event)

    def hear(self, event: Event) -> None:
        """Takes in the next event."""
        message = message_of(event, self.about) if self.send else None
        if message is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
            self._thread.start()
        self._todo.put(message)

    def close(self, wait_s: float = FLUSH_S) -> None:
        """Waits for messages that are on their way, but not for ever."""
        if self._thread is None:
            return
        self._todo.put(None)
        self._thread.join(wait_s)
        if self._thread.is_alive():
            self._given_up.set()
            self.failed(f"notify: still not sent after {wait_s:.0f} s, given up")

    def _work(self) -> None:
        while (message := self._todo.get()) is not None:
            for line in self.send(message) if self.send else ():
                if not self._given_up.is_set():
                    self.failed(line)


def sender(variables: Mapping[str, object], secrets: tuple[str, ...] = ()) -> Send | None:
    """How messages are sent, by the inventory's ``notify``; None where it names nobody.

    An entry is an apprise address, or ``env:NAME`` for one in an environment variable.
    """
    named = variables.get(VARIABLE)
    entries = [str(one) for one in (named if isinstance(named, list | tuple) else [named]) if one]
    if not entries:
        return None

    def send(message: Message) -> Iterable[str]:
        clean = Message(_struck(message.title, secrets), _struck(message.body, secrets))
        for number, entry in enumerate(entries, 1):
            said = _sent(entry, Message(clean.title, clean.body, message.kind))
            if said:
                yield f"notify: address {number} of {len(entries)}: {said}"

    return send


def _struck(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return text


def _sent(entry: str, message: Message) -> str:
    """Why a message was not sent; empty when it was. The address is never in it."""
    name = entry.removeprefix("env:")
    address = os.environ.get(name, "") if name != entry else entry
    if not address:
        return f"the environment variable {name} is not set"
    if importlib.util.find_spec("apprise") is None:
        return "apprise is not installed: pip install 'recover[notify]'"
    return _by_apprise(address, message)


def _by_apprise(address: str, message: Message) -> str:
    import apprise

    # It logs addresses, which hold tokens, and without a handler they end on the terminal.
    logger = logging.getLogger("apprise")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    asset: Any = apprise.AppriseAsset(app_id="recover", app_desc="recover", async_mode=False)
    people = apprise.Apprise(asset=asset)
    if not people.add(address):
        return "not an address that apprise knows; see `apprise --help`"
    kind = apprise.NotifyType(message.kind)
    sent = people.notify(title=message.title, body=message.body, notify_type=kind)
    return "" if sent else "the service did not take the message"
