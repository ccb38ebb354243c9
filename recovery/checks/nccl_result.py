"""Did the collective really run on all ranks, give right values, and reach its bandwidth?"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from recovery.model.check import Check, CheckEffect
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.asked import tool_asked
from recovery.reading.nccl import NcclResult, looks_like_nccl, read_nccl
from recovery.reading.nccl_cause import cause_of, nvls_lost
from recovery.reading.nccl_floor import Floor, Shape, compare, floors_for
from recovery.reading.nccl_size import rate_word, size_bytes, size_word
from recovery.reading.trainlog import names_a_framework

_EXPECTED_AT = re.compile(r"^expected_busbw_at_(\d+[KMGT]?)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclExpect:
    """What this launch should show; None and empty where nobody said."""

    floors: tuple[Floor, ...] = ()
    profile_rows: tuple[Mapping[str, Any], ...] = ()
    n_nodes: int | None = None
    n_gpus: int | None = None
    n_ranks: int | None = None
    requested_max_bytes: int | None = None
    algorithm: str = ""  # forced on the launch; empty where NCCL chose


def parse_nccl(printed: Printed) -> NcclResult:
    """What a launch of nccl-tests measured, from its text or its ``-J`` file.

    Raises:
        ParseError: nothing of nccl-tests or its launcher is in it.
    """
    is_one = printed.text.lstrip().startswith("{") or not printed.error_text
    text = printed.text or printed.error_text
    found = read_nccl(text if is_one else f"{printed.text}\n{printed.error_text}")
    return replace(found, exit_status=printed.exit_status)


def expect_nccl(raw: Mapping[str, Any]) -> NcclExpect:
    """Expectations: ``expected_busbw_at_8G`` and the profile's ``busbw`` rows, ranks, nodes."""
    named = ((_EXPECTED_AT.match(key), value) for key, value in raw.items())
    return NcclExpect(
        floors=tuple(
            Floor(float(value), size_bytes(match.group(1))) for match, value in named if match
        ),
        profile_rows=tuple(raw.get("busbw") or ()),
        n_nodes=raw.get("nodes"),
        n_gpus=raw.get("expected_gpus"),
        n_ranks=raw.get("expected_ranks"),
        requested_max_bytes=size_bytes(raw.get("requested_max")),
        algorithm=str(raw.get("algorithm") or ""),
    )


def judge_nccl(result: NcclResult, expect: NcclExpect) -> Verdict:
    """Wrong values first, then whether it ran at all, on how many ranks, then how fast."""
    found = [*_wrong_values(result), *_not_run(result), *_ranks(result, expect)]
    if not any(finding.level.blocks for finding in found):
        found += [*_unchecked(result), *_bandwidth(result, expect), *_left_out(result, expect)]
        found += _warnings(result)
    row = result.largest
    best = f"{rate_word(row.busbw_gb_per_s)} at {size_word(row.size_bytes)}" if row else ""
    groups = result.body.n_groups
    beside = f" in each of {groups} groups" if groups > 1 else ""
    return verdict(found, otherwise=f"{best}, {result.n_ranks} ranks{beside}, no wrong value")


def _wrong_values(result: NcclResult) -> Iterator[Finding]:
    if result.n_wrong or result.body.out_of_bounds:
        yield failed(
            f"wrong values in the result of the collective: {result.n_wrong:.0f} elements",
            remedy="never start training on it: find the GPU pair with sendrecv_perf, check ACS and"
            " IOMMU, run the memory tests of `dcgmi diag`",
            code="nccl.wrong-values",
        )


def _not_run(result: NcclResult) -> Iterator[Finding]:
    cause = cause_of(result)
    if cause is not None:
        yield failed(cause.finding, remedy=cause.remedy, code=cause.code, component=cause.host)
    elif not result.rows:
        yield unknown(
            "the test ended well but measured nothing",
            remedy="ask for at least one payload: -b 8G -e 8G",
            code="nccl.no-rows",
        )
    else:
        yield from _unmeasured(result)
        yield from _ended_badly(result)


def _ended_badly(result: NcclResult) -> Iterator[Finding]:
    if result.exit_status not in (0, None) and not result.n_wrong:
        yield unknown(
            f"a whole result, and yet it ended with status {result.exit_status}",
            remedy="read the end of the output: a rank that did not end (124, 137), or a limit of "
            "your own (NCCL_TESTS_MIN_BW); run it again",
            code="nccl.exit-status",
        )


