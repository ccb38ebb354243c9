"""Where a node is and how to log in there: inventory variables first, then ``ssh -G``.

OpenSSH itself reads its configuration (Include, Match, ProxyJump...); we only read what it says.
"""

from __future__ import annotations

import getpass
import shlex
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from recovery.model.node import Node
from recovery.transports.ssh.trust import Policy, Trust

DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
DEFAULT_FILE = "~/.ssh/known_hosts"
CONNECT_S = 10.0
DEEPEST = 8  # jumps before jumps; `Host *` with a ProxyJump of its own leads in a circle


class ConfigError(Exception):
    """A node cannot be reached as it is configured; the text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """One place to log in to. ``jumps`` are logged in to before it, in this order.

    ``known_as`` is the name of its host key, where that is not its address.
    """

    host: str
    port: int
    user: str
    keys: tuple[str, ...] = DEFAULT_KEYS
    only_these_keys: bool = False
    agent: str = ""  # a socket; empty: SSH_AUTH_SOCK; "none": no agent
    trust: Trust = field(default_factory=lambda: Trust(Policy.STRICT, DEFAULT_FILE))
    known_as: str = ""
    connect_s: float = CONNECT_S
    jumps: tuple[Target, ...] = ()
    proxy_command: str = ""

    @property
    def where(self) -> str:
        """``user@host:port``, for people and as the name of a shared connection."""
        via = "".join(f"{jump.where}>" for jump in self.jumps)
        return f"{via}{self.user}@{self.host}:{self.port}"


class SshConfig:
    """Answers of ``ssh -G``, asked once for each name. Thread-safe."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, ...], Mapping[str, tuple[str, ...]]] = {}
        self._ssh = shutil.which("ssh")
        self._lock = threading.Lock()

    def target(self, node: Node) -> Target:
        """Where the node is.

        Raises:
            ConfigError: the configuration cannot be read, or asks for what we cannot do.
        """
        variables = node.variables
        arguments = _arguments(variables)
        target, chain = self._resolve(node.address or node.name, arguments)
        target = replace(
            target,
            port=node.port or target.port,
            user=node.user or target.user,
            trust=_trust(variables, target.trust),
            known_as=str(variables.get("host_key_alias", target.known_as)),
        )
        key = variables.get("ansible_ssh_private_key_file") or variables.get(
            "ansible_private_key_file"
        )
        if key:
            target = replace(target, keys=(str(key), *target.keys))
            only = str(variables.get("identities_only", "")).lower() in ("true", "yes", "1")
            target = replace(target, only_these_keys=target.only_these_keys or only)
            if only:
                target = replace(target, keys=(str(key),))
        chain = str(variables.get("bastion") or chain)
        if chain:
            jumps = self._jumps(chain, target, arguments[: 2 if variables.get("ssh_config") else 0])
            target = replace(target, jumps=jumps, proxy_command="")
        return target

    def _resolve(self, name: str, arguments: tuple[str, ...]) -> tuple[Target, str]:
        """What the configuration says of a name, and the chain of hosts before it."""
        said = self._ask(name, arguments)
        target = Target(name, 22, getpass.getuser())
        if not said:
            return target, ""
        jump = _one(said, "proxyjump")
        return _read(said, target), "" if jump == "none" else jump

    def _jumps(
        self, chain: str, last: Target, arguments: tuple[str, ...], depth: int = 1
    ) -> tuple[Target, ...]:
        """The hops of a chain; ``arguments`` name the configuration file where it is not ours."""
        if depth > DEEPEST:
            raise ConfigError(f"the jumps to {last.host} lead in a circle: {chain}")
        jumps: tuple[Target, ...] = ()
        for word in chain.split(","):
            user, _, place = word.strip().removeprefix("ssh://").rpartition("@")
            host, port = _host_port(place)
            hop, before = self._resolve(host, arguments)
            # A bastion is logged in to like the nodes, unless the configuration says else.
            keys = hop.keys if hop.keys != DEFAULT_KEYS else last.keys
            hop = replace(hop, user=user or hop.user, port=port or hop.port, keys=keys)
            hop = replace(hop, trust=last.trust, only_these_keys=last.only_these_keys)
            # Hops of a hop come before it, unless the chain already leads there.
            if before and not jumps:
                jumps = self._jumps(before, hop, arguments, depth + 1)
            jumps = (replace(hop, jumps=jumps),)
        return jumps

    def _ask(self, name: str, arguments: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
        if self._ssh is None or not (arguments or _there_is_a_configuration()):
            return {}
        asked = (*arguments, "--", name)
        with self._lock:
            known = self._answers.get(asked)
        if known is None:
            known = self._run(asked)
            with self._lock:
                self._answers[asked] = known
        return known

    def _run(self, asked: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
        try:
            done = subprocess.run(
                ["ssh", "-G", *asked],
                capture_output=True, text=True, errors="replace", timeout=10, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"ssh -G {asked[-1]}: {error}") from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no word why"])[-1]
            raise ConfigError(f"ssh -G {asked[-1]} failed: {last[:200]}")
        said: dict[str, tuple[str, ...]] = {}
        for line in done.stdout.splitlines():
            word, _, value = line.partition(" ")
            said[word] = (*said.get(word, ()), value)
        return said


def _there_is_a_configuration() -> bool:
    own = Path("~/.ssh/config").expanduser()
    return own.is_file() or any(Path("/etc/ssh/ssh_config.d").glob("*.conf"))


def _arguments(variables: Mapping[str, object]) -> tuple[str, ...]:
    words: list[str] = []
    if variables.get("ssh_config"):
        words += ["-F", str(variables["ssh_config"])]
    for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words += shlex.split(str(variables.get(name, "")))
    return tuple(words)


def _read(said: Mapping[str, tuple[str, ...]], plain: Target) -> Target:
    files = _one(said, "userknownhostsfile").split()
    checking = _one(said, "stricthostkeychecking")
    new = checking in ("accept-new", "no", "off", "false")
    command = _one(said, "proxycommand")
    seconds = _one(said, "connecttimeout")
    return replace(
        plain,
        host=_one(said, "hostname") or plain.host,
        port=int(_one(said, "port") or plain.port),
        user=_one(said, "user") or plain.user,
        keys=_keys(said.get("identityfile", ()), plain.keys),
        only_these_keys=_one(said, "identitiesonly") == "yes",
        agent=_one(said, "identityagent").removeprefix("SSH_AUTH_SOCK"),
        trust=Trust(
            Policy.ACCEPT_NEW if new else Policy.STRICT, files[0] if files else DEFAULT_FILE
        ),
        known_as=_one(said, "hostkeyalias"),
        connect_s=float(seconds) if seconds.isdigit() and seconds != "0" else plain.connect_s,
        proxy_command=command if command != "none" else "",
    )


def _keys(named: tuple[str, ...], usual: tuple[str, ...]) -> tuple[str, ...]:
    """The key files that the configuration names; ssh lists all its usual ones where it names none.

    Source: ssh_config(5), IdentityFile.
    """
    names_none = len(named) > 3 and all(file.startswith("~/.ssh/id_") for file in named)
    return usual if names_none or not named else named


def _one(said: Mapping[str, tuple[str, ...]], word: str) -> str:
    return said.get(word, ("",))[0].strip()


def _trust(variables: Mapping[str, object], otherwise: Trust) -> Trust:
    word = str(variables.get("host_keys", otherwise.policy.value))
    try:
        policy = Policy(word)
    except ValueError:
        choices = ", ".join(p.value for p in Policy)
        raise ConfigError(f"host_keys is {word!r}, not one of: {choices}") from None
    if policy is Policy.FILE and "known_hosts" not in variables:
        raise ConfigError("host_keys is 'file', and no known_hosts variable names it")
    return Trust(policy, str(variables.get("known_hosts", otherwise.file)))


def _host_port(place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        return host, int(port.lstrip(":") or 0)
    if place.count(":") == 1:
        host, _, port = place.partition(":")
        return host, int(port) if port.isdigit() else 0
    return place, 0
