"""The search for a point and multipliers whose linear minorant bounds the minimum well.

Every pair gives a valid bound. Pairs are improved by Newton steps on the whole problem, which refine the
multipliers, and on the Lagrangian alone, which refine the point.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import SEARCH
from hcmodel.certify.minorants.charts import Chart, chart_of
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.limits import TimeExhausted, check_time
from hcmodel.solvers.numerics import SUM_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain

if TYPE_CHECKING:
    from hcmodel.certify.minorants.level_sets import Ball
    from hcmodel.certify.minorants.term_duals import WeighedTerms

FloatArray = NDArray[np.float64]
Pair = tuple[Evaluation, FloatArray]
Enough = Callable[[float], bool]

# Newton steps on the whole problem, in this order: the solution may be at hand, or far.
POLISHING = ("polish", "polish")
STEPS = ("constrained", "polish") * 3
# Where minorants are taken to enclose the points of low value, the cheapest first.
PROBES = ("", "zero", "around", "close")


def signed(evaluation: Evaluation, multipliers: FloatArray) -> FloatArray:
    """Multipliers with those of inequalities at least 0."""
    count = evaluation.inequalities
    return np.concatenate([np.maximum(multipliers[:count], 0.0), multipliers[count:]])


@dataclass(frozen=True)
class Minorant:
    """The linear minorant of the Lagrangian of a pair, by slopes that all say the same of U.

    `curved` is what bounds that bend in u, counted as rows, take off its value.
    """

    evaluation: Evaluation
    multipliers: FloatArray
    center: FloatArray
    slopes: tuple[FloatArray, ...]
    curved: float

    @property
    def pair(self) -> Pair:
        return self.evaluation, self.multipliers

    def least(self, bounds: Domain, ball: Ball | None) -> float:
        """What it proves over V, and within the ball."""
        reach = np.inf if ball is None else ball.reach(self.center)
        change = max(bounds.least(slope, self.center, reach) for slope in self.slopes)
        return self._value(change, ball)

    def among_doubles(self, bounds: Domain, free: NDArray[np.bool_]) -> float:
        """What it proves over V where |u_i| <= `largest_logarithm` in the entries `free`.

        These are entries of boxes, so that each of them takes its least value by itself.
        """
        slope, reach = self.slopes[0], SEARCH.largest_logarithm
        lower, upper = bounds.entry_bounds()
        below = np.maximum(lower, -reach)[free] - self.center[free]
        above = np.minimum(upper, reach)[free] - self.center[free]
        own = slope[free]
        change = float(np.minimum(own * below, own * above).sum())
        rest = np.where(free, 0.0, slope)
        return self._value(change + bounds.least(rest, self.center), None)

    def within(self, ball: Ball) -> float:
        """What it proves over the half-spaces that the ball was found from."""
        return self._value(ball.least(self.slopes[0], self.center), ball)

    def _value(self, change: float, ball: Ball | None) -> float:
        """The minorant's least value from its least change, minus rounding."""
        evaluation, change = self.evaluation, change + self.curved
        objective = evaluation.objective if evaluation.has_objective else 0.0
        sizes = np.maximum(np.abs(evaluation.rows), evaluation.magnitudes)
        terms = abs(objective) + float(np.abs(self.multipliers) @ sizes) + abs(change)
        value = (
            objective + float(self.multipliers @ evaluation.rows) + change - SUM_ROUNDING * terms
        )
        if ball is not None and evaluation.has_objective:
            value = min(value, ball.level)
        return value if not np.isnan(value) else -np.inf


