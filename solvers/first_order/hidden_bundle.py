"""hidden-bundle: the level method in the coordinates in which the problem is convex.

    bound    the least value of all cuts over V
    level    bound + κ (best − bound)
    next u   the projection of the last u onto {cuts of the objective <= level, cuts of the rows <= 0}

Lemaréchal, Nemirovskii and Nesterov, New variants of bundle methods, 1995 (the level method); cuts in
hidden coordinates are minorants everywhere (`cuts`), so that neither smoothness nor a constant is asked
for, and the bound is a certificate if the coordinates are right. While no feasible point is known, u is
projected onto the cuts of the rows alone. A step that leaves X, which can happen where bounds of X are
curved in u, is shortened until it ends inside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.coordinates.continuation import reached
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.first_order.cut_programs import Bound, CutPrograms, HiddenSet, Region
from hcmodel.solvers.first_order.cuts import (
    OBJECTIVE,
    Bundle,
    CutPoint,
    bent_equalities,
    cut_point,
)
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.numerics import BACKEND_ROUNDING, BOTTOM, DATA_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import DEFAULT_BACKEND, make_backend
from hcmodel.solvers.result import Termination, WeightedPoint
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class BundleLimits:
    """Numbers that seldom have to be changed.

    *black boxes*: the value with which the figures of `tests/benchmarks/black_boxes.py` were measured.
    """

    # The gap and the violation that end a run, in shares of those that are allowed.
    gap_share: float = 0.5  # room for the rounding that the certificate takes off
    violation_share: float = 0.5  # the same
    # The gap that is allowed at an optimum of 0, in tolerances.
    smallest_value: float = 1e-3  # as the status `optimal` asks for
    # Half the sides of the box that stands for an unbounded V, in natural units, its factor, its limit.
    reach: float = 2.0  # black boxes: e² in a logarithm
    growth: float = 4.0  # black boxes
    largest_reach: float = 1e8  # as the trust region of the methods of second order
    # The share of the box that a step towards a better point uses up before the box grows.
    used_up: float = 0.5  # black boxes
    # Cuts that are kept: this many, and this many for each unknown; cuts younger than this stay.
    cuts: int = 200  # black boxes
    cuts_per_unknown: int = 4  # the two programs have at most n + 1 active cuts each
    youth: int = 10  # black boxes
    # A multiplier from which a cut counts as used.
    used: float = 10 * BACKEND_ROUNDING  # ten times the accuracy of the backend
    # Unknowns up to which any solution of the linear programs serves, and not only a vertex.
    few: int = 4  # black boxes (Chebyshev–Rosenbrock n = 10 needs vertices)
    # Unknowns up to which small dense programs are solved by simplex and active sets.
    small: int = 15  # black boxes: as many as its family has, in half the time of the backends
    # How far beyond a violated row the next point is to lie, in multiples of the violation.
    margin: float = 1.0  # black boxes
    # Attempts to shorten a step until it ends where all functions are defined; their factor.
    shortenings: int = 40  # 0.5⁴⁰ is rounding
    shortening: float = 0.5  # black boxes
    # A cut above its function by more than this, relatively, contradicts the coordinates.
    contradiction: float = 1e-6  # derivatives by differences are exact to about 1e-8
    # Iterations in a row in which neither bound nor value improves by rounding, which end a run.
    patience: int = 30  # black boxes
    progress: float = DATA_ROUNDING
    # A step as short as this, in tolerances and natural units, brings little new (at bounds of X that V
    # does not know); as many in a row end a run too.
    short: float = 1.0  # black boxes


@dataclass(frozen=True)
class HiddenBundleOptions:
    """Options of `hidden-bundle`."""

    level: float = 0.3
    """κ: where the level lies between the bound (0) and the best value (1)."""
    backend: str = DEFAULT_BACKEND
    """The backend of the quadratic programs."""
    limits: BundleLimits = BundleLimits()
    """Numbers that seldom have to be changed."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level lies between 0 and 1, not at {self.level!r}")
        make_backend(self.backend)


