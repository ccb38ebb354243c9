"""Two logs -> did the training go on as it was? The rules in their order, folded to one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from recovery.continuity.levels import (
    Quantity,
    band_findings,
    diagnosis,
    first_left_out,
    loss_of,
    norm_of,
    order_findings,
    pair_findings,
)
from recovery.continuity.rates import n_rates, rate_findings
from recovery.continuity.rules import rules
from recovery.continuity.words import Case, Continuity, Options, Strength
from recovery.model.verdict import Finding, Level, Verdict, failed, passed, single, unknown, warned
from recovery.reading.training_point import Point
from recovery.reading.training_points import BY_EPOCH, Points, log_interval

STRONG, MODERATE = 16, 8
_DEFAULTS = Options()
REPLAY = (
    "replay check: start from the checkpoint before for 48 iterations, compare those"
    " (`verify: replay`), stop, start from this one again"
)


def compare(
    before: Points | None,
    after: Points | None,
    *,
    checkpoint_step: int | None,
    options: Options = _DEFAULTS,
) -> Continuity:
    """Judges a resume by its log from before and its log since; None is a log without a line.

    Only the last start in ``after`` is judged; that there were several is a finding.
    """
    if after is None:
        return Continuity(verdict=single(_no_progress()), strength=Strength.NONE)
    by_epoch = after.format == BY_EPOCH
    if before is not None and (before.format == BY_EPOCH) != by_epoch:
        return Continuity(verdict=single(_two_countings()), strength=Strength.NONE)
    case = _case(before, after, None if by_epoch else checkpoint_step)
    shortened, notes = first_left_out(case)
    judged = replace(case, after=shortened)
    loss = loss_of(judged, options)
    norm = norm_of(judged, options, loss)
    overlap = sum(1 for o, n in case.pairs if o.loss is not None and n.loss is not None)
    strength = _strength(case, loss, overlap)
    findings = [
        *rules(case),
        *rate_findings(case),
        *pair_findings(loss, norm, case),
        *band_findings(loss, norm, case),
        *order_findings(loss, options),
        *notes,
    ]
    findings.append(_conclusion(case, loss, strength, overlap, findings))
    rate_is_wrong = any(f.code == "verify.lr" for f in findings)
    return Continuity(
        verdict=Verdict(tuple(sorted(findings, key=lambda f: -f.level))),
        strength=strength,
        diagnosis="learning rate" if rate_is_wrong else diagnosis(loss, norm),
        overlap=overlap,
        first_iteration=case.after[0].iteration,
        last_iteration=case.after[-1].iteration,
        statistics=dict(_statistics(case, loss, norm)),
    )


def _no_progress() -> Finding:
    return failed(
        "no new iteration was logged",
        remedy="is the job alive? read the end of its log: `recover triage LOG`",
        code="verify.no-progress",
    )


def _two_countings() -> Finding:
    return unknown(
        "not verified: one log names iterations, the other only epochs",
        remedy="give trainer_state.json of the newest checkpoints instead",
        code="verify.not-verified",
    )


def _case(before: Points | None, after: Points, step: int | None) -> Case:
    old: Sequence[Point] = before.all if before else ()
    new = after.starts[-1]
    interval = max(log_interval(old), log_interval(new) if len(new) > 2 else 1)
    return Case(before=old, after=new, logged=after, step=step, interval=interval)


def _strength(case: Case, loss: Quantity, overlap: int) -> Strength:
    if overlap >= STRONG and loss.pair is not None and loss.pair.same_data:
        return Strength.STRONG
    if overlap >= MODERATE:
        return Strength.MODERATE
    return Strength.WEAK if overlap or loss.place is not None else Strength.NONE


def _conclusion(
    case: Case, loss: Quantity, strength: Strength, overlap: int, found: Sequence[Finding]
) -> Finding:
    """The sentence for people: verified, or not and why."""
    first, last = case.after[0].iteration, case.after[-1].iteration
    words = f"iterations {first} to {last}, {overlap} of them compared with the log from before"
    if any(f.level is Level.FAIL for f in found):
        return passed(words)
    if strength is Strength.NONE:
        why = "no loss is logged" if case.before else "there is no log from before"
        return unknown(
            f"not verified: {why if not loss.place else 'too little to compare'}; {words}",
            remedy="give the log from before the outage, or " + REPLAY,
            code="verify.not-verified",
        )
    if strength is Strength.WEAK:
        return warned(
            f"not verified: too few to tell; {words}", remedy=REPLAY, code="verify.not-verified"
        )
    r = loss.pair.r if loss.pair else None
    agreement = f", r {r:.3f}" if r is not None else ""
    return passed(f"resumed: {words} ({strength}{agreement})", code="verify.resumed")


def _statistics(case: Case, loss: Quantity, norm: Quantity) -> Iterator[tuple[str, float | None]]:
    yield "rates_compared", n_rates(case)
    for name, quantity in (("loss", loss), ("grad_norm", norm)):
        pair, at = quantity.pair, quantity.place
        yield f"{name}_r", _short(pair.r if pair else None)
        yield f"{name}_pair_z", _short(pair.z if pair else None)
        yield f"{name}_pair_mean_sigma", _short(pair.mean if pair else None)
        yield f"{name}_band_z", _short(at.highest if at else None)
        yield f"{name}_sigma", _short(quantity.band.sigma if quantity.band else None)


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