def _unmeasured(result: NcclResult) -> Iterator[Finding]:
    mean = result.body.mean_busbw_gb_per_s
    if (mean is None or isfinite(mean)) and all(row.is_measured for row in result.rows):
        return
    yield unknown(
        "the bandwidth is no number (nan or inf): the test's clock or its rows are broken",
        remedy="run it again with more iterations (-n 50) and a payload of at least 1M",
        code="nccl.no-number",
    )


def _unchecked(result: NcclResult) -> Iterator[Finding]:
    if result.rows and not any(row.is_checked for row in result.rows):
        yield warned(
            "the values were not checked (N/A): the bandwidth alone proves no sound transport",
            remedy="run it with the check on (-c 1)",
            code="nccl.unchecked",
        )


def _ranks(result: NcclResult, expect: NcclExpect) -> Iterator[Finding]:
    wanted = _wanted_ranks(expect)
    ran = result.n_ranks
    if result.body.n_runs > 1 and (ran or 0) > 1:
        yield unknown(
            f"{result.body.n_runs} runs stand in one text: which of them is meant?",
            remedy="keep each run in a file of its own and judge it by itself",
            code="nccl.several-runs",
        )
    elif result.body.copies > 1:
        yield failed(
            f"{result.body.copies} copies of {ran} rank each, no collective: nothing was tested",
            remedy="the binary was built without MPI: build nccl-tests with MPI=1",
            code="nccl.not-collective",
        )
    elif result.complete and ran is not None and wanted is not None and ran != wanted:
        yield failed(
            f"{ran} ranks, expected {wanted}",
            remedy="look for the GPU that is missing: `recover check gpu.count`",
            code="nccl.ranks",
        )
    elif result.complete and not result.is_collective:
        yield unknown(
            f"{ran or 'no known number of'} rank(s): not a collective",
            remedy="run it on at least two GPUs (-g 8)",
            code="nccl.not-collective",
        )


def _wanted_ranks(expect: NcclExpect) -> int | None:
    if expect.n_ranks is not None or expect.n_nodes is None or expect.n_gpus is None:
        return expect.n_ranks
    return expect.n_nodes * expect.n_gpus


def _bandwidth(result: NcclResult, expect: NcclExpect) -> Iterator[Finding]:
    compared = compare(result, _floors(result, expect))
    if compared is None:
        yield warned(
            "the bandwidth was not judged: no floor is known for this collective and node count",
            remedy="add a `busbw` row of kind floor to the hardware profile",
            code="nccl.no-floor",
        )
    elif not compared.reached:
        yield _too_slow(result, compared.floor, known=compared.reached is not None)


def _too_slow(result: NcclResult, floor: Floor, *, known: bool) -> Finding:
    row = result.row_at(floor.payload_bytes or 0) or result.largest
    reached = (
        f"{rate_word(row.busbw_gb_per_s)} at {size_word(row.size_bytes)}" if row else "nothing"
    )
    at = f" at {size_word(floor.payload_bytes)}" if floor.payload_bytes else ""
    words = f"{reached}, floor {floor.busbw_gb_per_s:g} GB/s{at}"
    if not known:
        return unknown(
            f"{words}: the payloads do not compare",
            remedy="run the test at the floor's payload",
            code="nccl.payload",
        )
    if nvls_lost(result, floor.busbw_gb_per_s):
        return failed(
            f"{words}: what such a node gives without in-switch reduction (NVLS)",
            remedy="not a cable: restart nvidia-fabricmanager, `recover check fabric.state`",
            code="nccl.nvls-lost",
        )
    return failed(
        words,
        remedy="test rails and pairs: `recover` step `mesh: all_reduce`; look at `recover check"
        " ib.state` and the NCCL environment (NCCL_IB_HCA, NCCL_SOCKET_IFNAME)",
        code="nccl.slow",
    )


def _floors(result: NcclResult, expect: NcclExpect) -> tuple[Floor, ...]:
    n_nodes = expect.n_nodes or max(len(result.body.hosts_of_one_group), 1)
    ran = result.n_ranks
    shape = Shape(
        collective=result.body.collective or "all_reduce",
        n_nodes=n_nodes,
        gpus_per_node=ran // n_nodes if ran else None,
        algorithm=expect.algorithm,
    )
    return expect.floors or floors_for(expect.profile_rows, shape)


