"""Stories of several runs, told in a few words."""

from recovery.engine.history import story_of
from recovery.model.events import (
    NodeFinished,
    Noted,
    Quarantined,
    RunFinished,
    RunStarted,
    StepStarted,
)
from recovery.model.kind import NodeResult
from recovery.model.verdict import Level, Verdict, failed, passed, unknown, warned

HOUR = 3600.0
MAKE = {"fail": failed, "unknown": unknown, "warn": warned}


def result(node, said):
    """``{"gpu.ecc": "fail"}`` as the step `check` would say it."""
    findings = [
        passed(f"{name}: well")
        if word == "pass"
        else MAKE[word](f"{name}: {word}ing", remedy=f"mend {name}", code=f"{name}.bad")
        for name, word in said.items()
    ]
    found = Verdict(tuple(sorted(findings, key=lambda f: -f.level)))
    return NodeResult(node=node, verdict=found, values={"checks": said})


def plain(node, word, about):
    """One result without checks, as `mesh` or `wait` would say it."""
    finding = passed(about) if word == "pass" else MAKE[word](about, remedy="look", code="bad")
    return NodeResult(node=node, verdict=Verdict((finding,)))


def run(number, at, *, checks=None, mesh=None, aside=None, released=(), cluster="c", plan=None,
        asked=None):  # fmt: skip
    """A run that ended: node -> {check: level}, node -> level of the mesh, node -> why aside."""
    name = f"run{number}"
    nodes = tuple({**(checks or {}), **(mesh or {}), **(aside or {}), **(asked or {})})
    events = [
        RunStarted(at=at, run=name, cluster=cluster, runbook="preflight", digest="d", nodes=nodes,
                   seed=1, version="0", owner="me", plan=plan or {}),
    ]  # fmt: skip
    steps = (
        ("health", "check", {n: result(n, said) for n, said in (checks or {}).items()}),
        ("mesh", "mesh", {n: plain(n, word, "busbw") for n, word in (mesh or {}).items()}),
        ("same", "run", {n: plain(n, word, "same") for n, word in (asked or {}).items()}),
    )
    for step, verb, results in steps:
        if not results:
            continue
        names = tuple(results)
        events.append(
            StepStarted(at=at, step=step, verb=verb, attempt=1, nodes=names, deadline_s=9)
        )
        events += [NodeFinished(at=at, step=step, attempt=1, result=r) for r in results.values()]
    for node, why in (aside or {}).items():
        events.append(Quarantined(at=at, step="health", nodes=(node,), reason=why, remedy="mend"))
    events.append(RunFinished(at=at, outcome="done", exit_code=0, reason="all steps done"))
    if released:
        facts = {"nodes": list(released)}
        events.append(Noted(at=at, step="", message="x", kind="node.released", facts=facts))
    return story_of(events)


def level(word):
    return Level[word.upper()]
