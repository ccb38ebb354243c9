"""Secrets and personal data struck out of a text: tokens, people, other hosts and addresses.

The same name becomes the same word everywhere (``user-1``, ``host-2``), so that a reader still sees
what belongs together. Serials, UUIDs, PCI addresses, MAC addresses and GUIDs stay: a vendor needs
them. Where it is not sure that something is private, it is struck.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SECRET, KEY = "[secret]", "[private key]"
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----.*?(?:-----END (?:[A-Z]+ )*PRIVATE KEY-----|\Z)", re.S
)
_NAMED = re.compile(
    r"""(?ix)( (?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key
    |credential|license[_-]?key)[\w-]* ["']? \s*[:=]\s* (?:bearer\s+|basic\s+)? )
    ( "[^"\n]*" | '[^'\n]*' | [^\s"',;&]+ )"""
)
_AS_OPTION = re.compile(r"(?i)(--?(?:password|passwd|token|secret|api-key)[ =])(\S+)")
_BEARER = re.compile(r"(?i)(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})")
_SHAPES = re.compile(
    r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{8,}"
    r"|hf_\w{20,}|sk-[\w-]{20,}|nvapi-[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)"
)
_LOGIN_IN_URL = re.compile(r"(\w+://)[^/\s:@]+(?::[^/\s@]*)?@")
# `getty@tty1.service` is a unit of systemd, no mail address and no login.
_UNIT = r"(?![\w.@:\\-]*\.(?:service|timer|socket|mount|slice|target|scope|path|device|swap)\b)"
_MAIL = re.compile(rf"\b{_UNIT}[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{{2,}}\b")
_HOME = re.compile(r"(/(?:home|Users|users)/)([\w.-]+)")
_NAME = r"([A-Za-z_][\w.-]{1,31})"
# Only where a log surely names a person: "by" or "for" alone would strike out every second word.
_PERSON = re.compile(
    "|".join(
        (
            rf"\b(?:Accepted|Failed) \S+ for (?:invalid user )?{_NAME} from\b",
            rf"\b[Ss]ession (?:opened|closed) for user {_NAME}",
            rf"\b[Ss]ession \w+ of [Uu]ser {_NAME}",
            rf"\b[Ii]nvalid user {_NAME} from\b",
            rf"\b(?:ruser|logname|user|User|username|USER|LOGNAME|SUDO_USER)={_NAME}",
            rf"\bsudo(?:\[\d+\])?:\s+{_NAME} :",
            rf"\b(?:uid|gid|auid)=\d+\({_NAME}\)",
            rf"\bCRON\[\d+\]: \({_NAME}\)",
        )
    )
)
_LOGIN = re.compile(rf"\b{_UNIT}([a-z_][\w.-]{{1,31}})@([A-Za-z][\w-]*)(?![\w.@]*\.)")
_V4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_V6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_QUALIFIED = re.compile(r"\b([A-Za-z][\w-]*)\.([\w-]+\.[\w.-]*\w)")
_TOKEN = re.compile(r"[A-Za-z0-9_](?:[\w.-]*\w)?")
_PART = re.compile(r"[^._-]+")
_BEGINS = 2
_CLOUD = re.compile(r"(?i)ip-\d{1,3}(?:-\d{1,3}){3}")  # a host that is called by its address
# Accounts of systems and of vendors' images, not of people.
_NOBODY = frozenset(
    (
        *(
            "root",
            "nobody",
            "daemon",
            "bin",
            "sys",
            "sync",
            "games",
            "man",
            "mail",
            "news",
            "proxy",
        ),
        *("backup", "list", "irc", "sshd", "systemd", "messagebus", "syslog", "ntp", "chrony"),
        *("munge", "slurm", "postgres", "nvidia", "nvidia-persistenced", "dcgm", "polkitd", "dbus"),
        *("admin", "administrator", "ubuntu", "debian", "ec2-user", "centos", "rocky", "user"),
        *("users", "test", "guest", "operator", "service", "gdm", "lightdm", "www-data", "git"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Private:
    """What is known to be private before a text is read."""

    node: str
    others: tuple[str, ...] = ()  # names of other nodes and hosts
    own_addresses: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(slots=True)
class Striker:
    """Strikes out text after text; what stood in one is known in the next."""

    private: Private
    counts: Counter[str] = field(default_factory=Counter)
    _names: dict[str, str] = field(default_factory=dict)  # lower case -> its word
    _begins: set[str] = field(default_factory=set)  # how the names begin, to look closer there
    _domains: set[str] = field(default_factory=set)
    _addresses: dict[str, str] = field(default_factory=dict)
    _numbers: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name in self.private.others:
            self._know(name, "host")
        for name in self.private.users:
            if name.lower() not in _NOBODY:
                self._know(name, "user")

    def strike(self, text: str) -> str:
        """The text without what is private; what was struck is counted by kind."""
        self._learn(text)
        for secret in self.private.secrets:
            text = self._swap(text, re.compile(re.escape(secret)), "secrets", lambda m: SECRET)
        text = self._swap(text, _PRIVATE_KEY, "secrets", lambda m: KEY)
        for pattern in (_NAMED, _AS_OPTION, _BEARER):
            text = self._swap(text, pattern, "secrets", lambda m: f"{m[1]}{SECRET}")
        text = self._swap(text, _SHAPES, "secrets", lambda m: SECRET)
        text = self._swap(text, _LOGIN_IN_URL, "secrets", lambda m: f"{m[1]}{SECRET}@")
        text = self._swap(text, _MAIL, "mail addresses", lambda m: "[mail]")
        text = _V4.sub(self._address, text)
        text = _V6.sub(self._address, text)
        return _TOKEN.sub(self._token, text)

    def strike_values(self, value: Any) -> Any:
        """The same for the texts in JSON-able values; keys are ours and stay."""
        if isinstance(value, str):
            return self.strike(value)
        if isinstance(value, Mapping):
            return {key: self.strike_values(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.strike_values(inner) for inner in value]
        return value

    def _swap(
        self, text: str, pattern: re.Pattern[str], kind: str, word: Callable[[re.Match[str]], str]
    ) -> str:
        def replaced(match: re.Match[str]) -> str:
            new = word(match)
            self.counts[kind] += new != match[0]
            return new

        return pattern.sub(replaced, text)

    def _learn(self, text: str) -> None:
        """Names of people and domains in this text, wherever else they stand."""
        people = (m[m.lastindex or 0] for m in _PERSON.finditer(text))
        homes = (m[2] for m in _HOME.finditer(text))
        logins = []
        for login in _LOGIN.finditer(text):
            logins.append(login[1])
            if login[2].lower() not in (self.private.node.lower(), "localhost"):
                self._know(login[2], "host")
        for name in (*homes, *people, *logins):
            plain = name.rstrip(".-")
            if plain.lower() not in _NOBODY and len(plain) > 1 and not self._is_host(plain):
                self._know(plain, "user")
        for match in _QUALIFIED.finditer(text):
            if self._is_host(match[1]):
                self._domains.add(match[2].lower())

    def _is_host(self, name: str) -> bool:
        known = self._names.get(name.lower(), "")
        return name.lower() == self.private.node.lower() or known.startswith("host-")

    def _know(self, name: str, kind: str) -> None:
        if name.lower() not in self._names:
            self._numbers[kind] += 1
            self._names[name.lower()] = f"{kind}-{self._numbers[kind]}"
            self._begins.add(name[:_BEGINS].lower())

    def _token(self, match: re.Match[str]) -> str:
        text = match[0]
        word = self._names.get(text.lower())
        if word is None and _CLOUD.fullmatch(text) and not self._is_host(text):
            self._know(text, "host")
            word = self._names[text.lower()]
        first, dot, domain = text.partition(".")
        if word is None and dot and domain.lower() in self._domains:
            if self._is_host(first) and first.lower() not in self._names:
                self.counts["domains"] += 1
                return first  # the node itself, without where it stands
            self._know(first, "host")
            word = self._names[first.lower()]
        if word is None:
            return self._inside(text)
        return self._counted(word)

    def _counted(self, word: str) -> str:
        self.counts["user names" if word.startswith("user-") else "other hosts"] += 1
        return word

    def _inside(self, text: str) -> str:
        """The token with names in it replaced: ``node01-ib0``, ``dmesg_node01``."""
        if text.isalnum():  # one part alone: it would have been found as it is
            return text
        parts = list(_PART.finditer(text))
        for i, first in enumerate(parts):
            if first[0][:_BEGINS].lower() not in self._begins:
                continue
            for last in reversed(parts[i:]):
                word = self._names.get(text[first.start() : last.end()].lower())
                if word is not None:
                    rest = self._inside(text[last.end() :])
                    return f"{text[: first.start()]}{self._counted(word)}{rest}"
        return text

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        plain = str(address)
        is_time = ":" in match[0] and "::" not in match[0] and match[0].count(":") < 7
        harmless = address.is_loopback or address.is_unspecified or address.is_link_local
        if is_time or harmless or match[0] == "::" or plain in self.private.own_addresses:
            return match[0]
        if address.is_multicast or plain.startswith("255."):
            return match[0]
        self.counts["addresses"] += 1
        if plain not in self._addresses:
            self._addresses[plain] = f"address-{len(self._addresses) + 1}"
        return self._addresses[plain]


def known_users(words: Iterable[str]) -> tuple[str, ...]:
    """User names in words like ``ada@head1 (pid 4711)`` or ``ada``; each once."""
    names = (word.partition("@")[0].strip() for word in words)
    return tuple(dict.fromkeys(name for name in names if name))
