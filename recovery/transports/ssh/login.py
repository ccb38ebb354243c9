"""How we log in: keys named by the inventory first, then the agent, then the usual files.

No password is ever asked for. One key object for each file, shared by all connections.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, InMemoryPrivateKey

from recovery.transports.ssh.config import Target


class Keys:
    """Private keys by file, read once. Thread-safe; ``notes`` says why a file was left out."""

    def __init__(self) -> None:
        self._keys: dict[str, paramiko.PKey | None] = {}
        self._lock = threading.Lock()
        self.notes: dict[str, str] = {}

    def get(self, file: str) -> paramiko.PKey | None:
        """The key in a file; None when there is none that we can use."""
        with self._lock:
            if file not in self._keys:
                self._keys[file] = self._load(file)
            return self._keys[file]

    def _load(self, file: str) -> paramiko.PKey | None:
        path = Path(file).expanduser()
        if not path.is_file():
            return None
        try:
            return paramiko.PKey.from_path(path)
        except (paramiko.PasswordRequiredException, TypeError):
            self.notes[file] = f"{file} has a passphrase: ssh-add {file}"
        except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            self.notes[file] = f"{file}: {str(error)[:120] or type(error).__name__}"
        return None


class Agent(paramiko.agent.AgentSSH):
    """Keys of the agent at a socket, or of the usual one; none where it does not answer.

    One for each connection: an agent's conversation cannot be shared by threads.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        path = os.path.expandvars(place) or os.environ.get("SSH_AUTH_SOCK", "")
        if not path or place == "none":
            return
        conversation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        conversation.settimeout(10)
        try:
            conversation.connect(str(Path(path).expanduser()))
            self._connect(conversation)  # type: ignore[attr-defined]  # not in the stubs
        except (OSError, paramiko.SSHException):
            conversation.close()

    def close(self) -> None:
        """Ends the conversation."""
        self._close()  # type: ignore[attr-defined]  # not in the stubs


class Login(AuthStrategy):
    """Tries keys in order. ``tried`` names what was offered, for the finding."""

    def __init__(self, target: Target, keys: Keys) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())
        self._target = target
        self._keys = keys
        self.tried: list[str] = []
        self._agent: Agent | None = None

    def get_sources(self) -> Iterator[AuthSource]:
        """Yields the keys: the named ones, the agent's, the default files."""
        agent_keys = self._agent_keys()
        offered: set[bytes] = set()
        for label, key in [*self._named(agent_keys), *self._from_agent(agent_keys)]:
            if key.asbytes() not in offered or key.public_blob is not None:
                offered.add(key.asbytes())
                self.tried.append(label)
                yield InMemoryPrivateKey(self._target.user, key)

    def authenticate(self, transport: paramiko.Transport) -> Any:
        """Logs in, or raises what the last source met."""
        try:
            return super().authenticate(transport)
        finally:
            if self._agent is not None:
                self._agent.close()

    def explain(self) -> str:
        """What was offered and what could not be, for people."""
        offered = ", ".join(self.tried) or "no key at all"
        notes = [self._keys.notes[f] for f in self._target.keys if f in self._keys.notes]
        return "; ".join([f"offered {offered}", *notes])

    def _agent_keys(self) -> dict[bytes, paramiko.PKey]:
        self._agent = Agent(self._target.agent)
        return {key.asbytes(): key for key in self._agent.get_keys()}

    def _named(self, agent_keys: dict[bytes, paramiko.PKey]) -> Iterator[tuple[str, paramiko.PKey]]:
        for file in self._target.keys:
            key = self._keys.get(file)
            if key is None and (blob := _public_blob(file)) in agent_keys:
                key = agent_keys[blob]  # the file has a passphrase or is elsewhere: the agent signs
            if key is not None:
                yield file, key

    def _from_agent(
        self, agent_keys: dict[bytes, paramiko.PKey]
    ) -> Iterator[tuple[str, paramiko.PKey]]:
        if not self._target.only_these_keys:
            for key in agent_keys.values():
                yield "a key of the agent", key


def _public_blob(file: str) -> bytes:
    path = Path(f"{file}.pub").expanduser()
    try:
        words = path.read_text().split() if path.is_file() else []
        return paramiko.pkey.PublicBlob.from_string(" ".join(words[:2])).key_blob if words else b""
    except (OSError, ValueError):
        return b""
