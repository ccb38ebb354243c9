"""Keeping the facts of a golden run, and comparing another run with them.

A baseline is ``STATE/baselines/NAME.json``: readable, and small enough to keep with the inventory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recovery.app.rejudging import judged_again
from recovery.engine.golden import Difference, Facts, differences, kept_facts
from recovery.errors import InputError, StoreError
from recovery.registry import did_you_mean
from recovery.store.runs import all_runs, find_run

FORMAT = 1
PREVIOUS = "previous"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,60}")


@dataclass(frozen=True, slots=True)
class Golden:
    """The facts of one run by node, check and name."""

    run: str
    nodes: Mapping[str, Facts]

    @property
    def n_facts(self) -> int:
        """How many facts are kept."""
        return sum(len(facts) for checks in self.nodes.values() for facts in checks.values())


def read_run(state: Path, run: str) -> Golden:
    """The lasting facts of a run's check steps, read from its evidence by today's parsers.

    Raises:
        InputError: no such run, or it holds no answer that can be read.
    """
    nodes: dict[str, dict[str, Any]] = {}
    for again in judged_again(state, run):
        parsed = again.judged.parsed
        if parsed is None:
            continue
        alike = again.check.alike(parsed) if again.check.alike else {}
        facts = kept_facts(again.check.name, again.judged.facts, alike)
        if facts:
            nodes.setdefault(again.node, {})[again.check.name] = facts
    name = find_run(state, run).run
    if not nodes:
        raise InputError(
            f"run {name} holds no answer of a check", remedy="`recover runs`: take one that checks"
        )
    return Golden(name, nodes)


def save(state: Path, run: str, name: str, *, replace: bool = False) -> tuple[Path, Golden]:
    """Writes the facts of a run as the baseline ``name``; returns its file and the facts.

    Raises:
        InputError: a name that is none, or a baseline that is there already.
        StoreError: it cannot be written.
    """
    path = _path(state, name)
    if path.exists() and not replace:
        raise InputError(f"there is a baseline {name!r} already", remedy="--replace, or a new name")
    golden = read_run(state, run)
    body = {"format": FORMAT, "run": golden.run, "nodes": golden.nodes}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(".part")
        whole.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        whole.replace(path)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}"
        raise StoreError(message, remedy="free space on the controller") from error
    return path, golden


def load(state: Path, name: str) -> Golden:
    """The baseline called ``name``.

    Raises:
        InputError: there is none, or its file is no baseline.
    """
    path = _path(state, name)
    if not path.exists():
        known = names(state)
        raise InputError(
            f"no baseline {name!r}{did_you_mean(name, known)}",
            remedy=f"recover baseline save RUN {name}"
            + (f", or one of: {', '.join(known)}" if known else ""),
        )
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise InputError(f"{path}: format {body['format']!r}", remedy="save it again")
        return Golden(str(body["run"]), dict(body["nodes"]))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(f"{path}: no baseline: {error}", remedy="save it again") from error


def names(state: Path) -> tuple[str, ...]:
    """Names of all baselines."""
    return tuple(sorted(p.stem for p in (state / "baselines").glob("*.json")))


def diff(state: Path, run: str, name: str) -> tuple[Golden, tuple[Difference, ...]]:
    """The golden facts, and what ``run`` says otherwise, worst first.

    ``previous`` as the name stands for the run before.

    Raises:
        InputError: no such run or baseline, or not one node in both.
    """
    now = read_run(state, run)
    golden = read_run(state, _before(state, now.run)) if name == PREVIOUS else load(state, name)
    if not set(golden.nodes) & set(now.nodes):
        raise InputError(
            f"run {now.run} and {name} have not one node in common",
            remedy="is it the baseline of another cluster?",
        )
    return golden, differences(golden.nodes, now.nodes)


def _before(state: Path, run: str) -> str:
    earlier = [folder.run for folder in all_runs(state) if folder.run < run]
    if not earlier:
        raise InputError(f"no run before {run}", remedy="`recover runs` lists them")
    return earlier[-1]


def _path(state: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name of a baseline", remedy="letters, digits, - and _")
    return state / "baselines" / f"{name}.json"