def _left_out(result: NcclResult, expect: NcclExpect) -> Iterator[Finding]:
    reduced, wanted = result.body.reduced_max_bytes, expect.requested_max_bytes
    largest = result.largest.size_bytes if result.largest else 0
    if reduced is None and (wanted is None or largest * 2 > wanted):
        return
    yield warned(
        f"the largest payloads were not run, only up to {size_word(largest)}: too little free"
        " GPU memory",
        remedy="`nvidia-smi --query-compute-apps=pid,name --format=csv`: end them, run again",
        code="nccl.reduced",
    )


def _warnings(result: NcclResult) -> Iterator[Finding]:
    if result.n_warnings:
        yield warned(
            f"NCCL warned {result.n_warnings} time(s), though the test completed",
            remedy="read the NCCL WARN lines in the evidence",
            code="nccl.warned",
        )


def facts_of_nccl(result: NcclResult) -> Mapping[str, Any]:
    """The facts as JSON-able values; None is "not known"."""
    body, largest = result.body, result.largest
    return {
        "collective": body.collective or None,
        "ranks": body.n_ranks,
        "copies": body.copies,
        "is_collective": result.is_collective,
        "rows": len(body.rows),
        "rows_complete": len(body.rows),
        "complete": body.complete,
        "max_size": largest.size_bytes if largest else None,
        "busbw_at_max": _rounded(largest.busbw_gb_per_s)
        if largest and largest.is_measured
        else None,
        "avg_busbw": _number(body.mean_busbw_gb_per_s),
        "wrong_total": result.n_wrong if body.rows else None,
        "wrong_rows": sum(row.n_wrong_directions for row in body.rows),
        "out_of_bounds": body.out_of_bounds,
        "max_error": max((r.max_error for r in body.rows if r.max_error is not None), default=None),
        "inplace_checked": any(row.in_place_wrong is not None for row in body.rows),
        "reduced_max": body.reduced_max_bytes,
        "last_started_size": body.started_size_bytes,
        "failed_hosts": list(result.failed_hosts),
        "warn_count": result.n_warnings,
        "redact": ["env"] if body.has_environment else [],
        **_failure_facts(result),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _rounded(gb_per_s: float) -> float:
    return round(gb_per_s, 2 if gb_per_s >= 1 else 6)


def _failure_facts(result: NcclResult) -> dict[str, Any]:
    facts: dict[str, Any] = {"first_error": None, "launcher_failure": result.launcher is not None}
    if result.fault is not None:
        named = dataclasses.asdict(result.fault)
        facts["first_error"] = {
            key: value for key, value in named.items() if value not in (None, "")
        }
    if result.launcher is not None:
        facts |= {
            "kind": result.launcher.kind,
            "node": result.launcher.node or None,
            "failed_procs": result.launcher.n_failed,
        }
    return facts


_REPORT = re.compile(r"# nThread \d|#\s+size +count +type ")
# Any program ends so: without more words it says nothing of NCCL, nor of the node.
_NAMELESS = re.compile(r"\s*(?:Segmentation fault|Bus error)(?: \(core dumped\))?\s*")


def _recognises(printed: Printed) -> bool:
    if names_a_framework(printed.text):  # a training hangs in the same words, for other reasons
        return False
    if printed.command:
        asked = tool_asked(printed.command)
        launched = printed.command.startswith(("mpirun", "mpiexec")) and not asked
        shown = not asked and _REPORT.search(printed.text) is not None  # kubectl logs, cat, srun
        return "_perf" in printed.command or launched or shown
    said = f"{printed.text}\n{printed.error_text}"
    return not _NAMELESS.fullmatch(said) and looks_like_nccl(said)


NCCL_RESULT = Check(
    name="nccl.result",
    question="Does a collective over all GPUs of the node give right values at full bandwidth?",
    command="all_reduce_perf -b 8G -e 8G -f 2 -g 8",
    parse=parse_nccl,
    expect=expect_nccl,
    judge=judge_nccl,
    facts=facts_of_nccl,
    recognises=_recognises,
    effect=CheckEffect.ACTIVE,
    needs="nccl-tests (all_reduce_perf)",
    expects=("busbw", "algorithm", "expected_gpus", "expected_ranks", "nodes", "requested_max"),
    timeout_s=300.0,
)
