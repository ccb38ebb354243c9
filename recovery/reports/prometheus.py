"""`prometheus`: a run in Prometheus' text format, for the textfile collector or a push gateway.

The names and labels are stable. ``cluster`` and ``runbook`` are on every sample; the run's id is
only on ``recover_run_info``, so that a new run does not make new time series of all others.

Source: the exposition format 0.0.4 of Prometheus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recovery.engine.history import RunStory, StepStory, story_of
from recovery.engine.summary import folded_findings
from recovery.model.events import Event
from recovery.model.ports import Evidence, Report
from recovery.model.verdict import Level

GB = 1e9


@dataclass(frozen=True, slots=True)
class _Metric:
    """One gauge: its name, what it means, its samples (labels, value)."""

    name: str
    about: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)


def _render(
    events: Sequence[Event], evidence: Evidence, fold: Callable[[Iterable[str]], str]
) -> str:
    story = story_of(events)
    if story.started is None:
        return "# the run has not started\n"
    common = {"cluster": story.started.cluster, "runbook": story.started.runbook}
    metrics = (*_of_run(story), *_of_steps(story), *_of_nodes(story), *_of_mesh(story))
    lines = [line for metric in metrics for line in _lines(metric, common)]
    return "\n".join(lines) + "\n"


def _lines(metric: _Metric, common: Mapping[str, str]) -> Iterator[str]:
    if not metric.samples:
        return
    yield f"# HELP {metric.name} {metric.about}"
    yield f"# TYPE {metric.name} gauge"
    for labels, value in metric.samples:
        pairs = ",".join(f'{k}="{_escaped(v)}"' for k, v in {**common, **labels}.items())
        yield f"{metric.name}{{{pairs}}} {value:.15g}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _of_run(story: RunStory) -> Iterator[_Metric]:
    started, end = story.started, story.finished
    if started is None:
        return
    outcome = end.outcome if end else "unfinished"
    labels = {"run": started.run, "version": started.version, "outcome": outcome}
    yield _Metric("recover_run_info", "The newest run.", [(labels, 1)])
    yield _one("recover_run_started_timestamp_seconds", "When it started.", started.at)
    if end is not None:
        yield _one("recover_run_finished_timestamp_seconds", "When it ended.", end.at)
        yield _one("recover_run_duration_seconds", "How long it took.", end.at - started.at)
        about = "0 done, 1 a gate shut, 3 undecided, 130 and 143 interrupted."
        yield _one("recover_run_exit_code", about, end.exit_code)


def _one(name: str, about: str, value: float) -> _Metric:
    return _Metric(name, about, [({}, value)])


def _of_steps(story: RunStory) -> Iterator[_Metric]:
    durations = _Metric("recover_step_duration_seconds", "How long a step took.")
    levels = _Metric("recover_step_nodes", "Nodes of a step by what it concluded.")
    for step in story.steps.values():
        labels = {"step": step.id, "verb": step.verb}
        if step.finished_at is not None:
            durations.samples.append((labels, step.finished_at - step.started_at))
        counted = Counter(r.verdict.level for r in step.results.values())
        levels.samples.extend(({**labels, "level": v.word}, counted[v]) for v in Level)
    yield durations
    yield levels


def _of_nodes(story: RunStory) -> Iterator[_Metric]:
    worst = _worst_levels(story)
    aside = set(story.quarantined)
    states = Counter("set_aside" if n in aside else v.word for n, v in worst.items())
    names = ("pass", "warn", "unknown", "fail", "set_aside")
    yield _Metric(
        "recover_run_nodes",
        "Nodes by how they stood at the end.",
        [({"state": name}, states[name]) for name in names],
    )
    yield _Metric(
        "recover_node_level",
        "Worst answer of a node: 0 pass, 1 warn, 2 unknown, 3 fail.",
        [({"node": node}, int(level)) for node, level in sorted(worst.items())],
    )
    yield _Metric(
        "recover_node_set_aside",
        "1 for a node that the run set aside.",
        [({"node": node}, node in aside) for node in sorted(worst)],
    )
    yield _findings(story)


def _worst_levels(story: RunStory) -> dict[str, Level]:
    """Every node of the run; one that nobody heard of is unknown."""
    planned = story.started.nodes if story.started else ()
    found: dict[str, list[Level]] = {name: [] for name in planned}
    for step in story.steps.values():
        for node, result in step.results.items() if not _on_controller(step) else ():
            found.setdefault(node, []).append(result.verdict.level)
    return {node: max(levels, default=Level.UNKNOWN) for node, levels in found.items()}


def _on_controller(step: StepStory) -> bool:
    return set(step.results) == {"controller"}


def _findings(story: RunStory) -> _Metric:
    nodes: dict[tuple[str, str], set[str]] = {}
    for one in folded_findings(story):
        nodes.setdefault((one.code or one.step, one.level.word), set()).update(one.nodes)
    return _Metric(
        "recover_finding_nodes",
        "Nodes with a finding, by its code.",
        [({"code": code, "level": level}, len(who)) for (code, level), who in nodes.items()],
    )


def _of_mesh(story: RunStory) -> Iterator[_Metric]:
    """The best bus bandwidth that a node took part in, at each level of the ladder."""
    best: dict[tuple[str, str], float] = {}
    for step in story.steps.values():
        for note in step.notes if step.verb == "mesh" else ():
            speed, level = note.facts.get("busbw_gb_per_s"), str(note.facts.get("level", ""))
            if not isinstance(speed, int | float):
                continue
            for node in note.facts.get("group", ()):
                key = (level, str(node))
                best[key] = max(best.get(key, 0.0), speed)
    yield _Metric(
        "recover_node_mesh_busbw_bytes_per_second",
        "Best bus bandwidth of a node in the network test.",
        [({"level": level, "node": node}, v * GB) for (level, node), v in sorted(best.items())],
    )


PROMETHEUS = Report(
    name="prometheus", about="for the textfile collector", suffix=".prom", render=_render
)