@dataclass(frozen=True)
class _WholeDomain:
    """x as its own coordinate: V is X."""

    coordinates: Coordinates
    bounds: Domain
    normals: FloatArray


@dataclass(frozen=True)
class HiddenBundleState(State):
    """The bundle, the latest bound (`model`), and the best point; `shown` are those of the best bound."""

    where: HiddenSet | None = None
    bundle: Bundle | None = None
    metric: FloatArray | None = None
    model: Bound | None = None
    best: CutPoint | None = None
    reach: float = 1.0
    upper: float = np.inf
    idle: int = 0
    short: int = 0
    shown: tuple[Bundle, Bound] | None = None

    def weighted_points(self) -> tuple[WeightedPoint, ...]:
        return self.weighted if self.shown is None else _weighted(*self.shown)


class HiddenBundle:
    """`hidden-bundle`."""

    def __init__(self, options: HiddenBundleOptions | None = None) -> None:
        self.options = options or HiddenBundleOptions()
        limits, backend = self.options.limits, make_backend(self.options.backend)
        self._programs = CutPrograms(backend, BACKEND_ROUNDING, limits.few, limits.small)

    def init(self, task: Task, start: Evaluation) -> HiddenBundleState:
        where = _hidden_set(task, start)
        first = None if where is None else cut_point(where.coordinates, start)
        none = np.zeros(start.rows.size)
        if where is None or first is None:
            return HiddenBundleState(start, none, stop=Termination.STALLED)
        lower, upper = where.bounds.entry_bounds()
        metric = np.minimum(np.maximum(np.abs(first.image), 1.0), upper - lower)
        state = HiddenBundleState(
            current=start,
            multipliers=none,
            where=where,
            bundle=Bundle.of(first),
            metric=np.where(metric > 0, metric, 1.0),
            reach=self.options.limits.reach,
        )
        return self._judged(task, state)

    def step(self, task: Task, state: HiddenBundleState) -> HiddenBundleState:
        bundle, model = state.bundle, state.model
        assert bundle is not None
        assert model is not None
        assert state.metric is not None
        level = model.value + self.options.level * (self._aim(state) - model.value)
        region = self._region(state, bundle.last.image, state.reach)
        found = self._projected(bundle, region, level)
        goal, used = model.point, np.zeros(bundle.size)
        if found is not None:
            goal, used = found
        point = None
        bases = [bundle.last] if state.best in (None, bundle.last) else [state.best, bundle.last]
        for aim in (goal, model.point):
            for base in bases:
                point = point or self._reached(task, state, base, aim)
        if point is None:
            return _finished(state, Termination.STALLED)
        limits = self.options.limits
        active = (used > limits.used) | (model.weights > limits.used)
        last = bundle.last
        extended = bundle.aged(active).extended(point)
        excess = max(bundle.above(point), bundle.below(point), bent_equalities(last, point))
        length = float(np.linalg.norm((point.image - last.image) / state.metric))
        state = replace(
            state,
            current=point.evaluation,
            bundle=extended,
            level=level,
            step=length,
            short=state.short + 1 if length <= limits.short * task.tolerance else 0,
        )
        if excess > limits.contradiction:
            return replace(state, stop=Termination.CONTRADICTED, bound=-np.inf, shown=None)
        return self._judged(task, state)

    def terminate(self, task: Task, state: HiddenBundleState) -> Termination | None:
        return None

    # ---- the parts of a step

    def _aim(self, state: HiddenBundleState) -> float:
        """The value below which the level lies: the best one, or what the last point may be worth."""
        assert state.bundle is not None
        assert state.model is not None
        last = state.bundle.last
        if not np.isfinite(state.upper):
            return np.inf
        return min(state.upper, max(last.charged(state.multipliers), state.model.value))

    def _projected(
        self, bundle: Bundle, region: Region, level: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """The next image and the weights of the cuts that hold it.

        Rows that the last point violates are to be satisfied by a margin, where that is possible: their
        cuts lie below them, and on the cuts themselves the violation would only become smaller.
        """
        last = bundle.last
        if last.violation > 0:
            evaluation = last.evaluation
            rows = evaluation.violations[: evaluation.inequalities]
            margins = self.options.limits.margin * rows
            found = self._programs.projection(bundle, last, region, level, margins)
            if found is not None:
                return found
        return self._programs.projection(bundle, last, region, level)

    def _region(self, state: HiddenBundleState, center: FloatArray, reach: float) -> Region:
        assert state.where is not None
        assert state.metric is not None
        return Region.around(state.where, center, state.metric, reach)

    def _reached(
        self, task: Task, state: HiddenBundleState, base: CutPoint | None, goal: FloatArray
    ) -> CutPoint | None:
        """The point with image `goal`, or one on the way there that can be evaluated and is new."""
        limits = self.options.limits
        assert state.where is not None
        assert state.bundle is not None
        coordinates, seen = state.where.coordinates, state.bundle.points
        assert base is not None

        assert state.metric is not None
        for _ in range(limits.shortenings):
            x = reached(coordinates, base.evaluation.point, goal, state.metric)
            if x is None:
                return None
            x = task.settled(x)
            if _is_among(x, seen):
                return None
            point = cut_point(coordinates, task.oracle.at(x))
            if point is not None:
                return point
            goal = base.image + limits.shortening * (coordinates.image(x) - base.image)
        return None

    def _judged(self, task: Task, state: HiddenBundleState) -> HiddenBundleState:
        """With the bound of all cuts, the best point by it, and whether the run is over."""
        limits, bundle = self.options.limits, state.bundle
        assert bundle is not None
        center = (state.best or bundle.last).image
        reach, model = state.reach, None
        while reach <= limits.largest_reach:
            region = self._region(state, center, reach)
            model = self._programs.bound(bundle, bundle.last, region)
            if model is None or not model.conflict or model.whole or not region.is_open:
                break
            reach *= limits.growth  # the box alone may contradict the rows
        if model is None:
            return _finished(state, Termination.BACKEND_FAILED)
        count = bundle.last.evaluation.inequalities
        multipliers = model.row_multipliers(bundle, count)
        if model.conflict:
            return self._conflicting(replace(state, reach=reach, model=model), multipliers)
        state = replace(state, reach=reach, model=model, multipliers=multipliers)
        state = self._with_best(task, state)
        return self._ended(task, self._thinned(state))

    def _with_best(self, task: Task, state: HiddenBundleState) -> HiddenBundleState:
        """The feasible point that is best if violations are charged by the multipliers."""
        bundle, model, limits = state.bundle, state.model, self.options.limits
        assert bundle is not None
        assert model is not None
        allowed = limits.violation_share * task.tolerance
        best, upper = None, np.inf
        for point in bundle.points:
            if point.violation > allowed:
                continue
            value = point.charged(state.multipliers)
            if value < upper:
                best, upper = point, value
        improved = upper < state.upper - limits.progress * abs(upper)
        risen = model.value > state.bound + limits.progress * abs(model.value)
        bound, shown = state.bound, state.shown
        if model.whole and model.value > bound:
            bound, shown = model.value, (bundle, model)
        reach = state.reach
        if best is not None and state.best is not None and best is not state.best:
            moved = np.abs(best.image - state.best.image) / state.metric
            if not model.whole and float(np.max(moved)) > limits.used_up * reach:
                reach *= limits.growth
        return replace(
            state,
            best=best,
            upper=upper,
            bound=bound,
            shown=shown,
            reach=reach,
            idle=0 if improved or risen else state.idle + 1,
        )

    def _thinned(self, state: HiddenBundleState) -> HiddenBundleState:
        """Without the cuts that have been idle longest; weights of the bound go with them."""
        limits, bundle, model = self.options.limits, state.bundle, state.model
        assert bundle is not None
        assert model is not None
        most = limits.cuts + limits.cuts_per_unknown * bundle.slopes.shape[1]
        keep = () if state.best is None else (state.best,)
        if bundle.size <= most:
            return state
        thinner = bundle.aged(model.weights > limits.used)
        thinner = replace(bundle, ages=np.minimum(thinner.ages, bundle.ages))
        thinner = thinner.thinned(most, limits.youth, keep)
        if thinner.size == bundle.size:
            return state
        weights = np.zeros(
            thinner.size
        )  # those of cuts that stay are not asked for before the next LP
        return replace(state, bundle=thinner, model=replace(model, weights=weights))

    def _ended(self, task: Task, state: HiddenBundleState) -> HiddenBundleState:
        limits, model = self.options.limits, state.model
        assert model is not None
        stop = None
        if state.best is not None:
            evaluation = state.best.evaluation
            plain = task.oracle.outer.plain_objective
            allowed = task.tolerance * (abs(plain(evaluation.objective)) + limits.smallest_value)
            charged = state.upper - evaluation.objective
            gap = plain(state.upper) - plain(model.value)
            small = limits.gap_share * allowed
            if gap <= small and charged <= small:
                if model.whole:
                    stop = Termination.GAP_CLOSED
                elif state.reach >= limits.largest_reach:
                    stop = Termination.STALLED
                else:
                    state = replace(state, reach=limits.growth * state.reach, idle=0)
            if evaluation.objective < -BOTTOM and not np.isfinite(task.domain.diameter()):
                stop = Termination.UNBOUNDED
        if stop is None and max(state.idle, state.short) >= limits.patience:
            stop = Termination.STALLED
        return state if stop is None else _finished(state, stop)

    def _conflicting(self, state: HiddenBundleState, multipliers: FloatArray) -> HiddenBundleState:
        """The cuts of the rows contradict each other: no point is feasible, if these hold."""
        bundle, model = state.bundle, state.model
        assert bundle is not None
        assert model is not None
        least = min(bundle.points, key=lambda point: point.violation)
        return replace(
            state,
            current=least.evaluation,
            multipliers=np.zeros(multipliers.size),
            conflict=multipliers,
            shown=(bundle, model),
            stop=Termination.INFEASIBLE_STATIONARY,
        )


def _is_among(x: FloatArray, points: tuple[CutPoint, ...]) -> bool:
    """Whether one of the points is exactly this one."""
    for each in points:
        there = each.evaluation.point
        if there[0] == x[0] and np.array_equal(there, x):
            return True
    return False


def _finished(state: HiddenBundleState, stop: Termination) -> HiddenBundleState:
    """The run is over, at its best point."""
    current = state.current if state.best is None else state.best.evaluation
    return replace(state, stop=stop, current=current)


def _hidden_set(task: Task, start: Evaluation) -> HiddenSet | None:
    """The coordinates and V that the task has at its start; x itself and X where it has none."""
    if task.images is not None:
        found: HiddenSet | None = task.images(start)
        return found
    return _WholeDomain(PlainCoordinates(task.domain), task.domain, np.zeros((0, 0)))


def _weighted(bundle: Bundle, model: Bound) -> tuple[WeightedPoint, ...]:
    """The points of the bundle with the weights that the bound gives to their cuts."""
    points, last = bundle.points, bundle.last.evaluation
    objective = bundle.owners == OBJECTIVE
    of_objective = np.bincount(
        bundle.sources[objective], weights=model.weights[objective], minlength=len(points)
    )
    of_rows = np.zeros((len(points), last.rows.size))
    of_rows[bundle.sources[~objective], bundle.owners[~objective]] = model.weights[~objective]
    of_rows[-1, last.inequalities :] = model.equalities
    pairs = zip(points, of_objective.tolist(), of_rows, strict=True)
    return tuple(WeightedPoint(point.evaluation, weight, rows) for point, weight, rows in pairs)
