"""A primal-dual predictor–corrector interior-point method for smooth convex programs.

The method works on u and, for each exponential term k, on its weight ν_k in the gradient of the
Lagrangian, as the method of Kortanek, Xu and Ye (1996) for geometric programs does. With slacks s,
multipliers λ and η, the weight ω_k of a term's group or row, its share or value y_k = ν_k/ω_k, it solves

    Cᵀλ + Eᵀν + Aᵀη = 0                                        dual, linear in (λ, ν, η)
    f(u) + s = 0,   A u = b                                    primal
    log y_k = E_k u + b_k   (less log Σ exp in a logarithm)    terms
    λ_i s_i = μ → 0

by Newton's method. That y is not computed from u is what makes the method converge from far away: where
one term of a posynomial exceeds the others by a factor e^100, the shares that follow from u hide them.
Eliminating s, λ and ν leaves one symmetric system of the order of u (`normal_equations`).

Mehrotra's (1992) predictor–corrector, with the second-order term of log y among the corrections, and
different step lengths for (u, s) and (λ, ν, η). Terms whose weight is small compared with μ are put to
what u says after each step. No feasible start is needed. Multipliers that grow are tested as a
certificate of infeasibility, points that run away for a direction of recession.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hcmodel.records import replace
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.numerics import INFINITE, TINY
from hcmodel.solvers.second_order.interior_point.certificates import (
    FarkasCertificate,
    recession_direction,
    verified,
)
from hcmodel.solvers.second_order.interior_point.convex_program import (
    FloatArray,
    SmoothConvexProgram,
)
from hcmodel.solvers.second_order.interior_point.dense_equations import OrthogonalEquations
from hcmodel.solvers.second_order.interior_point.factorisation import FactorisationError
from hcmodel.solvers.second_order.interior_point.iterate import (
    Direction,
    Iterate,
    Newton,
    Residuals,
    evaluate,
    largest,
    synchronised,
    term_model,
)
from hcmodel.solvers.second_order.interior_point.linear_system import NormalEquations
from hcmodel.solvers.second_order.interior_point.normal_equations import normal_equations
from hcmodel.solvers.second_order.interior_point.operators import Operators
from hcmodel.solvers.second_order.interior_point.outcome import (
    InteriorPointOptions,
    InteriorPointResult,
    InteriorPointStatus,
    KKTResiduals,
)
from hcmodel.solvers.second_order.interior_point.phase_one import (
    certificate_of,
    feasibility_program,
)
from hcmodel.solvers.second_order.interior_point.recovery import (
    answer,
    farkas_certificate,
    may_prove,
    with_fitted_multipliers,
)
from hcmodel.solvers.second_order.interior_point.smooth_parts import SmoothParts
from hcmodel.solvers.second_order.interior_point.standard_form import standard_form

# The ways to end a run that leave open whether there is a feasible point.
UNDECIDED = (InteriorPointStatus.FAILED, InteriorPointStatus.UNBOUNDED)
# Plain terms start between e^−5 and e^5, whatever u says: beyond, their logarithms converge better
# than their values (measured before there was a second attempt: 2 is equal, with 30 another 22 of 180
# random programs are not solved).
EXPONENT = 5.0
# Multipliers above this, where the objective has slope 1 at the start, are taken for unbounded ones.
LARGE_MULTIPLIER = 1e4
# Halvings of a step by the line search, and the share of the predicted decrease that it asks for
# (Nocedal and Wright 2006, section 3.1, take 1e-4 to 0.1).
HALVINGS = 12
LEAST_DECREASE = 0.01
# The share of the way to the boundary approaches 1 with μ (Wright 1997, section 10), but not closer.
FULL_STEP = 0.9999
# The share of the distance between two bounds that a start keeps from each, as `_inside` says: halfway
# between the bound and the middle.
START_SHARE = 0.25
# Seconds, for backends that take no infinite time limit.
A_WEEK = 7 * 24 * 3600.0


def solve(
    program: SmoothConvexProgram,
    options: InteriorPointOptions | None = None,
    deadline: Callable[[], float] | None = None,
    start: FloatArray | None = None,
    trace: Callable[[str], None] | None = None,
) -> InteriorPointResult:
    """Solve the program; `deadline` returns the seconds that are left, and is asked between iterations.

    `start` is a point to begin at, which need not be feasible; it is moved inside the bounds.
    """
    chosen = options or InteriorPointOptions()
    if np.any(program.lower > program.upper):
        return _empty_box(program, chosen.reach)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        found = _Run(program, chosen, deadline or _never, start, trace).solve()
        if found.status in UNDECIDED:
            return _second_attempt(program, chosen, deadline or _never, trace, found)
        return found


def _second_attempt(
    program: SmoothConvexProgram,
    options: InteriorPointOptions,
    deadline: Callable[[], float],
    trace: Callable[[str], None] | None,
    first: InteriorPointResult,
) -> InteriorPointResult:
    """Look for a feasible point alone: there is none, or the method begins again at one."""
    left = replace(options, max_iterations=options.max_iterations - first.iterations)
    search = _Run(feasibility_program(program), left, deadline, None, trace).solve()
    iterations = first.iterations + search.iterations
    if not search.usable:
        return _undecided(first, iterations)
    if search.value > 0:
        certificate = verified(
            program,
            certificate_of(program, search.row_multipliers, search.point, options.reach),
        )
        if certificate.proves:
            return replace(
                first,
                status=InteriorPointStatus.INFEASIBLE,
                point=search.point[:-1],
                value=float(program.values(search.point[:-1])[0]),
                certificate=certificate,
                direction=None,
                iterations=iterations,
            )
    if first.status is InteriorPointStatus.UNBOUNDED:
        inside = search.value <= options.acceptable
        found = replace(first, point=search.point[:-1], iterations=iterations)
        return found if inside else _undecided(found, iterations)
    left = replace(options, max_iterations=options.max_iterations - iterations)
    second = _Run(program, left, deadline, search.point[:-1], trace).solve()
    iterations += second.iterations
    if second.residuals.largest < first.residuals.largest or second.status not in UNDECIDED:
        return replace(second, iterations=iterations)
    return _undecided(first, iterations)


def _undecided(found: InteriorPointResult, iterations: int) -> InteriorPointResult:
    status = found.status
    if status is InteriorPointStatus.UNBOUNDED:
        status = InteriorPointStatus.FAILED  # no feasible point is known
    return replace(found, status=status, iterations=iterations)


def _never() -> float:
    return np.inf


class _Run:
    def __init__(
        self,
        program: SmoothConvexProgram,
        options: InteriorPointOptions,
        deadline: Callable[[], float],
        start: FloatArray | None,
        trace: Callable[[str], None] | None,
    ) -> None:
        self.program, self.options, self.deadline, self.trace = program, options, deadline, trace
        point = _inside(program, start)
        self.form = standard_form(program)
        self.operators = Operators(self.form)
        self.smooth = SmoothParts(self.form) if self.form.smooth else None
        self.equations: NormalEquations = normal_equations(self.operators)
        self.iterate = self._start(point[self.form.free])
        self.objective_weight = float(self.iterate.multipliers[0])
        self.count = max(self.operators.pairs - 1, 1)
        self.best: InteriorPointResult | None = None
        self.least_errors = [np.inf] * 3
        self.careful = False
        self.waited = 0
        self.far = options.far  # the next |u| at which a direction of recession is looked for
        self.iteration = 0

    # ---- start

    def _start(self, u: FloatArray) -> Iterate:
        operators, form = self.operators, self.form
        head, logs = operators.head, form.log_terms
        exponents = operators.exponents @ u + form.offsets
        values = np.empty(exponents.size)
        if logs:
            values[:logs] = 1.0 / np.bincount(form.groups)[form.groups]
        values[logs:] = np.exp(np.clip(exponents[logs:], -EXPONENT, EXPONENT))
        objective = np.zeros(operators.pairs)
        objective[0] = 1.0
        slope = operators.transposed(values * operators.term_weights(objective), objective)
        if self.smooth is not None:
            slope += self.smooth.jacobian(u).T @ objective[:head]
        size = float(np.max(np.abs(slope), initial=0.0))
        multipliers = np.ones(operators.pairs)
        multipliers[0] = 1.0 / size if TINY < size < np.inf else 1.0
        slacks = np.ones(operators.pairs)
        slacks[head : operators.first_upper] = (u - form.lower)[form.lower_index]
        slacks[operators.first_upper :] = (form.upper - u)[form.upper_index]
        multipliers[head:] = np.minimum(1.0, 1.0 / slacks[head:])
        terms = values * operators.term_weights(multipliers)
        affine = operators.affine @ u + form.constants
        if self.smooth is not None:
            affine = affine + self.smooth.values(u)
        rows = term_model(operators, exponents, affine, terms, multipliers).rows[1:]
        finite = rows[np.isfinite(rows)]
        slacks[1:head] = max(1.0, float(np.max(finite, initial=0.0)))
        return Iterate(u, terms, multipliers, slacks, np.zeros(operators.equalities))

    # ---- iterations

    def solve(self) -> InteriorPointResult:
        while True:
            residuals = evaluate(self.operators, self.smooth, self.iterate)
            self._fill_slacks(residuals)
            found = self._judge(residuals)
            if found is not None:
                return found
            if self.deadline() <= 0:
                return self._stopped(InteriorPointStatus.TIME_LIMIT)
            if self.iteration == self.options.max_iterations:
                return self._stopped(InteriorPointStatus.ITERATION_LIMIT)
            try:
                newton = self._newton(residuals)
                moved = self._step(newton, residuals)
            except FactorisationError:
                moved = False
            if not moved and not self._more_accurate():
                return self._stopped(InteriorPointStatus.FAILED)
            self.iteration += 1

    def _fill_slacks(self, residuals: Residuals) -> None:
        """s ← max(s, −f): a row that has more room than its slack says has no residual."""
        short = np.minimum(residuals.primal[1 : self.operators.head], 0.0)
        self.iterate.slacks[1 : self.operators.head] -= short
        residuals.primal[1 : self.operators.head] -= short

    def _step(self, newton: Newton, residuals: Residuals) -> bool:
        iterate, options = self.iterate, self.options
        products = iterate.multipliers * iterate.slacks
        products[0] = 0.0
        gap = float(products.sum())
        predictor = newton.direction(products, residuals.model.deviations)
        primal, dual = (min(1.0, length) for length in self._lengths(predictor))
        ahead = float(
            (iterate.slacks + primal * predictor.slacks)[1:]
            @ (iterate.multipliers + dual * predictor.multipliers)[1:]
        )
        centring = min(1.0, max(0.0, ahead / gap)) ** options.centring_power if gap > 0 else 0.0
        mean = gap / self.count
        least = self._least_product(residuals)
        target = max(centring * mean, min(0.5 * mean, least))
        complementarity = products + predictor.slacks * predictor.multipliers - target
        complementarity[0] = 0.0
        deviations = self._corrected(predictor, residuals, dual)
        enough = options.refined * max(
            largest(residuals.dual), options.tolerance * self.objective_weight
        )
        direction = newton.direction(complementarity, deviations, enough)
        if self._inaccurate(direction, residuals) and self._more_accurate():
            newton = self._newton(residuals)
            direction = newton.direction(complementarity, deviations, enough)
        return self._accept(direction, residuals, gap)

    def _least_product(self, residuals: Residuals) -> float:
        """What the products of slacks and multipliers do not aim below, on average.

        Their sum is the gap, which is judged relative to the objective.
        """
        options, objective = self.options, abs(float(residuals.model.rows[0]))
        share = min(options.least_gap, options.least_sum * (1 + objective) / self.count)
        return share * options.tolerance * self.objective_weight

    def _newton(self, residuals: Residuals) -> Newton:
        return Newton(self.operators, self.equations, self.smooth, self.iterate, residuals)

    def _inaccurate(self, direction: Direction, residuals: Residuals) -> bool:
        """Whether the direction leaves a good part of the dual residual, which is linear, as it is."""
        before, left = largest(residuals.dual), largest(residuals.dual + direction.dual)
        share = self.options.inaccurate
        floor = self.options.tolerance * self.objective_weight
        return left > share * before and left > share * floor

    def _more_accurate(self) -> bool:
        """Go over to orthogonal transformations, where M is singular to rounding."""
        form = self.form
        if self.careful or self.smooth is not None:
            return False
        self.careful = True
        rows = form.offsets.size + self.operators.pairs + form.size
        if rows * form.size**2 > self.options.orthogonal_work:
            return False
        self.equations = OrthogonalEquations(self.operators)
        return True

    def _corrected(self, predictor: Direction, residuals: Residuals, length: float) -> FloatArray:
        """log(1 + δ) = δ − δ²/2: the deviations with the second-order term of log ν − log ω."""
        operators, form, model = self.operators, self.form, residuals.model
        relative = predictor.terms / self.iterate.terms
        change = operators.term_weights(predictor.multipliers) / model.term_weights
        limit = self.options.correction_limit
        second = np.clip(0.5 * (relative**2 - change**2) * length**2, -limit, limit)
        if form.log_terms:
            means = operators.group_sums(model.values * second)
            second[: form.log_terms] -= operators.groups.spread(means)
        return np.asarray(model.deviations + second)

    def _lengths(self, direction: Direction) -> tuple[float, float]:
        iterate = self.iterate
        primal = _to_boundary(iterate.slacks, direction.slacks)
        dual = min(
            _to_boundary(iterate.multipliers, direction.multipliers),
            _to_boundary(iterate.terms, direction.terms),
        )
        if self.smooth is not None:
            primal = dual = min(primal, dual)
        ratio = self.options.step_ratio
        return min(primal, ratio * dual), min(dual, ratio * primal)

    def _accept(self, direction: Direction, residuals: Residuals, gap: float) -> bool:
        """Take the step, shortened where smooth parts ask for it."""
        options, operators = self.options, self.operators
        primal, dual = self._lengths(direction)
        if not all_finite(direction.u) or not primal > 0 or not dual > 0:
            return False
        share = min(FULL_STEP, max(options.boundary, 1.0 - gap / self.count))
        primal, dual = min(1.0, share * primal), min(1.0, share * dual)
        after = self._after(direction, primal, dual)
        if self.smooth is not None:
            for _ in range(HALVINGS):
                if self._residual_falls(after, residuals, gap, dual):
                    break
                primal, dual = 0.5 * primal, 0.5 * dual
                after = self._after(direction, primal, dual)
        if self.trace is not None:
            self.trace(f"    steps {primal:.2e} {dual:.2e}")
        mean = float(after.slacks[1:] @ after.multipliers[1:]) / self.count
        after.terms = synchronised(
            operators,
            residuals.exponents + primal * direction.exponents,
            after.terms,
            after.multipliers,
            min(options.synchronised * mean, largest(after.terms)),
        )
        self.iterate = after
        return True

    def _after(self, direction: Direction, primal: float, dual: float) -> Iterate:
        iterate = self.iterate
        return Iterate(
            iterate.u + primal * direction.u,
            iterate.terms + dual * direction.terms,
            iterate.multipliers + dual * direction.multipliers,
            iterate.slacks + primal * direction.slacks,
            iterate.equality + dual * direction.equality,
        )

    def _residual_falls(
        self, after: Iterate, residuals: Residuals, gap: float, length: float
    ) -> bool:
        """Whether |dual| + |primal residual| falls, up to the gap: the line search of smooth parts.

        Exponentials need none: no step of the benchmark was ever shortened by one.
        """
        assert self.smooth is not None
        if not np.isfinite(self.smooth.values(after.u)).all():
            return False
        new = evaluate(self.operators, self.smooth, after)
        rows = slice(1, self.operators.head)
        size = [
            float(np.linalg.norm(part.dual) + np.linalg.norm(np.maximum(part.primal[rows], 0.0)))
            for part in (residuals, new)
        ]
        return size[1] <= (1 - LEAST_DECREASE * length) * size[0] + gap

    # ---- judgement

    def _judge(self, residuals: Residuals) -> InteriorPointResult | None:
        """The result, if the iterate ends the run."""
        iterate, options, weight = self.iterate, self.options, self.objective_weight
        gap = float(iterate.slacks[1:] @ iterate.multipliers[1:])
        deviation = largest(iterate.terms * residuals.model.deviations)
        primal = max(largest(residuals.primal), largest(residuals.equality))
        dual = (largest(residuals.dual) + deviation) / weight
        relative_gap = gap / weight / (1 + abs(float(residuals.model.rows[0])))
        if self.trace is not None:
            self.trace(
                f"{self.iteration:3d} f0 {residuals.model.rows[0]: .9e} primal {primal:.1e} "
                f"dual {dual:.1e} gap {relative_gap:.1e} "
                f"dev {largest(residuals.model.deviations):.1e} {deviation:.1e} "
                f"|λ| {largest(iterate.multipliers[1:]):.1e} |u| {largest(iterate.u):.1e}"
            )
        if not all(map(math.isfinite, (primal, dual, relative_gap))):
            return self._stopped(InteriorPointStatus.FAILED)
        close = max(dual, relative_gap)
        if close < options.acceptable:
            found = self._answer(InteriorPointStatus.SOLVED)
            if found.residuals.largest <= options.tolerance:
                return found
            self._remember(found)
        elif max(primal, relative_gap) < options.acceptable and self._degenerate():
            fitted = with_fitted_multipliers(self.program, self._answer(InteriorPointStatus.FAILED))
            if fitted is not None:
                self._remember(fitted)
        return self._without_solution(residuals) or self._impatient((primal, dual, relative_gap))

    def _without_solution(self, residuals: Residuals) -> InteriorPointResult | None:
        program, operators, iterate = self.program, self.operators, self.iterate
        if may_prove(operators, iterate, residuals):
            certificate = verified(
                program,
                farkas_certificate(program, operators, iterate, residuals, self.options.reach),
            )
            if certificate.proves:
                return self._answer(InteriorPointStatus.INFEASIBLE, certificate=certificate)
        if largest(iterate.u) > self.far:
            self.far *= self.options.far
            direction = recession_direction(program, min(self.deadline(), A_WEEK))
            if direction is not None:
                return self._answer(InteriorPointStatus.UNBOUNDED, direction=direction)
        return None

    def _impatient(self, errors: tuple[float, float, float]) -> InteriorPointResult | None:
        """Give up when no residual has become smaller for a while."""
        self.waited += 1
        for number, error in enumerate(errors):
            if error < self.options.progress * self.least_errors[number]:
                self.least_errors[number], self.waited = error, 0
        if self.waited > self.options.patience:
            return self._stopped(InteriorPointStatus.FAILED)
        return None

    def _degenerate(self) -> bool:
        """Multipliers that grow far beyond the slope of the objective: the rows have no interior."""
        return largest(self.iterate.multipliers[1:]) > LARGE_MULTIPLIER

    def _remember(self, found: InteriorPointResult) -> None:
        error = found.residuals.largest
        if self.best is None or error < self.best.residuals.largest:
            self.best = found

    def _stopped(self, status: InteriorPointStatus) -> InteriorPointResult:
        """The best point so far; solved or almost solved if it is good enough, whatever the reason."""
        found = self._answer(status)
        if np.isfinite(found.residuals.largest):
            self._remember(found)
            better = with_fitted_multipliers(self.program, found)
            if better is not None:
                self._remember(better)
        if self.best is None:
            return found
        error = self.best.residuals.largest
        if error <= self.options.tolerance:
            status = InteriorPointStatus.SOLVED
        elif error <= self.options.acceptable:
            status = InteriorPointStatus.ALMOST_SOLVED
        return replace(self.best, status=status, iterations=self.iteration)

    def _answer(
        self,
        status: InteriorPointStatus,
        certificate: FarkasCertificate | None = None,
        direction: FloatArray | None = None,
    ) -> InteriorPointResult:
        return answer(
            self.program,
            self.operators,
            self.iterate,
            status,
            self.iteration,
            certificate,
            direction,
        )


def _empty_box(program: SmoothConvexProgram, reach: float) -> InteriorPointResult:
    """A lower bound above its upper bound: a certificate without any row."""
    size, rows = program.dimension, program.row_count
    nowhere, nothing = np.full(size, np.nan), np.zeros(size)
    equalities = np.zeros(0 if program.equality_bound is None else len(program.equality_bound))
    excess = float(np.max(program.lower - program.upper))
    certificate = FarkasCertificate(
        np.zeros(rows), equalities, np.zeros(0), np.zeros(0), nowhere, reach, excess
    )
    return InteriorPointResult(
        InteriorPointStatus.INFEASIBLE,
        nowhere,
        np.nan,
        np.zeros(rows),
        equalities,
        nothing,
        nothing,
        KKTResiduals(excess, np.inf, np.inf),
        0,
        certificate,
    )


def _inside(program: SmoothConvexProgram, start: FloatArray | None) -> FloatArray:
    """The start, or the middle of the bounds; 1 or a quarter of their distance away from each.

    Variables with one bound or none start near 0, and so do exponents whose bounds are far away.
    """
    lower = np.where(program.lower > -INFINITE, program.lower, -np.inf)
    upper = np.where(program.upper < INFINITE, program.upper, np.inf)
    with np.errstate(invalid="ignore"):
        room = np.minimum(1.0, START_SHARE * (upper - lower))
    room = np.where(np.isfinite(room), room, 1.0)
    if start is None:
        both = np.isfinite(lower) & np.isfinite(upper)
        point = np.where(both, 0.5 * np.where(both, lower + upper, 0.0), 0.0)
        far = np.abs(point) > EXPONENT
        if far.any():
            for part in (program.log_sums, program.sums):
                if part is not None:
                    used = np.asarray(abs(part.exponents).sum(axis=0)).ravel() > 0
                    point[far & used] = 0.0
    else:
        point = np.array(start, dtype=float)
    return np.clip(point, lower + room, upper - room)


def _to_boundary(values: FloatArray, direction: FloatArray) -> float:
    """The largest step that leaves the values nonnegative."""
    ratios = direction / values
    worst = float(ratios[ratios.argmin()]) if values.size else 0.0
    return np.inf if worst >= 0 else -1.0 / worst
