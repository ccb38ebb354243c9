"""The BMCs that an inventory names: where they are, their passwords, and asking them."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from recovery.engine.secrecy import strike_out_bytes
from recovery.errors import InputError
from recovery.model.bmc import BmcAddress, BmcAsk, BmcKind
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.registry import pick

SHELF = "recovery.bmc"
DEFAULT_ENV = "IPMI_PASSWORD"  # ipmitool's own
_OWN_KEYS = frozenset(
    {"address", "user", "kind", "password_env", "password_file", "password_command"}
)
_SOURCES = ("password_env", "password_file", "password_command")
_NAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")
_WORD = re.compile(r"[^\s\-][^\s{]*")
LIMIT_S = 30


def address_of(node: Node) -> BmcAddress | None:
    """Where the node's BMC is, its password looked up; None when the inventory names none.

    Raises:
        InputError: what the inventory says cannot be used, or the password is nowhere.
    """
    values = _values(node)
    if not values:
        return None
    address = _NAME.sub(node.name, str(values.get("address") or ""))
    user = str(values.get("user", "ADMIN"))
    if not _WORD.fullmatch(address) or not _WORD.fullmatch(user):
        raise InputError(
            f"node {node.name}: bmc cannot be {address!r} with user {user!r}",
            remedy="bmc: {address: 10.1.0.7, user: admin, password_env: BMC_PASSWORD}",
        )
    return BmcAddress(
        node=node.name,
        address=address,
        user=user,
        password=_password(node.name, values),
        options={k: v for k, v in values.items() if k not in _OWN_KEYS},
    )


def _values(node: Node) -> Mapping[str, object]:
    named = node.variables.get("bmc")
    if named in (None, "", {}):
        return {}
    return named if isinstance(named, Mapping) else {"address": str(named)}


def _password(node: str, values: Mapping[str, object]) -> str:
    if "password" in values:
        raise InputError(
            f"node {node}: bmc has its password in the inventory, where everybody can read it",
            remedy=f"name where it is instead: one of {', '.join(_SOURCES)}",
        )
    named = [(key, str(values[key])) for key in _SOURCES if key in values]
    if len(named) > 1:
        raise InputError(f"node {node}: bmc names two passwords", remedy="keep one of them")
    key, where = named[0] if named else (_SOURCES[0], DEFAULT_ENV)
    return _secret(key, where)


@functools.cache
def _secret(key: str, where: str) -> str:
    """A password by its source; a command is asked once for all nodes.

    Raises:
        InputError: it is not there.
    """
    try:
        if key == "password_env":
            found = os.environ[where]
        elif key == "password_file":
            found = Path(where).expanduser().read_text(encoding="utf-8")
        else:
            found = _of_command(where)
    except (KeyError, OSError, ValueError, subprocess.SubprocessError) as error:
        raise InputError(
            f"no password for the BMCs: {key} {where!r}: {_reason(error)}",
            remedy=f"export {where}=..." if key == "password_env" else "try it by hand",
        ) from error
    password = found.rstrip("\r\n")
    if not password:
        raise InputError(f"the BMCs' password is empty: {key} {where!r}", remedy="correct it")
    return password


def _of_command(line: str) -> str:
    return subprocess.run(
        shlex.split(line),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=LIMIT_S,
        check=True,
    ).stdout


def _reason(error: Exception) -> str:
    """Why, without what a command printed: that may be a password."""
    if isinstance(error, KeyError):
        return "it is not set"
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    return getattr(error, "strerror", None) or type(error).__name__


def ask(node: Node, question: BmcAsk, limit_s: float) -> Output | None:
    """What a node's BMC says; None when the inventory names no BMC for it.

    What is wrong with our own words about the BMC is an output that never started, too: one node
    with a wrong line must not stop what is done on the others.
    """
    try:
        at = address_of(node)
        if at is None:
            return None
        kind = pick(SHELF, BmcKind, str(_values(node).get("kind", "ipmi")))
    except InputError as error:
        return Output(Ending.NEVER_STARTED, reason=f"{error.message} ({error.remedy})")
    return without(kind.ask(at, question, limit_s), at.password)


def without(output: Output, password: str) -> Output:
    """The output without the password, should a BMC or a tool say it again."""
    secrets = (password,) if password else ()
    return replace(
        output,
        stdout=strike_out_bytes(output.stdout, secrets),
        stderr=strike_out_bytes(output.stderr, secrets),
    )


def check(nodes: Iterable[Node]) -> None:
    """Reads what the inventory says about these nodes' BMCs, before any of them is asked.

    Raises:
        InputError: what is wrong with it; a node without a BMC.
    """
    missing = [node.name for node in nodes if address_of(node) is None]
    if missing:
        raise InputError(
            f"no BMC is known for {len(missing)} nodes, such as {missing[0]}",
            remedy="bmc: {address: ..., user: ..., password_env: ...} in the inventory",
        )
