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
from hcmodel.expressions.graph import merge
from hcmodel.facts.interval_jets import JETS, Interval, Jet, NotEnclosed, enclosed, seeds
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import MERIT_ROUNDING
from hcmodel.solvers.oracle import Evaluation

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


def settle_form(
    form: Form, evaluation: Evaluation | None = None, multipliers: FloatArray | None = None
) -> Settlement:
    """Whether objective and rows, all of them, are convex in the declared coordinates of a form.

    `bends_at` is a point at which the Lagrangian of the multipliers, or else the objective, is not.
    """
    if not is_small(form):
        return OPEN
    there = form.oracle().at(form.domain.middle()) if evaluation is None else evaluation
    chart, rows = chart_of(form, there), int(form.canonical.outer.size)
    if chart is None:
        return OPEN
    return _settled(
        form, chart, np.zeros(rows) if multipliers is None else multipliers, np.arange(rows)
    )


def is_small(form: Form, most_unknowns: int = BOXES.most_unknowns) -> bool:
    """Whether a form over a box has so few unknowns that enclosures of derivatives take little time."""
    if not form.canonical.outer.is_written or form.chain.adds_variables:
        return False
    domain = form.domain
    return domain.is_box and domain.dimension <= most_unknowns and some(_moving(form))


def _moving(form: Form) -> NDArray[np.bool_]:
    """Unknowns of a box whose bounds are not equal."""
    low, high = form.domain.entry_bounds()
    return np.asarray(low < high)


def _settled(
    form: Form, chart: Chart, multipliers: FloatArray, used: NDArray[np.intp]
) -> Settlement:
    if not is_small(form):
        return OPEN
    low, high = form.domain.entry_bounds()
    try:
        return _Halving(EnclosedFunctions(form, chart, multipliers, used)).run(low, high)
    except NotEnclosed:
        return OPEN


class EnclosedFunctions:
    """EnclosedFunctions over boxes: objective, the rows that are used, Lagrangian, map.

    Raises `NotEnclosed` if the map does not have as many entries as there are unknowns.
    """

    def __init__(
        self, form: Form, chart: Chart, multipliers: FloatArray, used: NDArray[np.intp]
    ) -> None:
        self.layout, self.roots = form.canonical.layout, form.canonical.roots
        self.entries = form.entries
        self.graph, self.moving = merge([*self.roots, *self.entries]), _moving(form)
        if self.entries and sum(each.size for each in self.entries) != np.sum(self.moving):
            raise NotEnclosed
        outer = form.canonical.outer
        self.logs, self.objective = form.program.logs, outer.objective
        self.rows = outer.difference.toarray()
        self.multipliers, self.used = multipliers, used
        self.inequalities = outer.inequalities
        # a general map says nothing of the set of its images, unless it acts entry by entry
        self.plain = not (chart.notes or chart.curved or chart.normals.size or form.program.bending)

    def over(self, low: FloatArray, high: FloatArray) -> Enclosed:
        unknowns = seeds(low, high, self.logs, self.moving)
        found = enclosed(self.graph, self.layout, unknowns)
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
        return Enclosed(objective, rows, lagrangian, own)


def _flat(value: object, like: Jet) -> Jet:
    if not isinstance(value, Jet):
        value = like[0] * 0.0 + np.ravel(np.asarray(value, dtype=float))
    return JETS.reshape(value, (-1,))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Enclosed:
    """Jets of the functions, each over the same boxes; `map` has the coordinates where they are a map."""

    objective: Jet
    rows: Sequence[Jet]
    lagrangian: Jet
    map: Jet | None

    def among(self, boxes: slice | NDArray[np.intp]) -> Enclosed:
        """The same over some of the boxes."""
        return Enclosed(
            self.objective.among(boxes),
            [row.among(boxes) for row in self.rows],
            self.lagrangian.among(boxes),
            None if self.map is None else self.map.among(boxes),
        )

    def hidden(self, jet: Jet) -> Interval:
        """The matrices that are congruent to the Hessians in u, box by box."""
        own = self.map
        if own is None:
            return jet.hessian
        slopes = _solved(own.gradient, jet.gradient)
        found = jet.hessian
        for k, slope in enumerate(slopes):
            bent = Interval(own.hessian.low[k], own.hessian.high[k])
            found = found + -(slope.expanded(2) * bent)
        return found

    @property
    def bends(self) -> NDArray[np.bool_]:
        """Points, as boxes, at which the Lagrangian certainly has negative curvature in u.

        Relative to all curvatures and to its slope.
        """
        gradient = self.lagrangian.gradient
        slope = np.maximum(np.abs(gradient.low), np.abs(gradient.high)).max(axis=-1)
        known, center, radius = _centered(self.hidden(self.lagrangian))
        values, vectors = np.linalg.eigh(center)
        v = vectors[..., :1]
        turned, sizes = np.swapaxes(v, -1, -2), np.abs(v)
        most = turned @ center @ v + np.swapaxes(sizes, -1, -2) @ radius @ sizes
        size = np.abs(values).max(axis=-1) + np.where(np.isfinite(slope), slope, 0.0)
        return np.asarray(known & (most[..., 0, 0] < -BOXES.bent * size))

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
    known, center, radius = _centered(matrix)
    size = np.abs(center).sum(axis=-1).max(axis=-1)
    # an unknown that the function does not have takes nothing from the others
    absent = matrix.is_zero.all(axis=-1)
    unknowns = np.arange(matrix.low.shape[-1])
    center[..., unknowns, unknowns] += np.where(absent, size[..., None], 0.0)
    reach = radius.sum(axis=-1).max(axis=-1)
    found = np.linalg.eigvalsh(center)[..., 0] - reach * (1 + MERIT_ROUNDING)
    found = found - np.where(size > 0, MERIT_ROUNDING * size, 0.0)
    return np.where(known, found, -np.inf)


