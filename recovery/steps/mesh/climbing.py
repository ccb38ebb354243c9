"""The ladder, round by round: limits that adapt, counters before and after, notes for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from recovery.mesh.counters import COUNTERS_LINE, Rise, Sample, read_sample, rises
from recovery.mesh.ladder import next_round, record, start
from recovery.mesh.relative import HANG, held_against
from recovery.mesh.telling import told_round
from recovery.mesh.words import Level, Outcome, Result, Round, State
from recovery.model.output import Command
from recovery.reading.nccl_size import rate_word
from recovery.steps.mesh.pooling import pooled_results
from recovery.steps.mesh.setting import Setting
from recovery.steps.mesh.testing import expected, tested

LEAST_LIMIT_S = 30.0  # and 3 x the median of tests that ended, where that is more
MOST_LIMIT_S = 600.0  # where no test of its kind has ended yet
_SAMPLE_S = 20.0


@dataclass
class Climb:
    """What is learned on the way up: the state, the newest counters, and what rose when."""

    setting: Setting
    state: State
    limit_s: float = LEAST_LIMIT_S
    known: set[bool] = field(default_factory=set)  # kinds (all nodes or not) that ended in time
    samples: dict[str, Sample] = field(default_factory=dict)
    risen: dict[str, list[tuple[int, Rise]]] = field(default_factory=dict)


def climb(setting: Setting) -> Climb:
    """Plays every round of the ladder."""
    climbed = Climb(setting, start(setting.members, setting.options))
    first = next_round(climbed.state)
    if first is not None:
        climbed.samples = _samples(setting, [member.name for member in setting.members])
    while (played := next_round(climbed.state)) is not None:
        _play(climbed, played)
    return climbed


def _play(climbed: Climb, played: Round) -> None:
    results = _in_time(climbed, played)
    _watch(climbed, played)
    share = climbed.setting.params.slow_below
    results = held_against(results, climbed.state.history, share)
    for result in results:
        _note(climbed.setting, played, result)
    climbed.state = record(climbed.state, played, results)
    climbed.setting.world.note(
        told_round(climbed.state),
        kind="mesh.round",
        facts={"round": played.number, "stage": played.stage},
    )


def _in_time(climbed: Climb, played: Round) -> list[Result]:
    """The results; who had too little time is asked again with as much as others needed."""
    pooled = pooled_results(climbed.setting, played, climbed.limit_s)
    results = pooled or tested(climbed.setting, played, climbed.limit_s)
    while _wants_more(climbed, played, results):
        late = tuple(r.group for r in results if r.code == HANG)
        words = f"round {played.number}: {len(late)} of {len(results)} tests had too little time"
        climbed.setting.world.note(f"{words}: again, up to {climbed.limit_s:.0f} s")
        again = tested(climbed.setting, replace(played, groups=late), climbed.limit_s)
        by_group = {result.group: result for result in again}
        results = [by_group.get(result.group, result) for result in results]
    return results


def _wants_more(climbed: Climb, played: Round, results: Sequence[Result]) -> bool:
    """Sets the limit that this round has shown; claims that it is more than those late had."""
    had, whole = climbed.limit_s, played.groups[0].level is Level.ALL
    took = [r.duration_s for r in results if r.outcome in (Outcome.PASS, Outcome.SLOW)]
    if took:
        climbed.known.add(whole)
        climbed.limit_s = max(LEAST_LIMIT_S, 3 * median(took))
    elif whole not in climbed.known:  # nobody knows how long it takes: it may be our impatience
        climbed.limit_s = min(MOST_LIMIT_S, 3 * had)
    late = any(r.code == HANG for r in results)
    return late and climbed.limit_s > had


def _samples(setting: Setting, names: list[str]) -> dict[str, Sample]:
    def ask(name: str) -> Sample:
        output = setting.world.run(setting.nodes[name], Command(COUNTERS_LINE, timeout_s=_SAMPLE_S))
        return read_sample(output.text) if output.ok else Sample({})

    found = dict(zip(names, setting.world.each(names, ask), strict=True))
    return {name: sample for name, sample in found.items() if not sample.empty}


def _watch(climbed: Climb, played: Round) -> None:
    """Reads the counters of the nodes that have any and were in the round."""
    used = dict.fromkeys(name for group in played.groups for name in group.nodes)
    after = _samples(climbed.setting, [name for name in used if name in climbed.samples])
    for name, sample in after.items():
        for rise in rises(climbed.samples[name], sample):
            climbed.risen.setdefault(name, []).append((played.number, rise))
            climbed.setting.world.note(
                f"round {played.number}: {name}: {rise.words}", kind="mesh.counters"
            )
    climbed.samples.update(after)


def _note(setting: Setting, played: Round, result: Result) -> None:
    rate = result.busbw_gb_per_s
    speed = rate_word(rate) if rate is not None else "no rate"
    rail = "" if result.group.rail is None else f" rail {result.group.rail}"
    names = "+".join(result.group.nodes)
    ok = result.outcome is Outcome.PASS
    words = speed if ok else f"{result.outcome.value}: {result.finding}"
    setting.world.note(
        f"round {played.number}: {names}{rail}: {words}",
        kind="mesh.test",
        facts=facts_of(setting, played, result),
    )


def facts_of(setting: Setting, played: Round, result: Result) -> Mapping[str, object]:
    """A test as reports and `recovery.mesh.replay` read it."""
    group = result.group
    return {
        "round": played.number,
        "stage": played.stage,
        "level": group.level.word,
        "group": list(group.nodes),
        "subject": group.subject,
        "rail": group.rail,
        "witness": group.witness,
        "collective": group.collective or setting.params.argument,
        "busbw_gb_per_s": result.busbw_gb_per_s,
        "size": setting.params.size,
        "ok": result.outcome is Outcome.PASS,
        "outcome": result.outcome.value,
        "finding": "" if result.outcome is Outcome.PASS else result.finding,
        "code": result.code,
        "blamed": list(result.blamed),
        "status": result.status,
        "expect": dict(expected(setting, group)),
        "duration_s": result.duration_s,
        "evidence": result.evidence,
    }
