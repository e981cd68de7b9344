"""Certified lower bounds: F1* >= L(x̃, λ, ν) + min over v in V of s·(v − c(x̃)), s the slope of L by u.

L = F1 + λ·g + ν·h with λ >= 0 is convex in hidden coordinates, so this holds at every point x̃ and for all
multipliers, whoever found them; a good pair only makes the bound tight. Pairs are improved here by Newton
steps on the whole problem, which refine the multipliers, and on L alone, which refine x̃. The same bound
of a weighted sum of the rows, above 0, proves that no feasible point exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.bounding_sets import least
from hcmodel.charts import Chart, MapChart, PlainChart
from hcmodel.forms import Form
from hcmodel.level_sets import Ball, level_ball
from hcmodel.newton_steps import constrained_step, lagrangian_step, polishing_step, repair_weights
from hcmodel.solvers import kkt
from hcmodel.solvers.domain import Domain
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.theory import Constants

FloatArray = NDArray[np.float64]

# Newton steps on the Lagrangian alone.
ROUNDS = 3
# Newton steps on the whole problem, in this order: the solution may be at hand, or far.
Step = Callable[[Form, Oracle, Evaluation, FloatArray], tuple[FloatArray, FloatArray] | None]
STEPS: tuple[Step, ...] = (
    *(polishing_step, polishing_step, constrained_step, polishing_step),
    *(constrained_step, polishing_step, constrained_step, polishing_step),
)
# Steps in a row that may close less than a share of the gap before the search ends.
PATIENCE = 3
WORTH = 0.1
# Rounding of sums, relative to the size of their terms.
ROUNDING = 1e-15
# The gap, relative to the value, that is good enough where no target is given.
FINEST = 1e-11
# A hidden Hessian with an eigenvalue below minus this, relative to its size, contradicts the map.
CURVED = 1e-6
# The widths within which rows count as active when multipliers are fitted.
ACTIVE = (1e-9, 1e-6)
# How far points may count as on a face of X without being there, relative to their size.
FACE = 1e-10


@dataclass(frozen=True)
class LowerBound:
    """A number that the objective, to be minimised, does not fall below at a feasible point.

    `conditions` say in words what this rests on, `points` how many evaluations it took, and
    `reference` where it was taken.
    """

    value: float
    conditions: tuple[str, ...]
    points: int
    reference: FloatArray


def lower_bound(
    form: Form, evaluation: Evaluation, multipliers: FloatArray, *, target: float | None = None
) -> LowerBound | None:
    """The best bound found from a point and multipliers of the form, in units of the plain objective.

    Ends as soon as the gap to the point's own value is at most `target`. None where the form has no
    hidden coordinates, where no finite bound is found, and where the form is visibly not convex.
    """
    search = _Search.of(form, form.oracle(), evaluation)
    if search is None:
        return None
    outer = form.canonical.outer
    sign = 1.0 if outer.objective[0] >= 0 else -1.0

    def plain(value: float) -> float:
        return sign * float(np.exp(sign * value)) if outer.log_objective else value

    value = plain(evaluation.objective)
    wanted = FINEST * abs(value) if target is None else target

    def enough(bound: float) -> bool:
        return value - plain(bound) <= wanted

    with np.errstate(all="ignore"):
        search.improve(evaluation, multipliers, enough)
        return search.result(plain)


def infeasibility(
    form: Form, evaluation: Evaluation, weights: FloatArray | None
) -> LowerBound | None:
    """A proof that no feasible point exists: Σ w_i row_i is at least `value` > 0 wherever x lies in X.

    Weights are nonnegative on inequalities, and sum to 1 in size. None where there is no proof.
    """
    outer = replace(form.canonical.outer, log_objective=False)
    oracle = Oracle(form.stack, outer, parts=(False, True))
    search = _Search.of(form, oracle, evaluation)
    if search is None or not evaluation.rows.size:
        return None
    here = oracle.at(evaluation.point)
    candidates = [] if weights is None else [weights]
    candidates += [np.where(here.violations > 0, np.sign(here.rows), 0.0)]
    for _ in range(ROUNDS):
        repaired = repair_weights(search.form, here)
        candidates += [] if repaired is None else [repaired]
        for each in candidates:
            search.consider(here, _unit(each))
        if search.value > 0 or not search.pairs:
            break
        search.descend(here, search.best[1], _positive)
        if search.value > 0:
            break
        here, candidates = search.best[0], []
    if not search.value > 0 and search.pairs:
        for probing in (False, True):
            if not search.value > 0:
                search.enclose(probing)
    return search.result(float) if search.value > 0 else None


def _positive(bound: float) -> bool:
    return bound > 0


def _unit(weights: FloatArray) -> FloatArray:
    return weights / max(float(np.sum(np.abs(weights))), 1e-300)


def gradient_domination(
    form: Form, evaluation: Evaluation, multipliers: FloatArray, constants: Constants
) -> float | None:
    """A bound of F1(x) − F1* from constants of an unknown map, for which the user vouches.

        F1(x) − F1* <= −λ·g − ν·h + (D_U/μ_c)·dist(−∇L(x), N_X(x)),   x in X

    None without μ_c and D_U, and for models with kinks, to which the constants do not belong.
    """
    if constants.mu_c is None or constants.diameter_u is None or constants.mu_c <= 0:
        return None
    if form.definitions or form.stack.kinked or not form.domain.contains(evaluation.point, 1e-12):
        return None
    multipliers = _signed(evaluation, multipliers)
    downhill = -kkt.lagrangian_gradient(evaluation, multipliers)
    if not np.isfinite(downhill).all():
        return None
    rest = form.domain.normal_cone_distance(evaluation.point, downhill)
    # a point counted as on a face may be a little off it
    off = FACE * max(1.0, float(np.max(np.abs(evaluation.point))))
    slack = off * float(np.sum(np.abs(downhill - rest)))
    reach = constants.diameter_u / constants.mu_c
    gap = reach * float(np.linalg.norm(rest)) + slack - float(multipliers @ evaluation.rows)
    return max(gap, 0.0) if np.isfinite(gap) else None


def _signed(evaluation: Evaluation, multipliers: FloatArray) -> FloatArray:
    """Multipliers with those of inequalities at least 0."""
    count = evaluation.inequalities
    return np.concatenate([np.maximum(multipliers[:count], 0.0), multipliers[count:]])


Pair = tuple[Evaluation, FloatArray]


@dataclass(frozen=True)
class _Minorant:
    """The linear minorant of the Lagrangian of a pair, by slopes that all say the same of U."""

    evaluation: Evaluation
    multipliers: FloatArray
    center: FloatArray
    slopes: tuple[FloatArray, ...]

    @property
    def pair(self) -> Pair:
        return self.evaluation, self.multipliers

    def least(self, bounds: Domain, ball: Ball | None) -> float:
        """What it proves over V, rounding taken off."""
        evaluation = self.evaluation
        reach = np.inf if ball is None else ball.reach(self.center)
        change = max(least(bounds, slope, self.center, reach) for slope in self.slopes)
        objective = evaluation.objective if evaluation.has_objective else 0.0
        sizes = np.maximum(np.abs(evaluation.rows), evaluation.magnitudes)
        terms = abs(objective) + float(np.abs(self.multipliers) @ sizes) + abs(change)
        value = objective + float(self.multipliers @ evaluation.rows) + change - ROUNDING * terms
        if ball is not None and evaluation.has_objective:
            value = min(value, ball.level)
        return value if not np.isnan(value) else -np.inf


class _Search:
    """Pairs of point and multipliers, and the best bound that one of them gives, as the form sees it."""

    def __init__(self, form: Form, oracle: Oracle, chart: Chart) -> None:
        self.form = form
        self.oracle = oracle
        self.chart = chart
        self.pairs: list[_Minorant] = []
        self.value = -np.inf
        self._best: _Minorant | None = None
        self._ball: Ball | None = None

    @staticmethod
    def of(form: Form, oracle: Oracle, evaluation: Evaluation) -> _Search | None:
        chart: Chart | None = None
        if form.kind == "separable":
            chart = PlainChart(form.domain)
        elif form.kind == "mapped":
            chart = MapChart.of(form, evaluation)
        return None if chart is None else _Search(form, oracle, chart)

    @property
    def best(self) -> Pair:
        """The pair of the best bound, or the latest where none is finite."""
        return (self._best or self.pairs[-1]).pair

    def consider(self, evaluation: Evaluation, multipliers: FloatArray) -> None:
        """Take the bound of a pair."""
        if not evaluation.finite or not evaluation.differentiable:
            return
        multipliers = _signed(evaluation, multipliers)
        if not np.isfinite(multipliers).all():
            return
        gradient = kkt.lagrangian_gradient(evaluation, multipliers)
        slopes = self.chart.slopes(evaluation, gradient[None, :])
        if slopes is None or not np.isfinite(slopes).all():
            return
        center = self.chart.image(evaluation)
        equals = self.chart.equals(slopes[0], center)
        self.pairs.append(_Minorant(evaluation, multipliers, center, equals))
        self._take(self.pairs[-1])

    def _take(self, minorant: _Minorant) -> None:
        value = minorant.least(self.chart.bounds, self._ball)
        if value > self.value:
            self.value, self._best = value, minorant

    def improve(
        self, evaluation: Evaluation, multipliers: FloatArray, enough: Callable[[float], bool]
    ) -> None:
        """Look for a better pair until the bound is good enough or no longer gets better."""
        here = self._off_kinks(evaluation)
        self.consider(here, multipliers)
        if not self.pairs or enough(self.value):
            return
        if not np.isfinite(self.value):
            self.enclose(False)
        if enough(self.value):
            return
        self._fit(here)
        idle = 0
        for step in STEPS:
            if enough(self.value):
                return
            before = self.value
            self._move(step, enough)
            gained = self.value - before > WORTH * (self.ceiling - before)
            idle = 0 if gained or not np.isfinite(before) else idle + 1
            if idle == PATIENCE:
                break
        for probing in (False, True):
            if not enough(self.value):
                self.enclose(probing)
        if not enough(self.value):
            self.descend(*self.best, enough)

    def _move(self, step: Step, enough: Callable[[float], bool]) -> None:
        """Consider where a step from the best pair leads."""
        evaluation, multipliers = self.best
        moved = step(self.form, self.oracle, evaluation, multipliers)
        if moved is None:
            return
        point, found = moved
        there = self._off_kinks(self.oracle.at(point))
        self.consider(there, found)
        if enough(self.value) or not there.finite:
            return
        self.consider(evaluation, found)
        if step is constrained_step and there.differentiable:
            self._fit(there)

    @property
    def ceiling(self) -> float:
        """The least value met at the points, which a bound cannot be expected to pass."""
        return min(minorant.evaluation.objective for minorant in self.pairs)

    def _fit(self, evaluation: Evaluation) -> None:
        """Consider multipliers fitted to the point by least squares."""
        for width in ACTIVE:
            fitted = kkt.least_squares_multipliers(evaluation, self.form.domain, width)
            if fitted is not None:
                self.consider(evaluation, fitted)

    def descend(
        self, evaluation: Evaluation, multipliers: FloatArray, enough: Callable[[float], bool]
    ) -> None:
        """Newton steps on the Lagrangian alone, over X."""
        for _ in range(ROUNDS):
            before = self.value
            there = lagrangian_step(self.form, self.oracle, evaluation, multipliers)
            if there is None:
                return
            evaluation = self._off_kinks(there)
            self.consider(evaluation, multipliers)
            if enough(self.value) or self.value == before:
                return

    def enclose(self, probing: bool) -> None:
        """Look for a ball that holds every feasible point of low value, and use it."""
        found = level_ball(self.form, self.oracle, self.chart, self.best, probing)
        if found is not None and (self._ball is None or found.radius < self._ball.radius):
            self._ball = found
            for minorant in self.pairs:
                self._take(minorant)

    def _off_kinks(self, evaluation: Evaluation) -> Evaluation:
        """The point, moved a little where a map could have a kink there: no derivative holds at one."""
        if self.form.kind != "mapped" or not self.form.stack.kinked:
            return evaluation
        domain, point = self.form.domain, evaluation.point
        noise = np.random.default_rng(1).uniform(-1e-9, 1e-9, point.size)
        return self.oracle.at(domain.project(point + noise * domain.metric(point)))

    def result(self, plain: Callable[[float], float]) -> LowerBound | None:
        if self._best is None or not np.isfinite(self.value):
            return None
        value = plain(self.value)
        if not np.isfinite(value) or (
            self.form.proof is None and self._contradicted(*self._best.pair)
        ):
            return None
        reference = self._best.evaluation.point
        points = self.oracle.calls.points
        return LowerBound(value, _conditions(self.form, self.chart, reference), points, reference)

    def _contradicted(self, evaluation: Evaluation, multipliers: FloatArray) -> bool:
        """Whether the Lagrangian is visibly not convex in the declared coordinates."""
        geometry = self.form.geometry
        frame = geometry.frame(evaluation)
        hessian = frame.hessian(geometry.hessian(self.oracle, evaluation, multipliers))
        if not np.isfinite(hessian).all():
            return True
        values = np.linalg.eigvalsh(hessian) if hessian.size else np.zeros(1)
        slopes = np.abs(frame.gradient(evaluation.gradient))
        slopes = slopes + np.abs(multipliers) @ abs(frame.matrix(evaluation.jacobian))
        size = max(float(np.max(np.abs(values))), float(np.max(slopes, initial=0.0)))
        return bool(values[0] < -CURVED * size)


def _conditions(form: Form, chart: Chart, point: FloatArray) -> tuple[str, ...]:
    """What a bound rests on, in words."""
    if form.proof is not None:
        names = [
            f"log({variable.name})" if kind == "log" else variable.name
            for variable, kind in form.proof.coordinates.items()
        ]
        return (f"proven hidden convex in {', '.join(names)}",)
    conditions = ["hidden convex in the declared coordinates, which is not proven"]
    if form.map_geometry is None:
        return tuple(conditions)
    conditions.append("the image of the variables' domain under the map is convex")
    layout, bending = form.canonical.layout, form.map_geometry.bending
    bent = [
        variable
        for variable, block in zip(layout.variables, layout.blocks, strict=True)
        if bending[block.start : block.stop].any() and _has_bounds(variable)
    ]
    if bent:
        listed = ", ".join(variable.name for variable in bent)
        conditions.append(f"bounds of {listed} dropped, since they bend in hidden coordinates")
    held = form.domain.bound_multipliers(point, np.ones(point.size), 1e-9)
    held = np.abs(held) + np.abs(form.domain.bound_multipliers(point, -np.ones(point.size), 1e-9))
    active = [v for v in bent if (held * bending)[layout.slice(v)].any()]
    if active:
        listed = ", ".join(variable.name for variable in active)
        conditions.append(
            f"a bound of {listed} that bends is active, so that the gap may not close"
        )
    return (*conditions, *chart.notes)


def _has_bounds(variable: object) -> bool:
    lower, upper = getattr(variable, "lower", -np.inf), getattr(variable, "upper", np.inf)
    return bool(np.isfinite(lower).any() or np.isfinite(upper).any())
