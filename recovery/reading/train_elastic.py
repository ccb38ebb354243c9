"""The block that torchrun's agent prints when a worker of its own node ends badly.

Its "root cause" is the first that this agent saw, on its node: never trusted alone.

Source: torch/distributed/elastic/multiprocessing/errors/__init__.py, 1.9 to 2.7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
            9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}  # fmt: skip
_HEAD = re.compile(r"Root Cause \(first observed failure\):")
_FAILURES = re.compile(r"\s*(?:Other )?Failures:")
_FIELD = re.compile(r"\s*(?P<key>time|host|rank|exitcode|error_file|traceback) *: (?P<value>.*)")
_ENTRY = re.compile(r"\s*\[\d+\]:")
_AGENT = re.compile(
    r"failed \(exitcode: (?P<code>-?\d{1,9})\) local_rank: (?P<local>\d{1,9}) "
    r"\(pid: (?P<pid>\d{1,9})\)"
)
_RULE = re.compile(r"\s*[=-]{20,}")


@dataclass(frozen=True, slots=True)
class ElasticFailure:
    """What one agent calls the root cause, and how many other failures it lists."""

    rank: int | None = None
    local_rank: int | None = None
    host: str = ""
    exitcode: int | None = None
    pid: int | None = None
    n_others: int = 0

    @property
    def signal(self) -> str | None:
        """The name of the signal behind a negative exit code."""
        return _SIGNALS.get(-(self.exitcode or 0))

    def facts(self) -> dict[str, Any]:
        """The known values by name."""
        found = {
            "rank": self.rank,
            "local_rank": self.local_rank,
            "host": self.host or None,
            "exitcode": self.exitcode,
            "signal": self.signal,
            "pid": self.pid,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True)
class ElasticReader:
    """Collects the fields of the block line by line."""

    values: dict[str, str] = field(default_factory=dict)
    n_others: int = 0
    part: str = ""
    seen: bool = False
    agent: ElasticFailure | None = None  # from the agent's own line, where no block follows

    def take(self, text: str) -> bool:
        """Takes one line; claims it when it belongs to the block."""
        if self.agent is None and (line := _AGENT.search(text)):
            self.agent = ElasticFailure(
                local_rank=int(line["local"]), exitcode=int(line["code"]), pid=int(line["pid"])
            )
        if _HEAD.search(text):
            self.part, self.seen = "root" if not self.values else "other-agent", True
            return True
        if _FAILURES.match(text):
            self.part = "others"
            return True
        if not self.part:
            return False
        return self.inside(text)

    def inside(self, text: str) -> bool:
        """Takes one line of the block."""
        if _ENTRY.match(text):
            self.n_others += self.part == "others"
            return True
        match = _FIELD.match(text)
        if match is None:
            rule = bool(_RULE.match(text))
            if self.part == "root" and rule:
                self.part = ""
            return rule or "<NO_OTHER_FAILURES>" in text
        if self.part == "root":
            self.values.setdefault(match["key"], match["value"].strip())
        return True

    def result(self) -> ElasticFailure | None:
        """The failure, when a block was in the log."""
        if not self.seen:
            return self.agent
        rank = re.match(r"(\d{1,9})(?: \(local_rank: (\d{1,9})\))?", self.values.get("rank", ""))
        ended = re.match(r"(-?\d{1,9})(?: +\(pid: (\d{1,9})\))?", self.values.get("exitcode", ""))
        return ElasticFailure(
            rank=int(rank[1]) if rank else None,
            local_rank=int(rank[2]) if rank and rank[2] else None,
            host=self.values.get("host", ""),
            exitcode=int(ended[1]) if ended else None,
            pid=int(ended[2]) if ended and ended[2] else None,
            n_others=self.n_others,
        )
