"""Loss and gradient norm: the paired statistic, the band, and which cause fits them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log

from recovery.continuity.band import Band, Place, band_of, place
from recovery.continuity.pair import Pair, paired
from recovery.continuity.robust import step_spread
from recovery.continuity.words import Case, Options
from recovery.model.verdict import Finding, failed, passed, warned
from recovery.reading.training_point import Point

PAIR_FAIL, PAIR_FAIL_FEW, PAIR_WARN, FEW = 8.0, 12.0, 6.0, 8
LEAST_MEAN = 0.1  # sigma; smaller is beyond doubt and without consequence
LOSS_BAND = (6.0, 4.5)
NORM_BAND = (7.0, 5.5)
UNLIKE, UNLIKE_AT_LEAST = 0.5, 12
_DOUBLE = (1.7, 2.3)
_INSIDE = 4.0
_SHORT_MEAN = 0.9
_LATER = "optimizer state, learning rate or batch"  # the same at first, and then no more


@dataclass(frozen=True, slots=True)
class Quantity:
    """One logged quantity before and after, prepared: pairs, band, place in the band."""

    name: str
    pair: Pair | None
    band: Band | None
    place: Place | None
    same_data: bool

    @property
    def differs(self) -> bool:
        """Claims that the pairs differ enough to be told, though both saw the same batches."""
        return self.pair is not None and self.same_data and abs(self.pair.z) >= PAIR_WARN


def loss_of(case: Case, options: Options) -> Quantity:
    """The loss."""
    return _quantity("loss", case, options, same_data=False)


def norm_of(case: Case, options: Options, loss: Quantity) -> Quantity:
    """The logarithm of the gradient norm: its noise grows with it.

    Where the loss shows that both saw the same batches, the norms are of the same batches too.
    """
    return _quantity("gradient norm", case, options, same_data=loss.same_data)


def _value(name: str, point: Point) -> float | None:
    if name == "loss":
        return point.loss if point.loss is not None and isfinite(point.loss) else None
    norm = point.grad_norm
    return log(norm) if norm is not None and isfinite(norm) and norm > 0.0 else None


def _series(name: str, points: Sequence[Point]) -> list[tuple[int, float]]:
    return [(p.iteration, v) for p in points if (v := _value(name, p)) is not None]


def _quantity(name: str, case: Case, options: Options, *, same_data: bool) -> Quantity:
    before, after = _series(name, case.before), _series(name, case.after)
    band = band_of(before, window=options.window)
    old = dict(before)
    both = [(x, old[x], y) for x, y in after if x in old]
    pair = paired([x for x, _, _ in both], [b for _, b, _ in both], [a for _, _, a in both], band)
    same = same_data or (pair is not None and pair.same_data)
    near = band.within(after) if band else []
    found = Quantity(name, pair, band, place(band, near) if band and near else None, same)
    if pair is None or not same or pair.n < FEW or found.differs:
        return found
    # Pairs that agree say more than the band does: a spike that both logs have is none of ours.
    alone = [(x, y) for x, y in near if x not in old]
    return replace(
        found, place=_milder(found.place, place(band, alone) if band and alone else None)
    )


def _milder(one: Place | None, other: Place | None) -> Place | None:
    """What both say."""
    if one is None or other is None:
        return None
    return Place(
        min(one.highest, other.highest),
        max(one.lowest, other.lowest),
        lasts_high=one.lasts_high and other.lasts_high,
        lasts_low=one.lasts_low and other.lasts_low,
    )


def first_left_out(case: Case) -> tuple[Sequence[Point], tuple[Finding, ...]]:
    """The points after, less a first one that is not a loss of one interval.

    Source: Megatron-LM issue 6237 (the first resumed loss is added to the next line); NeMo 2
    divides a short first interval's sum by the whole interval.
    """
    expected = _expected(case)
    for n, (point, following) in enumerate(zip(case.after[:2], case.after[1:3], strict=False)):
        here, there = expected(point), expected(following)
        if here is None or there is None or point.loss is None or following.loss is None:
            continue
        inside = abs(following.loss - there[0]) <= _INSIDE * there[1]
        ratio = point.loss / here[0] if here[0] else 1.0
        outside = abs(point.loss - here[0]) > _INSIDE * here[1]
        doubled = _DOUBLE[0] <= ratio <= _DOUBLE[1]
        short = case.logged.format == "nemo" and n == 0 and ratio < _SHORT_MEAN
        if inside and outside and (doubled or short):
            what = "about twice" if doubled else "less than"
            words = f"iteration {point.iteration} left out: its loss is {what} what is expected"
            rest = [p for p in case.after if p is not point]
            return rest, (passed(f"{words}, a known way of logging", code="verify.first-line"),)
    return case.after, ()


def _expected(case: Case) -> Callable[[Point], tuple[float, float] | None]:
    """Loss and noise to expect at a point: that of before, else the band's."""
    before = _series("loss", case.before)
    band, old = band_of(before), dict(before)
    noise = band.sigma if band else step_spread([y for _, y in before])

    def of(point: Point) -> tuple[float, float] | None:
        if point.iteration in old:
            return old[point.iteration], noise
        return (band.curve.at(point.iteration), noise) if band else None

    return of