def _centered(matrix: Interval) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Which matrices are enclosed, their symmetric middles, and how far their entries are from these."""
    ends = np.isfinite(matrix.low) & np.isfinite(matrix.high)
    known = np.asarray(ends.all(axis=(-2, -1)))
    safe = known[..., None, None]
    center = np.where(safe, (matrix.low + matrix.high) / 2, 0.0)
    radius = np.where(safe, (matrix.high - matrix.low) / 2, 0.0)
    return known, (center + np.swapaxes(center, -1, -2)) / 2, radius


class _Halving:
    """Boxes that are halved until each is shown to be convex, or one is not."""

    def __init__(self, functions: EnclosedFunctions) -> None:
        self.functions, self.provable = functions, functions.plain
        self.count, self.shown, self.further = 0, False, BOXES.further
        self.bends_at: FloatArray | None = None
        self.middles: list[tuple[float, FloatArray]] = []

    def run(self, low: FloatArray, high: FloatArray) -> Settlement:
        lows, highs = low[None, :], high[None, :]
        whole = np.where(np.isfinite(high - low), np.maximum(high - low, 0.0), 1.0)
        for _ in range(0, BOXES.most_halvings, BOXES.halvings):
            check_time()
            for _ in range(BOXES.halvings):
                lows, highs = _halved(lows, highs, whole)
            left = self._look(lows, highs)
            if not left.size:
                break
            lows, highs = lows[left], highs[left]
            if self._ends(len(left) << BOXES.halvings):
                return self._settlement(convex=False)
        return self._settlement(convex=not left.size and self.provable)

    def _settlement(self, convex: bool) -> Settlement:
        if self.bends_at is None and convex:
            return Settlement(convex=True)
        lowest = tuple(point for _, point in self.middles)
        return Settlement(bends_at=self.bends_at, lowest=lowest)

    def _look(self, lows: FloatArray, highs: FloatArray) -> NDArray[np.intp]:
        """Boxes in which nothing is shown yet; the lowest of them once it is known that some bend."""
        boxes, middles = len(lows), _middle(lows, highs)
        over = self.functions.over(
            np.concatenate([lows, middles]), np.concatenate([highs, middles])
        )
        convex = self._convex(over.among(slice(0, boxes)), self.provable)
        self.provable = self.provable and bool(over.acts_entrywise[:boxes][convex].all())
        self.count, self.shown = self.count + boxes, self.shown or bool(convex.any())
        left = (~convex).nonzero()[0]
        if left.size:
            bends = self._bends(over.among(boxes + left), middles[left])
            self.bends_at = bends if self.bends_at is None else self.bends_at
        if self.bends_at is not None:
            heights = np.broadcast_to(over.objective.value.low, 2 * boxes)
            left = left[heights[left].argsort(kind="stable")[: BOXES.most_kept]]
        return left

    def _ends(self, following: int) -> bool:
        """Whether the boxes that would follow are not to be looked at."""
        if self.bends_at is not None:
            self.further -= BOXES.halvings
            return self.further < 0
        if self.count > BOXES.boxes_without_proof and not self.shown:
            return True
        return self.count + following > (BOXES.most_boxes if self.provable else BOXES.unproven)

    def _convex(self, over: Enclosed, provable: bool) -> NDArray[np.bool_]:
        """Boxes over which objective and inequalities are convex and equalities affine in u.

        Where that would prove nothing, those over which the Lagrangian is: it bends in none of them.
        """
        functions = self.functions
        count = over.lagrangian.value.low.shape
        if not provable:
            return np.broadcast_to(_shown(over.hidden(over.lagrangian)), count).copy()
        shown = _shown(over.hidden(over.objective))
        for row, jet in zip(functions.used, over.rows, strict=True):
            matrix = over.hidden(jet)
            inequality = row < functions.inequalities
            shown &= _shown(matrix) if inequality else matrix.is_zero.all(axis=(-2, -1))
        return np.broadcast_to(shown, count).copy()

    def _bends(self, over: Enclosed, points: FloatArray) -> FloatArray | None:
        """The lowest of some points at which the Lagrangian certainly has negative curvature in u."""
        value = over.objective.value
        heights = np.broadcast_to((value.low + value.high) / 2, len(points))
        order = heights.argsort(kind="stable")  # what is not a number comes last
        best = order[: BOXES.kept][np.isfinite(heights[order[: BOXES.kept]])]
        self.middles += [(float(heights[i]), points[i]) for i in best]
        self.middles = sorted(self.middles, key=lambda each: each[0])[: BOXES.kept]
        bent = order[over.bends[order]]
        return np.asarray(points[bent[0]]) if bent.size else None


def _shown(matrix: Interval) -> NDArray[np.bool_]:
    """Boxes over which all matrices inside are semidefinite."""
    return np.asarray((_least(matrix) >= 0) | matrix.is_zero.all(axis=(-2, -1)))


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