class Search:
    """Pairs of point and multipliers, and the best bound that one of them gives, as the form sees it."""

    def __init__(self, form: Form, oracle: Oracle, chart: Chart) -> None:
        self.form = form
        self.oracle = oracle
        self.chart = chart
        self.minorants: list[Minorant] = []
        self.value = -np.inf
        self.best: Minorant | None = None
        self._ball: Ball | None = None
        # whether the best bound holds only where logarithms without bounds are those of doubles
        self.among_doubles = False
        self._free: NDArray[np.bool_] | None = None  # these logarithms, once they are looked at

    @staticmethod
    def of(form: Form, oracle: Oracle, evaluation: Evaluation) -> Search | None:
        """None for a form without hidden coordinates, or where they are singular."""
        chart = chart_of(form, evaluation)
        return None if chart is None else Search(form, oracle, chart)

    @property
    def pair(self) -> Pair:
        """The pair of the best bound, or the latest where none is finite."""
        return (self.best or self.minorants[-1]).pair

    def consider(self, evaluation: Evaluation, multipliers: FloatArray) -> None:
        """Take the bound of a pair."""
        if not evaluation.finite or not evaluation.differentiable:
            return
        multipliers = signed(evaluation, multipliers)
        if not all_finite(multipliers):
            return
        gradient = kkt.lagrangian_gradient(evaluation, multipliers)
        gradient, curved = self.chart.without_curved(evaluation, gradient)
        slopes = self.chart.slopes(evaluation, gradient[None, :])
        if slopes is None or not all_finite(slopes):
            return
        center = self.chart.image(evaluation)
        equals = self.chart.equals(slopes[0], center)
        self.minorants.append(Minorant(evaluation, multipliers, center, equals, curved))
        self._take(self.minorants[-1])

    def _take(self, minorant: Minorant) -> None:
        value, doubles = minorant.least(self.chart.bounds, self._ball), False
        if self._free is not None:
            among = minorant.among_doubles(self.chart.bounds, self._free)
            value, doubles = max(value, among), among > value
        if value > self.value:
            self.value, self.best, self.among_doubles = value, minorant, doubles

    def begin(self, evaluation: Evaluation, multipliers: FloatArray) -> None:
        """Take the bound of the first pair, which costs next to nothing."""
        self.consider(self._off_kinks(evaluation), multipliers)

    def improve(self, enough: Enough, fair: Enough, thorough: bool = True) -> None:
        """Look for a better pair until the bound is good enough or no longer gets better.

        `begin` has taken the first pair. What costs many evaluations is left out once the bound is
        `fair`, or unless the search is to be `thorough`. At the deadline the best bound so far stands.
        """
        with contextlib.suppress(TimeExhausted):
            self._improve(enough, fair, thorough)

    def _improve(self, enough: Enough, fair: Enough, thorough: bool) -> None:
        if not self.minorants or enough(self.value):
            return
        here = self.minorants[0].evaluation
        if not np.isfinite(self.value):
            self.enclose("")
        if self.form.arrays is not None and (not np.isfinite(self.value) or self._hopeless):
            self.take_doubles()  # the points of low value are not bounded, or too many to look at
        if enough(self.value):
            return
        self._walk(POLISHING, enough if self.form.domain.dimension <= SEARCH.refined else fair)
        if not fair(self.value):
            before = self.value
            self._fit(here)
            if self.value > before and not fair(self.value):
                self._walk(POLISHING, fair)  # from better multipliers
        if thorough and not fair(self.value):
            self._search_on(enough, fair)

    def _search_on(self, enough: Enough, fair: Enough) -> None:
        """What costs programs or many evaluations."""
        probes: Sequence[str] = PROBES
        if self.form.arrays is not None:  # its terms have said all that is known of its level sets
            probes = ()
            self.take_doubles()
            if fair(self.value):
                return
        for probing in probes:
            if not np.isfinite(self.value):
                self.enclose(probing)
        if self.form.map_geometry is not None and self._near and not fair(self.value):
            self.enclose("zero")
        self._walk(STEPS, enough)
        if fair(self.value):
            return
        for probing in probes:
            if not enough(self.value):
                self.enclose(probing)
        if not enough(self.value):
            self.descend(*self.pair, enough)

    def _walk(self, steps: Sequence[str], enough: Enough) -> None:
        """Take steps until the bound is good enough or several of them were in vain."""
        idle = 0
        for step in steps:
            if enough(self.value) or idle == SEARCH.patience:
                return
            before = self.value
            self._move(step, enough)
            gained = self.value - before > SEARCH.worth * (self._ceiling - before)
            idle = 0 if gained or not np.isfinite(before) else idle + 1

    @property
    def _hopeless(self) -> bool:
        """Whether the points of low value reach beyond all doubles, so that a bound is far away."""
        far = self._ball is not None and self._ball.radius > SEARCH.largest_logarithm
        return far and not self._near

    @property
    def _near(self) -> bool:
        """Whether the gap is small already, so that what is left may lie in the size of V alone."""
        return self._ceiling - self.value <= SEARCH.near * abs(self._ceiling)

    @property
    def _ceiling(self) -> float:
        """The least value met at the points, which a bound cannot be expected to pass."""
        return min(minorant.evaluation.objective for minorant in self.minorants)

    def _move(self, step: str, enough: Enough) -> None:
        """Consider where a step from the best pair leads."""
        from hcmodel.certify.minorants.newton_steps import NEWTON_STEPS  # few bounds need one

        evaluation, multipliers = self.pair
        check_time()
        moved = NEWTON_STEPS[step](self.form, self.oracle, evaluation, multipliers)
        if moved is None:
            return
        point, found = moved
        there = self._off_kinks(self.oracle.at(point))
        self.consider(there, found)
        if enough(self.value) or not there.finite:
            return
        self.consider(evaluation, found)
        if step == "constrained" and there.differentiable:
            self._fit(there)

    def _fit(self, evaluation: Evaluation) -> None:
        """Consider multipliers fitted to the point by least squares."""
        for width in SEARCH.active:
            check_time()
            fitted = kkt.least_squares_multipliers(evaluation, self.form.domain, width)
            if fitted is not None:
                self.consider(evaluation, fitted)

    def descend(self, evaluation: Evaluation, multipliers: FloatArray, enough: Enough) -> None:
        """Newton steps on the Lagrangian alone, over X."""
        from hcmodel.certify.minorants.newton_steps import lagrangian_step

        for _ in range(SEARCH.rounds):
            before = self.value
            there = lagrangian_step(self.form, self.oracle, evaluation, multipliers)
            if there is None:
                return
            evaluation = self._off_kinks(there)
            self.consider(evaluation, multipliers)
            if enough(self.value) or self.value == before:
                return

    def contradict(self, here: Evaluation, weights: FloatArray | None, enough: Enough) -> None:
        """Look for weights of the rows, and a point, that show the rows to contradict each other."""
        from hcmodel.certify.minorants.newton_steps import repair_weights

        signs = np.where(np.arange(here.rows.size) < here.inequalities, 1.0, np.sign(here.rows))
        pool = [np.asarray(here.violations > 0, dtype=float) * signs]
        if weights is not None:
            pool += [np.abs(weights) * signs, *_simple_weights(weights, here.inequalities)]
        for _ in range(SEARCH.rounds):
            repairing = repair_weights(self.form, here)
            pool += [] if repairing is None else [repairing]
            for each in pool:
                size = float(np.abs(each) @ here.magnitudes)
                self.consider(here, each / max(size, TINY))
            if enough(self.value) or not self.minorants:
                return
            self.descend(*self.pair, enough)
            here, pool = self.pair[0], []
        for probing in PROBES:
            if not enough(self.value):
                self.enclose(probing)

    def enclose(self, probing: str) -> None:
        """Look for a set that holds every feasible point of low value, and use it."""
        check_time()
        pair = self.pair
        from hcmodel.certify.minorants.level_sets import level_ball

        found = level_ball(self.form, self.oracle, self.chart, pair, probing)
        if found is None:
            return
        if found.terms is not None:
            self.minorants.append(_term_minorant(pair[0], found, found.terms))
        if self._ball is None or found.radius < self._ball.radius:
            self._ball = found
            for minorant in self.minorants:
                self._take(minorant)
        elif found.terms is not None:
            self._take(self.minorants[-1])
        minorant = self.best or self.minorants[-1]
        value = minorant.within(found)
        if value > self.value:
            self.value, self.best, self.among_doubles = value, minorant, False

    def take_doubles(self) -> None:
        """Take the bounds that hold where logarithms without bounds are those of doubles.

        A slope that is 0 but for rounding proves nothing over an unbounded set. Only for proven forms,
        whose logarithms are a part of the vector.
        """
        stack, bounds = self.form.stack, self.chart.bounds
        if self.form.proof is None or not isinstance(stack, LogStack):
            return
        lower, upper = bounds.entry_bounds()
        free = stack.logs & ~(np.isfinite(lower) & np.isfinite(upper))
        if not free.any():
            return
        self._free = free
        for minorant in self.minorants:
            self._take(minorant)

    def _off_kinks(self, evaluation: Evaluation) -> Evaluation:
        """The point, moved a little where a map could have a kink there: no derivative holds at one."""
        if self.form.map_geometry is None or not self.form.stack.kinked:
            return evaluation
        domain, point = self.form.domain, evaluation.point
        noise = np.random.default_rng(1).uniform(-SEARCH.off_kinks, SEARCH.off_kinks, point.size)
        return self.oracle.at(domain.project(point + noise * domain.metric(point)))


def _term_minorant(evaluation: Evaluation, ball: Ball, terms: WeighedTerms) -> Minorant:
    """The minorant by the weights of the terms; the rounding of its slope counts within the ball."""
    multipliers = terms.multipliers(evaluation.rows.size)
    slope, rounding = terms.exact_slope()
    lost = terms.loss(multipliers) + ball.radius * rounding
    return Minorant(evaluation, multipliers, ball.center, (slope,), -lost)


def _simple_weights(weights: FloatArray, inequalities: int) -> list[FloatArray]:
    """The weights as simple fractions of the largest, with their own signs and with the others.

    Over an unbounded set only a slope of exactly 0 proves anything, and what a backend returns has it but
    for rounding. Data that make rows contradict each other exactly do so with simple weights.
    """
    largest = float(np.max(np.abs(weights), initial=0.0))
    if not 0.0 < largest < np.inf:
        return []
    shares = weights / largest
    multiples = np.rint(shares * SEARCH.denominator) / SEARCH.denominator
    simple = np.where(np.abs(multiples - shares) <= SEARCH.simple, multiples, shares)
    return [
        np.concatenate([np.maximum(each[:inequalities], 0.0), each[inequalities:]])
        for each in (simple, -simple)
    ]
