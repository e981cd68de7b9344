"""Declared coordinates settled by enclosures of second derivatives, for models of a few unknowns.

Boxes of the domain are halved until the Hessian of each function in u is shown to be semidefinite in
all of them (the model is convex: the bound is proven), or until the Lagrangian of the bound certainly
bends down at the middle of one (the coordinates are refuted). Samples miss a narrow well; halved boxes do
not. A formula without an enclosure, or one that takes too many boxes, leaves the question open.

In u = c(x) the Hessian of F is congruent to ∇²F − Σ s_k ∇²c_k with Jᵀs = ∇F, J the Jacobian of c.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import BOXES
from hcmodel.certify.minorants.charts import Chart, chart_of
from hcmodel.certify.minorants.search import Search
from hcmodel.facts.interval_jets import JETS, Interval, Jet, NotEnclosed, enclosed, seeds
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import MERIT_ROUNDING

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Settlement:
    """What enclosures show: the functions are convex in u, or a point at which the Lagrangian is not.

    `lowest` are middles of boxes in which nothing was shown, those with the least objective first.
    """

    convex: bool = False
    bends_at: FloatArray | None = None
    lowest: tuple[FloatArray, ...] = ()


OPEN = Settlement()
# What a solve and an analysis say of coordinates that were confirmed.
SHOWN = "convex in the declared coordinates, shown by enclosures of second derivatives"


def settle(search: Search) -> Settlement:
    """Whether the functions that a bound rests on are convex in the declared coordinates."""
    best = search.best
    if best is None:
        return OPEN
    used = np.any([minorant.multipliers != 0 for minorant in search.minorants], axis=0)
    return _settled(search.form, search.chart, best.multipliers, np.flatnonzero(used))


def settle_form(form: Form) -> Settlement:
    """Whether objective and rows, all of them, are convex in the declared coordinates of a form.

    `bends_at` is a point at which the objective is not.
    """
    if not _is_small(form):
        return OPEN
    chart = chart_of(form, form.oracle().at(form.domain.middle()))
    rows = int(form.canonical.outer.size)
    return OPEN if chart is None else _settled(form, chart, np.zeros(rows), np.arange(rows))


def _is_small(form: Form) -> bool:
    if not form.canonical.outer.is_written or form.chain.adds_variables:
        return False
    return form.domain.is_box and form.domain.dimension <= BOXES.most_unknowns


def _settled(
    form: Form, chart: Chart, multipliers: FloatArray, used: NDArray[np.intp]
) -> Settlement:
    if not _is_small(form):
        return OPEN
    low, high = form.domain.entry_bounds()
    try:
        return _Halving(_Functions(form, chart, multipliers, used)).run(low, high)
    except NotEnclosed:
        return OPEN


class _Functions:
    """Functions over boxes: objective, the rows that are used, Lagrangian, map."""

    def __init__(
        self, form: Form, chart: Chart, multipliers: FloatArray, used: NDArray[np.intp]
    ) -> None:
        self.layout, self.roots = form.canonical.layout, form.canonical.roots
        self.entries = form.entries
        stack = form.stack
        self.logs = np.zeros(form.domain.dimension, dtype=bool)
        if isinstance(stack, LogStack):
            self.logs = stack.logs
        outer = form.canonical.outer
        self.objective = outer.objective
        self.rows = outer.difference.toarray()
        self.multipliers, self.used = multipliers, used
        self.inequalities = outer.inequalities
        # a general map says nothing of the set of its images, unless it acts entry by entry
        self.plain = not (chart.notes or chart.curved or chart.normals.size or form.program.bending)

    def over(self, low: FloatArray, high: FloatArray) -> _Enclosed:
        unknowns = seeds(low, high, self.logs)
        found = enclosed([*self.roots, *self.entries], self.layout, unknowns)
        flat = [_flat(each, unknowns) for each in found]
        first, rest = flat[0], flat[1 : len(self.roots)]
        objective = JETS.sum(first * self.objective)
        rows: list[Jet] = []
        lagrangian = objective
        if rest and self.used.size:
            parts = JETS.concatenate(rest)
            rows = [JETS.sum(parts * self.rows[row]) for row in self.used]
            for row, jet in zip(self.used, rows, strict=True):
                lagrangian = lagrangian + jet * self.multipliers[row]
        entries = flat[len(self.roots) :]
        own = JETS.concatenate(entries) if entries else None
        return _Enclosed(objective, rows, lagrangian, own)


def _flat(value: object, like: Jet) -> Jet:
    if not isinstance(value, Jet):
        value = like[0] * 0.0 + np.ravel(np.asarray(value, dtype=float))
    return JETS.reshape(value, (-1,))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Enclosed:
    """Jets of the functions, each over the same boxes; `map` has the coordinates where they are a map."""

    objective: Jet
    rows: Sequence[Jet]
    lagrangian: Jet
    map: Jet | None

    def hidden(self, jet: Jet) -> Interval:
        """The matrices that are congruent to the Hessians in u, box by box."""
        own = self.map
        if own is None:
            return jet.hessian
        if own.shape[0] != jet.gradient.low.shape[-1]:
            raise NotEnclosed
        slopes = _solved(own.gradient, jet.gradient)
        found = jet.hessian
        for k, slope in enumerate(slopes):
            bent = Interval(own.hessian.low[k], own.hessian.high[k])
            found = found + -(slope.expanded(2) * bent)
        return found

    @property
    def acts_entrywise(self) -> NDArray[np.bool_]:
        """Boxes over which each coordinate is a function of one unknown that certainly moves with it."""
        if self.map is None:
            return np.ones(self.objective.value.low.shape[-1:], dtype=bool)
        gradient = self.map.gradient
        own = np.eye(gradient.low.shape[0], dtype=bool)[:, None, :]
        moves = (gradient.low > 0) | (gradient.high < 0)
        return np.asarray(np.where(own, moves, gradient.is_zero).all(axis=(0, 2)))


def _solved(jacobian: Interval, gradient: Interval) -> list[Interval]:
    """s with Jᵀs = g by elimination; nothing is known where a pivot may be 0."""
    size = gradient.low.shape[-1]
    columns = [
        [Interval(jacobian.low[k, :, i], jacobian.high[k, :, i]) for k in range(size)]
        for i in range(size)
    ]  # the rows of Jᵀ
    right = [Interval(gradient.low[:, i], gradient.high[:, i]) for i in range(size)]
    for i in range(size):
        pivot = columns[i][i].reciprocal
        for j in range(i + 1, size):
            factor = columns[j][i] * pivot
            if factor.is_zero.all():
                continue
            columns[j] = [a + -(factor * b) for a, b in zip(columns[j], columns[i], strict=True)]
            right[j] = right[j] + -(factor * right[i])
    found: list[Interval] = right
    for i in reversed(range(size)):
        total = right[i]
        for j in range(i + 1, size):
            total = total + -(columns[i][j] * found[j])
        found[i] = total * columns[i][i].reciprocal
    return found


def _least(matrix: Interval) -> FloatArray:
    """A number below the least eigenvalue of every symmetric matrix inside, box by box."""
    if matrix.low.shape[-1] == 1:
        return np.asarray(matrix.low[..., 0, 0])
    ends = np.isfinite(matrix.low) & np.isfinite(matrix.high)
    known = np.asarray(ends.all(axis=(-2, -1)))
    safe = known[..., None, None]
    center = np.where(safe, (matrix.low + matrix.high) / 2, 0.0)
    radius = np.where(safe, (matrix.high - matrix.low) / 2, 0.0)
    center = (center + np.swapaxes(center, -1, -2)) / 2
    size = np.abs(center).sum(axis=-1).max(axis=-1)
    reach = radius.sum(axis=-1).max(axis=-1)
    found = np.linalg.eigvalsh(center)[..., 0] - reach * (1 + MERIT_ROUNDING)
    found = found - np.where(size > 0, MERIT_ROUNDING * size, 0.0)
    return np.where(known, found, -np.inf)


class _Halving:
    """Boxes that are halved until each is shown to be convex, or one is not."""

    def __init__(self, functions: _Functions) -> None:
        self.functions = functions
        self.middles: list[tuple[float, FloatArray]] = []

    def run(self, low: FloatArray, high: FloatArray) -> Settlement:
        lows, highs = low[None, :], high[None, :]
        whole = np.where(np.isfinite(high - low), np.maximum(high - low, 0.0), 1.0)
        count, provable, bends, further = 0, self.functions.plain, None, BOXES.further
        for _ in range(BOXES.most_halvings):
            check_time()
            count += len(lows)
            over = self.functions.over(lows, highs)
            convex = self._convex(over)
            provable = provable and bool(over.acts_entrywise[convex].all())
            lows, highs = lows[~convex], highs[~convex]
            if not len(lows):
                break
            found = self._bends(lows, highs)
            bends = found if bends is None else bends
            further -= bends is not None  # a well is near the place where the function bends
            if count > BOXES.most_boxes or further < 0:
                break
            lows, highs = _halved(lows, highs, whole)
        if not len(lows) and bends is None:
            return Settlement(convex=provable)
        return Settlement(bends_at=bends, lowest=tuple(point for _, point in self.middles))

    def _convex(self, over: _Enclosed) -> NDArray[np.bool_]:
        """Boxes over which objective and inequalities are convex and equalities affine in u."""
        functions = self.functions
        shown = _least(over.hidden(over.objective)) >= 0
        shown |= over.hidden(over.objective).is_zero.all(axis=(-2, -1))
        for row, jet in zip(functions.used, over.rows, strict=True):
            matrix = over.hidden(jet)
            flat = matrix.is_zero.all(axis=(-2, -1))
            shown &= (flat | (_least(matrix) >= 0)) if row < functions.inequalities else flat
        return np.broadcast_to(shown, over.lagrangian.value.low.shape).copy()

    def _bends(self, lows: FloatArray, highs: FloatArray) -> FloatArray | None:
        """The middle of a box at which the Lagrangian certainly has negative curvature in u."""
        points = _middle(lows, highs)
        over = self.functions.over(points, points)
        matrix = over.hidden(over.lagrangian)
        value = over.objective.value
        heights = (value.low + value.high) / 2
        self.middles += [
            (float(height), point)
            for height, point in zip(heights, points, strict=True)
            if np.isfinite(height)
        ]
        self.middles = sorted(self.middles, key=lambda each: each[0])[: BOXES.kept]
        gradient = over.lagrangian.gradient
        slope = np.maximum(np.abs(gradient.low), np.abs(gradient.high)).max(axis=-1)
        for i in np.argsort(heights):
            low, high = matrix.low[i], matrix.high[i]
            if not (np.isfinite(low).all() and np.isfinite(high).all()):
                continue
            center, radius = (low + high) / 2, (high - low) / 2
            values, vectors = np.linalg.eigh((center + center.T) / 2)
            v = vectors[:, 0]
            most = float(v @ center @ v + np.abs(v) @ radius @ np.abs(v))
            size = float(np.abs(values).max()) + (float(slope[i]) if np.isfinite(slope[i]) else 0.0)
            if most < -BOXES.bent * size:
                return np.asarray(points[i])
        return None


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """The middle of a box; of one without an end, twice as far out as the other end."""
    with np.errstate(all="ignore"):
        both = low + (high - low) / 2
    up = np.where(low < 0, 0.0, 2 * low + 1)
    down = np.where(high > 0, 0.0, 2 * high - 1)
    open_low, open_high = np.isinf(low), np.isinf(high)
    found = np.where(open_low & open_high, 0.0, np.where(open_low, down, both))
    return np.where(open_high & ~open_low, up, found)


def _halved(
    lows: FloatArray, highs: FloatArray, whole: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Each box cut in two across its longest side, in units of the domain."""
    with np.errstate(all="ignore"):
        lengths = np.where(whole > 0, (highs - lows) / np.where(whole > 0, whole, 1.0), 0.0)
    side = np.argmax(np.nan_to_num(lengths, nan=np.inf, posinf=np.inf), axis=1)
    rows = np.arange(len(lows))
    cut = _middle(lows, highs)[rows, side]
    left, right = highs.copy(), lows.copy()
    left[rows, side] = right[rows, side] = cut
    return np.concatenate([lows, right]), np.concatenate([left, highs])
