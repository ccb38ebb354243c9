"""`recover checkpoint`: inspect checkpoints on this machine; advise how often to save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recovery.model.verdict import Level

if TYPE_CHECKING:
    from recovery.checkpoints.advise import Advice, Workload
    from recovery.checkpoints.choose import Choice, Policy
    from recovery.checkpoints.inspection import Inspection

FOUND, NONE, UNDECIDED = 0, 1, 3


@click.group("checkpoint")
def COMMAND() -> None:  # noqa: N802 - a constant of the shelf
    """Inspect checkpoints on this machine; advise how often to save."""


@COMMAND.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--deep", is_flag=True, help="Read every byte that has a checksum.")
@click.option(
    "--require",
    default="",
    metavar="A,B",
    help="Components that must be there: model, optimizer, scheduler, rng, data.",
)
@click.option(
    "--quiet",
    type=click.FloatRange(0, 60),
    default=0.0,
    metavar="SECONDS",
    help="Watch a torn one that is younger so long: its save may still go on.",
)
@click.option(
    "--outage", metavar="TIME", help="When the power went: saves just before are suspect."
)
@click.option(
    "--distrust-from",
    metavar="TIME",
    help="The first uncorrectable error: of saves after it, the one before is offered.",
)
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def inspect(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    fmt: str,
    *,
    deep: bool,
    **said: Any,
) -> None:
    """Say which checkpoints under PATH are whole, and which step to resume from.

    TIME is like 2026-12-01T04:20:00+00:00 (UTC without a zone), or seconds since 1970.

    Exit status: 0 a sound checkpoint is there, 1 none is, 3 it could not be judged.
    """
    import json

    from recovery.checkpoints.choose import choose

    policy = _policy(said)
    text = _inspector_output(paths, deep=deep, quiet_s=said["quiet"])
    inspection, raw = _read(text)
    choice = choose({"here": inspection}, policy)
    if fmt == "json":
        click.echo(json.dumps(_document(raw, choice), indent=1))
    else:
        click.echo("\n".join([*_lines(inspection, choice), *_next(choice)]))
    ctx.exit(_status(inspection, choice))


def _policy(said: dict[str, Any]) -> Policy:
    from recovery.checkpoints.choose import Policy

    return Policy(
        require=tuple(w.strip() for w in said["require"].split(",") if w.strip()),
        outage_at_s=_moment(said["outage"]),
        distrust_from_s=_moment(said["distrust_from"]),
    )


def _moment(text: str | None) -> float | None:
    """POSIX seconds of a time that a person wrote."""
    from datetime import UTC, datetime

    from recovery.errors import InputError

    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError as error:
        remedy = "write it like 2026-12-01T04:20:00+00:00, or in seconds since 1970"
        raise InputError(f"{text!r} is not a time", remedy=remedy) from error
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _inspector_output(paths: tuple[str, ...], *, deep: bool, quiet_s: float = 0.0) -> str:
    """What the inspector prints here, run as on a node: in a process of its own, within limits."""
    import subprocess
    import sys
    from importlib.resources import files
    from pathlib import Path

    from recovery.errors import InputError

    for path in paths:
        if not Path(path).exists():
            raise InputError(f"{path}: not there", remedy="is it mounted? look for the right path")
    payload = files("recovery.payloads").joinpath("checkpoint_inspector.py").read_bytes()
    line = [sys.executable, "-", *paths, *(["--deep"] if deep else []), "--quiet", f"{quiet_s:g}"]
    done = subprocess.run(line, input=payload, capture_output=True, check=False)  # noqa: S603 - our own interpreter and file
    if done.returncode != 0:
        said = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        return f'{{"end": false}} inspector status {done.returncode}: {said}'
    return done.stdout.decode("utf-8", "backslashreplace")


def _read(text: str) -> tuple[Inspection, dict[str, Any]]:
    import json

    from recovery.checkpoints.inspection import read_inspection

    inspection = read_inspection(text)
    raw: dict[str, Any] = json.loads(text.splitlines()[-1])
    return inspection, raw


_SHOWN = ("step", "level", "path", "framework", "components", "findings", "facts", "ranks", "alias")


def _document(raw: dict[str, Any], choice: Choice) -> dict[str, Any]:
    """The promised shape first; what else is known after it."""
    from recovery.checkpoints.verdicts import aside, hold

    entries = [{key: entry[key] for key in _SHOWN} for entry in raw["checkpoints"]]
    document: dict[str, Any] = {"checkpoints": entries, "resume": choice.step}
    document["resume_path"] = choice.path or None
    document["hold"] = hold(choice.path) if choice.path else None
    document["aside"] = [aside(path, "") for path in _torn(choice)]
    document["refused"] = {str(r.step): r.reason for r in choice.refused}
    document["distrusted"], document["young_s"] = choice.distrusted, choice.young_s
    for key in ("pointers", "paths", "findings", "errors", "deep", "now", "seconds", "left_out"):
        document[key] = raw[key]
    return document


def _status(inspection: Inspection, choice: Choice) -> int:
    if choice.step is not None:
        return FOUND
    unread = any(f.level.blocks for f in inspection.findings) or inspection.errors
    # Ranks that are not here may be on another node: this machine alone cannot say.
    unsure = any(c.level is Level.UNKNOWN for c in inspection.checkpoints)
    return UNDECIDED if choice.undecided or unread or unsure else NONE


def _lines(inspection: Inspection, choice: Choice) -> list[str]:
    if not inspection.checkpoints:
        return ["no checkpoint found", "look for the right path: recover checkpoint inspect PATH"]
    lines: list[str] = []
    for checkpoint in sorted(inspection.checkpoints, key=lambda c: (-c.level, -(c.step or 0))):
        step = "?" if checkpoint.step is None else checkpoint.step
        lines.append(
            f"{checkpoint.level.word:8}step {step:<8} {checkpoint.framework:16} {checkpoint.path}"
        )
        for problem in checkpoint.problems:
            finding = problem.finding
            where = f"{finding.component}: " if finding.component else ""
            lines.append(f"          {problem.rule} {where}{finding.finding}")
        remedies = dict.fromkeys(p.finding.remedy for p in checkpoint.problems)
        lines += [f"          -> {remedy}" for remedy in remedies if remedy]
    lines += [f"{f.level.word:8}{f.component}: {f.finding}" for f in inspection.findings]
    return [*lines, _resume(choice)]


def _resume(choice: Choice) -> str:
    if choice.step is None:
        reasons = "; ".join(f"{r.step}: {r.reason}" for r in choice.refused[:3])
        return f"resume: from none of these ({reasons})" if reasons else "resume: from none"
    return f"resume: step {choice.step}  {choice.path}"


def _torn(choice: Choice) -> list[str]:
    """Newer than the chosen step, and not only distrusted: what a trainer could pick up."""
    newer = [r for r in choice.refused if r.rule not in ("distrust", "C18") and r.by_node]
    return [path for refusal in newer for path in refusal.paths.values()]


def _next(choice: Choice) -> list[str]:
    """What to do before the relaunch; we move and link nothing by ourselves."""
    from recovery.checkpoints.verdicts import aside, hold

    lines = [f"  not step {r.step}: {r.reason}" for r in choice.refused[:3]]
    if choice.distrusted:
        lines.append("  it was written after the first uncorrectable error: nothing older is sound")
    if choice.young_s is not None:
        lines.append(
            f"  it ended {max(choice.young_s, 0.0):.0f} s before the outage: inspect with --deep"
        )
    if choice.path and choice.refused:
        lines.append(f"  keep it from pruning until the resume is verified: {hold(choice.path)}")
    torn = _torn(choice)[:3] if choice.step is not None else []
    return lines + [f"  move the torn one out of the trainer's sight: {aside(p, '')}" for p in torn]


@COMMAND.command("plan")
@click.option("--mtbf", required=True, metavar="TIME", help="Mean time between interruptions.")
@click.option("--save-time", metavar="TIME", help="How long training stops for one save.")
@click.option("--params", metavar="N", help="Parameters of the model: 70B, 405B.")
@click.option("--bytes-per-param", type=float, help="12 with fp32 weights, 14 with bf16 beside.")
@click.option("--from", "path", metavar="PATH", help="Measure size and save time there.")
@click.option("--restart", default="10m", show_default=True, metavar="TIME")
@click.option("--gpus", type=click.IntRange(1), help="To count the GPU-hours lost.")
@click.option("--price", type=float, metavar="MONEY", help="One GPU-hour.")
@click.option("--tier", multiple=True, metavar="NAME=SPEED", help="nvme=20GB, pfs=100GB (a second)")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def plan(fmt: str, **said: Any) -> None:
    """Advise how often to save, how fast storage must be, and what each choice loses."""
    import dataclasses
    import json

    from recovery.checkpoints.advise import advise

    workload, notes = _workload(said)
    advice = advise(workload)
    if fmt == "json":
        document = {**dataclasses.asdict(advice), "notes": notes}
        click.echo(json.dumps(document, indent=1))
    else:
        click.echo("\n".join([*notes, *_advice_lines(advice)]))


def _workload(said: dict[str, Any]) -> tuple[Workload, list[str]]:
    from recovery.checkpoints.advise import Workload
    from recovery.checkpoints.quantities import amount, duration_s
    from recovery.errors import InputError

    measured = _measured(said["path"]) if said["path"] else {}
    size, notes = _size(said, measured)
    stall_s = duration_s(said["save_time"]) if said["save_time"] else measured.get("save_s")
    if not said["save_time"] and stall_s:
        grown = (size or 0.0) / measured.get("bytes", 1.0) if said["params"] else 1.0
        notes.append(f"save time: {stall_s:.3g} s, measured from the file times there")
        if grown > 0 and grown != 1.0:
            stall_s *= grown
            notes.append(f"save time: {stall_s:.3g} s for the size asked about, at that speed")
    if stall_s is None:
        raise InputError("how long does a save take?", remedy="say --save-time 45s, or --from PATH")
    workload = Workload(
        stall_s=stall_s,
        mtbf_s=duration_s(said["mtbf"]),
        restart_s=duration_s(said["restart"]),
        size_bytes=size,
        n_gpus=said["gpus"],
        gpu_hour_price=said["price"],
        tiers={name: amount(speed) for name, speed in map(_pair, said["tier"])},
    )
    return workload, notes


def _pair(word: str) -> tuple[str, str]:
    from recovery.errors import InputError

    name, equals, speed = word.partition("=")
    if not equals:
        raise InputError(f"--tier {word}: no speed", remedy="write it like nvme=20GB")
    return name, speed


def _size(said: dict[str, Any], measured: dict[str, float]) -> tuple[float | None, list[str]]:
    from recovery.checkpoints.advise import BYTES_FP32, checkpoint_bytes
    from recovery.checkpoints.quantities import amount

    each = said["bytes_per_param"] or measured.get("bytes_per_parameter")
    if said["params"]:
        how = "as said" if said["bytes_per_param"] else "measured" if each else "fp32 and Adam"
        note = f"size: {each or BYTES_FP32:g} bytes a parameter ({how})"
        return checkpoint_bytes(amount(said["params"]), each or BYTES_FP32), [note]
    if measured.get("bytes"):
        return measured["bytes"], ["size: measured there"]
    return None, []


def _measured(path: str) -> dict[str, float]:
    """Size, save time and bytes a parameter of the newest sound checkpoint there."""
    from recovery.checkpoints.choose import Policy, choose
    from recovery.checkpoints.inspection import number
    from recovery.errors import InputError

    inspection, _ = _read(_inspector_output((path,), deep=False))
    choice = choose({"here": inspection}, Policy(require=()))
    if choice.step is None:
        raise InputError(
            f"{path}: no sound checkpoint to measure",
            remedy=f"recover checkpoint inspect {path}",
        )
    names = ("bytes", "save_s", "bytes_per_parameter")
    found = {name: number(choice.facts.get(name)) for name in names}
    return {name: value for name, value in found.items() if value}


def _advice_lines(advice: Advice) -> list[str]:
    from recovery.checkpoints.quantities import span, volume

    lines = [
        f"a save stops training {span(advice.stall_s)}; an interruption every"
        f" {span(advice.mtbf_s)}, {span(advice.restart_s)} to restart",
        "",
        f"{'rule':10}{'save every':>12}{'time lost':>12}{'hours a day':>14}",
    ]
    for one in advice.intervals:
        mark = "  <- use this" if one is advice.best else ""
        lines.append(
            f"{one.name:10}{span(one.every_s):>12}{one.lost:>11.1%} {one.lost_hours_per_day:>13.2f}"
            + mark
        )
    lines.append("")
    if advice.size_bytes and advice.bytes_per_s:
        lines.append(
            f"one checkpoint: {volume(advice.size_bytes)}; to write it in"
            f" {span(advice.stall_s)} takes {volume(advice.bytes_per_s)}/s"
        )
    if advice.gpu_hours_lost_per_day is not None:
        money = advice.money_lost_per_day
        cost = f", {money:,.0f} in money" if money is not None else ""
        lines.append(f"lost a day: {advice.gpu_hours_lost_per_day:,.0f} GPU-hours{cost}")
    for tier in advice.tiers:
        lines.append(
            f"{tier.name:10}{volume(tier.bytes_per_s)}/s: a save takes {span(tier.save_s)},"
            f" every {span(tier.every_s)}; survives {tier.survives}"
        )
    return lines