def pair_findings(loss: Quantity, norm: Quantity, case: Case) -> Iterator[Finding]:
    """What differs at iterations logged twice, where both saw the same batches."""
    cause = diagnosis(loss, norm)
    for quantity in (loss, norm):
        pair = quantity.pair
        if pair is None or not quantity.differs:
            continue
        share = f"{abs(pair.mean):.2g} of the noise" if abs(pair.mean) < 10 else "far more"
        way = "above" if pair.z > 0 else "below"
        words = f"the {quantity.name} lies {way} that of before at the same iterations"
        words += f" (by {share}, z {pair.z:.1f}, {pair.n} compared): {cause}"
        limit = PAIR_FAIL if pair.n >= FEW else PAIR_FAIL_FEW
        bad_way = pair.z > 0 or quantity.name != "loss"
        if abs(pair.z) >= limit and abs(pair.mean) >= LEAST_MEAN and bad_way:
            yield failed(words, remedy=case.go_back, code=_code(quantity, "pair"))
        elif abs(pair.mean) >= LEAST_MEAN:
            yield warned(
                words,
                remedy="watch it for some hundred iterations, with both logs side by side",
                code=_code(quantity, "pair"),
            )


def band_findings(loss: Quantity, norm: Quantity, case: Case) -> Iterator[Finding]:
    """What lies outside the band of before."""
    for quantity, (fails, warns) in ((loss, LOSS_BAND), (norm, NORM_BAND)):
        at = quantity.place
        if at is None:
            continue
        high = (at.highest, at.lasts_high, "above")
        low = (-at.lowest, at.lasts_low, "below")
        is_loss = quantity.name == "loss"
        z, lasts, way = max(high, low) if not is_loss else high
        words = f"the {quantity.name} lies {way} the band of before (z {z:.1f})"
        if z >= fails and lasts:
            yield failed(words, remedy=case.go_back, code=_code(quantity, "band"))
        elif z >= warns:
            came_back = ", a spike that came back" if not lasts else ""
            yield warned(
                words + came_back,
                remedy="watch it for some hundred iterations",
                code=_code(quantity, "band"),
            )
        elif is_loss and low[0] >= fails:
            yield warned(
                f"the loss lies below the band of before (z {-low[0]:.1f})",
                remedy="was data seen twice, or an older and better checkpoint loaded?",
                code=_code(quantity, "band"),
            )


def order_findings(loss: Quantity, options: Options) -> Iterator[Finding]:
    """Whether both saw the same batches, where they should have."""
    pair = loss.pair
    if not options.same_data or pair is None or pair.equal or pair.n < UNLIKE_AT_LEAST:
        return
    if pair.r is not None and pair.r < UNLIKE:
        yield warned(
            f"the losses do not go together with those of before (r {pair.r:.2f}, {pair.n}"
            " compared): other data order, random numbers or batch",
            remedy="was the data loader's state restored? where it never is: `same_data: false`",
            code="verify.order",
        )


def diagnosis(loss: Quantity, norm: Quantity) -> str:
    """The likely cause of what differs; empty where nothing does."""
    pair = loss.pair
    if loss.differs and pair is not None:
        return _LATER if pair.first_equal else "weights"
    if pair is not None and not pair.same_data and pair.n >= UNLIKE_AT_LEAST:
        raised = loss.place is not None and loss.place.highest >= LOSS_BAND[0]
        return "weights or optimizer, with another data order" if raised else "data order"
    if norm.differs and norm.pair is not None:
        return _LATER if norm.pair.first_equal else "batch or world size"
    if loss.place is not None and loss.place.highest >= LOSS_BAND[1]:
        return "weights, optimizer or data"
    return ""


def _code(quantity: Quantity, kind: str) -> str:
    return f"verify.{'loss' if quantity.name == 'loss' else 'grad-norm'}.{kind}"
