"""An output -> what it means by its ending alone, and the node result of one command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recovery.model.output import Ending, Output
from recovery.model.result import Kept, NodeResult
from recovery.model.verdict import Finding, Verdict, failed, passed, single, unknown, warned

if TYPE_CHECKING:
    from recovery.model.node import Node
    from recovery.model.ports import World

_TROUBLE_REMEDY = {
    "auth": "check the user and the key: `ssh -v NODE` as the same user; see `recover hosts`",
    "hostkey": "was the node re-imaged? compare the fingerprints, then `recover hosts trust`",
    "sudo": "allow it without a password: a NOPASSWD line in sudoers for this user",
    "busy": "the SSH server turns connections away: raise MaxStartups, or lower at_once",
    "unkillable": "a process ignores KILL (state D): reboot the node by its BMC",
    "unsure": "`ssh NODE true`: does the login stand still (start-up files, a stale home)? else "
    "see what is left: `ps -eo pid,stat,wchan:20,args`; state D: reboot the node by its BMC",
    "rebooted": "why did it go down? read its kernel log and `bmc.sel`; then resume",
    "connect": "is the node up? look at its BMC and at the switch port",
}


def ending_finding(output: Output) -> Finding | None:
    """What an ending other than a plain exit says; None when the command finished by itself."""
    if output.trouble:
        remedy = _TROUBLE_REMEDY.get(output.trouble, "look at the node by hand")
        return unknown(
            output.reason or output.trouble, remedy=remedy, code=f"node.{output.trouble}"
        )
    match output.ending:
        case Ending.FINISHED:
            return _signal(output)
        case Ending.TIMEOUT:
            return unknown(
                output.reason or f"no end within {output.duration_s:.0f} s",
                remedy="look at the node: a stuck driver or file system? else raise `timeout`",
                code="node.timeout",
            )
        case Ending.LOST:
            return unknown(
                output.reason or "the session was lost",
                remedy="did the node reboot? look at its BMC and kernel log",
                code="node.lost",
            )
        case Ending.NEVER_STARTED:
            return unknown(
                output.reason or "could not be reached",
                remedy=_TROUBLE_REMEDY["connect"],
                code="node.unreachable",
            )


def _signal(output: Output) -> Finding | None:
    if not output.signal:
        return None
    return failed(
        f"killed by signal {output.signal}",
        remedy="look for the OOM killer in the kernel log",
        code="command.signal",
    )


def exit_finding(output: Output, *, what: str) -> Finding:
    """PASS for status 0, FAIL with the last words of the command for any other."""
    by_ending = ending_finding(output)
    if by_ending:
        return by_ending
    if output.exit_status == 0:
        return passed(f"{what}: done")
    words = (output.error_text.strip() or output.text.strip()).splitlines()
    said = f": {words[-1][:160]}" if words else ""
    return failed(
        f"{what}: exit status {output.exit_status}{said}",
        remedy="read the whole output in the report, or run the line on the node by hand",
        code="command.exit-status",
    )


def node_result(
    node: str,
    output: Output,
    findings: Iterable[Finding],
    *,
    kept: Iterable[Kept] = (),
    values: Mapping[str, Any] | None = None,
) -> NodeResult:
    """A node's result from the output of its command and the findings made of it."""
    worst_first = tuple(sorted(findings, key=lambda f: -f.level))
    return NodeResult(
        node=node,
        verdict=Verdict(worst_first),
        ending=output.ending,
        exit_status=output.exit_status,
        trouble=output.trouble,
        kept=tuple(kept),
        values=values or {},
        duration_s=output.duration_s,
    )


TEXT_LIMIT = 64 * 1024  # what `expect` sees of an output; the whole of it is evidence


def command_result(world: World, node: Node, output: Output, *, what: str) -> NodeResult:
    """The result of one shell line: its ending judged, both streams kept as evidence."""
    streams = (
        ("stdout", output.stdout, output.stdout_dropped),
        ("stderr", output.stderr, output.stderr_dropped),
    )
    kept = [
        replace(world.keep(name, content), dropped_bytes=dropped)
        for name, content, dropped in streams
        if content
    ]
    text = output.text[:TEXT_LIMIT]
    values = {"stdout": text, "lines": text.splitlines(), "rc": output.exit_status}
    findings = [exit_finding(output, what=what), *_cut_in_the_middle(output)]
    return node_result(node.name, output, findings, kept=kept, values=values)


def _cut_in_the_middle(output: Output) -> list[Finding]:
    dropped = output.stdout_dropped + output.stderr_dropped
    if not dropped:
        return []
    return [
        warned(
            f"it printed too much: {dropped / 1e6:.0f} MB were cut from the middle",
            remedy="let it print less, or to a file on the node",
            code="command.cut",
        )
    ]


def silent_result(node: str, reason: str, *, remedy: str) -> NodeResult:
    """The result of a node that nothing was learned about."""
    return NodeResult(node=node, verdict=single(unknown(reason, remedy=remedy, code="node.silent")))


def excused(finding: Finding, *, may_fail: bool) -> Finding:
    """A finding that blocks, as a warning where what comes after says whether it helped."""
    if not may_fail or not finding.level.blocks:
        return finding
    return warned(finding.finding, remedy=finding.remedy, code=finding.code)
