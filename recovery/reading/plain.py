"""A tool's own lines, freed from what terminals, launchers and log collectors put around them."""

from __future__ import annotations

import re

from recovery.errors import ParseError

# CSI sequences, OSC up to its end, and two-byte escapes; never more than one line of text.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_PREFIXES = (
    # mpirun --tag-output, also with --timestamp-output before it and Open MPI 5's host in it
    re.compile(
        r"^(?:[^\[\n]{0,40})?(?P<who>\[(?:[\w.@-]{1,80}[@,])?\d+,\d+\](?:\[[^\]\n]{1,80}\])?)"
        r"<std(?:out|err)>:"
    ),
    # syslog and journalctl, classic and ISO time
    re.compile(
        rf"^(?:(?:{_MONTHS}) [ \d]\d \d\d:\d\d:\d\d|\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{{0,16}})"
        r" (?P<who>[\w.:-]{1,80}) [\w./@-]{1,80}(?:\[\d+\])?:"
    ),
    # kubectl logs --timestamps, docker logs -t
    re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)(?P<who>)"),
    # srun --label
    re.compile(r"^ {0,4}(?P<who>\d{1,5}):"),
    # kubectl logs --prefix
    re.compile(r"^\[(?P<who>(?:pod/)?[\w.-]{1,80}/[\w.-]{1,80})\](?= )"),
    # pdsh, clush: only when every line bears one
    re.compile(r"^(?P<who>\[?[A-Za-z][\w./-]{0,80}\]?):(?= |$)"),
)
# clush -b and dshbak put the node's name between rules, Ansible its own line, before the answer.
_HEADS = (
    re.compile(r"^-{3,}\n(?P<who>[A-Za-z][\w.,\[\]-]{0,200})(?: \(\d+\))?\n-{3,}\n", re.MULTILINE),
    re.compile(r"^(?P<who>[\w.-]{1,80}) \| [A-Z]+!?(?: \| rc=-?\d+ >>| => \{)?\n", re.MULTILINE),
)
# Parts of one node that tools number as people number nodes.
_PARTS = re.compile(r"(?:GPU|NIC|CPU|NUMA|Link|rank|Rank|mlx\d?|nvme|sd|eth|ib|dev)[-_]?\d")
_WORDS = frozenset({"Error", "Warning", "WARNING", "ERROR", "Legend", "NVML"})
_LONGEST = 1500
MAX_CHARACTERS = 32 * 1024 * 1024


def plain_lines(text: str) -> tuple[str, ...]:
    """The lines without escapes, carriage returns, byte order mark and launcher prefixes.

    Raises:
        ParseError: lines of several ranks or nodes are mixed, or the text is absurdly long.
    """
    if len(text) > MAX_CHARACTERS:
        raise ParseError(
            f"{len(text)} characters are not the output of one command",
            remedy="capture the command's output alone",
        )
    clean = _CONTROL.sub("", _ESCAPE.sub("", text.lstrip("\ufeff").replace("\r\n", "\n")))
    lines = _without_head(clean).split("\n")
    if "\r" in clean:
        lines = [_last_overwrite(line) for line in lines]
    return tuple(_without_prefix(lines))


def _without_head(text: str) -> str:
    """The text behind the line or lines in which a fan-out tool names its node."""
    start = text.lstrip("\n")
    for pattern in _HEADS:
        head = pattern.match(start)
        if head is None:
            continue
        others = {match["who"] for match in pattern.finditer(start)}
        if len(others) > 1:
            raise _mixed(len(others))
        return start[head.end() :]
    return text


def _mixed(n_nodes: int) -> ParseError:
    return ParseError(
        f"the output of {n_nodes} ranks or nodes is mixed in one text",
        remedy="split it by node and judge the output of each node by itself",
    )


def short_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines that a table can have; a longer one is something else, and costly to match."""
    return tuple(line for line in lines if len(line) <= _LONGEST)


def ends_with_newline(text: str) -> bool:
    """Claims that the last line is whole: cut texts rarely end at a line's end."""
    return text.rstrip("\r").endswith("\n") or _ESCAPE.sub("", text).rstrip("\r").endswith("\n")


def _last_overwrite(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _without_prefix(lines: list[str]) -> list[str]:
    full = [line for line in lines if line.strip()]
    for pattern in _PREFIXES:
        if not full or pattern.match(full[0]) is None:
            continue
        found = [pattern.match(line) for line in full]
        if any(match is None for match in found):
            continue
        who = {match["who"] for match in found if match is not None}
        if pattern is _PREFIXES[-1] and not _are_hosts(who, len(full)):
            continue
        if len(who) > 1:
            raise _mixed(len(who))
        bare = [pattern.sub("", line, count=1) for line in lines]
        # The blank behind a prefix is the prefix's own where all lines have it.
        n_blanks = int(all(line[:1] in ("", " ") for line in bare))
        return [line[n_blanks:] for line in bare]
    return lines


def _are_hosts(who: set[str], n_lines: int) -> bool:
    """One name before all lines, or a few that differ in their numbers only: nodes of a cluster."""
    if len(who) == 1:
        return n_lines > 1 and not who & _WORDS
    alike = {re.sub(r"\d+", "#", name) for name in who}
    numbered = len(alike) == 1 and "#" in next(iter(alike))
    return numbered and n_lines >= 2 * len(who) and not any(map(_PARTS.match, who))
