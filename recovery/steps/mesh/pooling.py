"""All first pairs in one launch: cheap where nothing is wrong; else each is asked by itself."""

from __future__ import annotations

from dataclasses import replace

from recovery.mesh.launch import pooled
from recovery.mesh.words import Group, Level, Outcome, Result, Round
from recovery.reading.nccl_size import rate_word
from recovery.steps.mesh.setting import Setting
from recovery.steps.mesh.testing import command_of, concluded

_POOLING = ("mpirun", "srun")


def pooled_results(setting: Setting, played: Round, limit_s: float) -> list[Result] | None:
    """The results of one launch for all pairs, where it passed; None where each must be asked.

    It gives one number, of the slowest rank: all pairs pass, or nothing is known of any.
    """
    every = tuple(name for group in played.groups for name in group.nodes)
    if not _can_pool(setting, played):
        return None
    whole = Group(Level.PAIRS, every)
    size = len(played.groups[0].nodes)
    launch = pooled(setting.launch(played.groups[0]), size)
    launch = replace(launch, hosts=tuple(setting.host(name) for name in every))
    asked = command_of(setting, whole, launch, limit_s)
    output = setting.world.run(setting.nodes[every[0]], asked)
    found = [concluded(setting, group, (output,), limit_s) for group in played.groups]
    passed = all(result.outcome is Outcome.PASS for result in found)
    rate = found[0].busbw_gb_per_s
    words = f"the slowest at {rate_word(rate)}" if passed and rate else found[0].finding
    setting.world.note(
        f"round {played.number}: {len(found)} pairs in one launch: {words}"
        + ("" if passed else "; each by itself now"),
        kind="mesh.pooled",
        facts={"round": played.number, "ok": passed, "evidence": found[0].evidence},
    )
    return found if passed else None


def _can_pool(setting: Setting, played: Round) -> bool:
    """Claims first pairs with one environment, and a floor: pooled tests have no median."""
    groups = played.groups
    first = all(g.level is Level.PAIRS and len(g.nodes) == 2 and not g.subject for g in groups)
    if not (setting.params.pooled and setting.runner in _POOLING and first and len(groups) > 1):
        return False
    launches = [replace(setting.launch(group), hosts=()) for group in groups]
    return all(one == launches[0] for one in launches) and all(map(setting.has_floor, groups))
