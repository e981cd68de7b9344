"""ACGD, accelerated constrained gradient descent: the inner solver of `ippm-acgd`.

Fatkhullin, He, Lan, Wolf (2025), Algorithm 3, after Zhang and Lan (2022), Algorithm 1. Every row is
linearised. With κ = Λ/(ρ̂−ρ), τ_t = min((t−1)/2, √κ), θ_t = τ_t/(1+τ_{t−1}), η_t = Λ/τ_{t+1} and
ω_t = ω_{t−1}/θ_t:

    y_t = (τ_t y_{t−1} + z_{t−1} + θ_t(z_{t−1} − z_{t−2}))/(1+τ_t)
    z_t = argmin ⟨∇F1(y_t) + ρ(y_t − x_k), x⟩ + (ρ̂−ρ)/2 ‖x − x_k‖² + η_t/2 ‖x − z_{t−1}‖²
          s.t.  the rows of F2 + ρ̂/2 ‖· − x_k‖², linearised at y_t, <= τ − ατ/3,   x in X

and the answer is the ω-average of the z_t. The y_t are convex combinations of the z_t, so in X. The
strongly convex part stays in the prox step, as Zhang and Lan have it. Adaptive rule: Λ is the curvature
of the Lagrangian, taken from successive y_t and raised by backtracking; the last z_t is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.feasibility import (
    FeasibilityState,
    feasibility_step,
)
from hcmodel.solvers.first_order.ippm import InnerResult, Options, Subproblem
from hcmodel.solvers.first_order.method_rules import AcceleratedRules, FeasibilityRules
from hcmodel.solvers.first_order.theory_bundle import (
    QPFailedError,
    ShiftedCuts,
    coordinate_bounds,
    stacked,
    whole_domain,
)
from hcmodel.solvers.first_order.violation import max_of_abs
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import PRODUCT_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import DEFAULT_BACKEND, QPBackend, QuadraticProgram, make_backend
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.theory.budget import accelerated_corollary
from hcmodel.solvers.theory.theorems import Constants, IppmParameters, feasibility_phase

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class AcceleratedOptions(Options):
    """Options of `ippm-acgd` under the adaptive rule."""

    inner: AcceleratedRules = field(default_factory=AcceleratedRules)
    """The numbers of the inner solver, in the same file."""


def sequence(kappa: float) -> Iterator[tuple[float, float, float]]:
    """(τ_t, θ_t, τ_{t+1}) for t = 1, 2, …"""
    root = math.sqrt(kappa)
    before, now = 0.0, 0.0
    t = 1
    while True:
        following = min(t / 2.0, root)
        yield now, (now / (1.0 + before) if t > 1 else 0.0), following
        before, now = now, following
        t += 1


@dataclass(frozen=True)
class ProxStep:
    """The QP of one step, in the coordinates s = (x − x_k)/metric."""

    quadratic: float
    linear: FloatArray
    inequality: Any
    bound: FloatArray
    equality: Any
    equal: FloatArray

    def program(self, origin: FloatArray, unit: float, steps: StepRows) -> QuadraticProgram:
        """Over q with s = origin + unit·q, so that the backend sees numbers of size one."""
        scale = max(float(np.max(np.abs(self.linear), initial=0.0)), self.quadratic * unit)
        gradient = self.linear + self.quadratic * origin
        return QuadraticProgram(
            quadratic=np.full(origin.size, self.quadratic * unit / scale),
            linear=gradient / scale,
            inequality=self.inequality,
            inequality_bound=(self.bound - self.inequality @ origin) / unit,
            equality=self.equality,
            equality_bound=(self.equal - self.equality @ origin) / unit,
            domain=StepRows(
                (steps.lower - origin) / unit,
                (steps.upper - origin) / unit,
                tuple(
                    replace(cone, offset=(cone.offset + cone.matrix @ origin) / unit)
                    for cone in steps.cones
                ),
            ),
        )


@dataclass(frozen=True)
class _Iterates:
    """z_t, y_t and what is known there, after `steps` steps of the adaptive rule.

    `refuted` says that the second point showed more curvature than Λ, so that the first is in doubt.
    """

    z: FloatArray
    y: FloatArray
    at: Evaluation
    multipliers: FloatArray
    smoothness: float
    steps: int = 1
    settled: bool = False
    refuted: bool = False


class AcceleratedGradient:
    def __init__(
        self, backend: str = DEFAULT_BACKEND, rules: AcceleratedRules | None = None
    ) -> None:
        self.backend = make_backend(backend)
        self.rules = rules or AcceleratedRules()
        self._bounds: tuple[Domain, tuple[FloatArray, FloatArray]] | None = None

    def check(self, task: Task) -> None:
        return None

    # ---- theory rule

    def parameters(self, tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
        return accelerated_corollary(tolerance, constants, delta0)

    def bounds(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        if self._bounds is None or self._bounds[0] is not domain:
            self._bounds = (domain, coordinate_bounds(domain))
        return self._bounds[1]

    def exact(self, task: Task, centre: Evaluation, rule: IppmParameters) -> InnerResult:
        origin = centre.point
        steps = whole_domain(task.domain, self.bounds(task.domain), origin)
        strong = rule.rho_hat - rule.rho
        budget = rule.violation - rule.tightening
        z_last = z = y = average = np.zeros(origin.size)
        share = 0.0  # Ω_t/ω_t, the sum of the weights over the last
        multipliers = np.zeros(centre.rows.size)
        weights = sequence(rule.smoothness / strong)
        for _ in range(rule.inner_steps):
            tau, theta, tau_next = next(weights)
            y = (tau * y + z + theta * (z - z_last)) / (1.0 + tau)
            at = task.oracle.at(task.domain.project(origin + y))
            count, half = at.inequalities, 0.5 * rule.rho_hat * float(y @ y)
            pairs = stacked(at.jacobian, -at.jacobian[count:])
            rows = np.concatenate([at.rows, -at.rows[count:]]) + half
            slopes = _plus(pairs, np.full(rows.size, rule.rho_hat), y)
            eta = rule.smoothness / tau_next
            step = ProxStep(
                quadratic=strong + eta,
                linear=at.gradient + rule.rho * y - eta * z,
                inequality=slopes,
                bound=budget - rows + slopes @ y,
                equality=np.zeros((0, y.size)),
                equal=np.zeros(0),
            )
            solution = self.backend.solve(step.program(z, 1.0, steps))
            if not solution.usable:
                return InnerResult(None)
            z_last, z = z, z + solution.step
            share = 1.0 + share * theta
            average = average + (z - average) / share
            scale = max(float(np.max(np.abs(step.linear), initial=0.0)), step.quadratic)
            both = solution.inequality_multipliers * scale
            multipliers = both[: at.rows.size].copy()
            multipliers[count:] -= both[at.rows.size :]
        return InnerResult(task.oracle.at(task.domain.project(origin + average)), multipliers)

    def exact_feasibility(
        self, task: Task, constants: Constants, current: Evaluation
    ) -> tuple[Evaluation, bool]:
        """S-StarBL on F2 alone by Theorem 2, in one go."""
        rule = feasibility_phase(task.tolerance, constants, max_of_abs(current)[0])
        cuts = ShiftedCuts(task.domain, self.bounds(task.domain), self.backend)
        rows_only = task.oracle.restricted(objective=False)
        for _ in range(rule.steps):
            try:
                found = cuts.step(current, rule.alpha, rule.tau, None)
            except QPFailedError:
                break
            if found is None:
                break
            current = rows_only.at(found[0])
            if max_of_abs(current)[0] <= task.tolerance:
                break
        return current, True

    # ---- adaptive rule

    def feasibility(
        self, task: Task, backend: QPBackend, state: FeasibilityState, rules: FeasibilityRules
    ) -> FeasibilityState:
        return feasibility_step(task, backend, state, rules)

    def adaptive(self, task: Task, subproblem: Subproblem) -> InnerResult:
        rules = self.rules
        least = rules.least_smoothness * subproblem.rho_hat
        smoothness = max(rules.forget * subproblem.smoothness, least)
        for _ in range(rules.restarts):
            found = self._attempt(task, subproblem, smoothness)
            if found.evaluation is not None or not found.smoothness > smoothness:
                return found
            smoothness = found.smoothness
        return InnerResult(None, smoothness=smoothness)

    def _attempt(self, task: Task, subproblem: Subproblem, smoothness: float) -> InnerResult:
        """Steps from the centre; a Λ that the very first step refutes is handed back, larger."""
        rules, centre, metric = self.rules, subproblem.centre, subproblem.metric
        found = self._iterate(task, subproblem, smoothness)
        smoothness = found.smoothness
        if found.refuted or not found.z.any():
            return InnerResult(None, smoothness=smoothness)
        answer = task.oracle.at(task.domain.project(centre.point + metric * found.z))
        if not (answer.finite and answer.differentiable):
            return InnerResult(None, smoothness=rules.largest_rise * smoothness)
        move = found.z - found.y
        needed = _curvature(found.at, answer, move * metric, move, found.multipliers)
        if found.settled and found.steps == 1 and needed > smoothness:
            return InnerResult(None, smoothness=min(needed, rules.largest_rise * smoothness))
        return InnerResult(answer, found.multipliers, smoothness, found.settled)

    def _iterate(self, task: Task, subproblem: Subproblem, smoothness: float) -> _Iterates:
        """The steps themselves, until one settles, fails or is the last that is allowed."""
        rules, centre, metric = self.rules, subproblem.centre, subproblem.metric
        rho_hat = subproblem.rho_hat
        steps = task.domain.step_rows(centre.point, metric)
        zero = np.zeros(metric.size)
        now = _Iterates(zero, zero, centre, np.zeros(centre.rows.size), smoothness)
        z_last = zero
        tau = tau_last = 0.0
        for t in range(1, subproblem.steps + 1):
            theta = tau / (1.0 + tau_last) if t > 1 else 0.0
            y = (tau * now.y + now.z + theta * (now.z - z_last)) / (1.0 + tau)
            if t > 1:
                at = task.oracle.at(task.domain.project(centre.point + metric * y))
                move = y - now.y
                needed = _curvature(now.at, at, move * metric, move, now.multipliers)
                now = replace(now, y=y, at=at, steps=t)
                if needed > now.smoothness:
                    raised = max(needed, rules.least_rise * now.smoothness)
                    raised = min(raised, rules.largest_rise * now.smoothness)
                    now = replace(now, smoothness=raised, refuted=t == 2)
                    if now.refuted or not np.isfinite(needed):
                        break
            tau_next = min(t / 2.0, math.sqrt(max(now.smoothness / rho_hat, 1.0)))
            eta = now.smoothness / tau_next
            solved = self._prox(subproblem, now.at, y, now.z, eta, steps)
            if solved is None:
                break
            z_last, (z, multipliers) = now.z, solved
            error = now.smoothness * _norm(z - y) + eta * _norm(z - z_last)
            settled = error <= rules.inner_share * rho_hat * _norm(z)
            now = replace(now, z=z, y=y, multipliers=multipliers, settled=settled)
            tau_last, tau = tau, tau_next
            if settled:
                break
        return now

    def _prox(
        self,
        subproblem: Subproblem,
        at: Evaluation,
        y: FloatArray,
        z: FloatArray,
        eta: float,
        steps: StepRows,
    ) -> tuple[FloatArray, FloatArray] | None:
        """z_t and multipliers. Rows that the linear models cannot meet are met in part."""
        count, metric = at.inequalities, subproblem.metric
        jacobian: Any = at.jacobian
        if scipy.sparse.issparse(jacobian):
            scaled: Any = scipy.sparse.csr_array(jacobian @ scipy.sparse.diags_array(metric))
            sizes = np.asarray(abs(scaled).max(axis=1).todense()).reshape(-1)
        else:
            scaled = jacobian * metric
            sizes = np.max(np.abs(scaled), axis=1, initial=0.0)
        scales = 1.0 / np.where(sizes > 0, sizes, 1.0)
        scaled, rows = _scaled(scaled, scales), at.rows * scales
        slopes, inner, equality, equal = scaled[:count], rows[:count], scaled[count:], rows[count:]
        above = np.maximum(inner + slopes @ (z - y), 0.0)
        apart = equal + equality @ (z - y)
        gradient = at.gradient * metric
        quadratic = subproblem.rho_hat + eta
        for shift in self.rules.shifts:
            step = ProxStep(
                quadratic=quadratic,
                linear=gradient - eta * z,
                inequality=slopes,
                bound=(1.0 - shift) * above - inner + slopes @ y,
                equality=equality,
                equal=(1.0 - shift) * apart - equal + equality @ y,
            )
            size = _norm(gradient + subproblem.rho_hat * z) / quadratic
            unit = max(size, float(np.max(above, initial=0.0)), _largest(apart))
            unit = min(max(unit, PRODUCT_ROUNDING), 1.0)
            solution = self.backend.solve(step.program(z, unit, steps))
            if solution.usable:
                scale = max(float(np.max(np.abs(step.linear))), quadratic * unit)
                both = [solution.inequality_multipliers, solution.equality_multipliers]
                return z + unit * solution.step, np.concatenate(both) * scale * scales
        return None


def _norm(vector: FloatArray) -> float:
    return float(np.linalg.norm(vector))


def _largest(vector: FloatArray) -> float:
    return float(np.max(np.abs(vector), initial=0.0))


def _plus(matrix: Any, weights: FloatArray, y: FloatArray) -> Any:
    """Rows of a Jacobian plus the gradients weight·y of their prox terms."""
    added = np.outer(weights, y)
    return (
        scipy.sparse.csr_array(matrix + added) if scipy.sparse.issparse(matrix) else matrix + added
    )


def _scaled(matrix: Any, scales: FloatArray) -> Any:
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(scales) @ matrix)
    return matrix * scales[:, None]


def _curvature(
    before: Evaluation,
    after: Evaluation,
    move: FloatArray,
    scaled_move: FloatArray,
    multipliers: FloatArray,
) -> float:
    """2·(L(y') − ℓ_L(y'; y))/‖y' − y‖² of the Lagrangian L, in the metric."""
    if not (after.finite and after.differentiable):
        return np.inf
    squared = float(scaled_move @ scaled_move)
    if squared == 0.0:
        return 0.0
    slope = before.gradient + before.jacobian.T @ multipliers
    rise = after.objective - before.objective + float(multipliers @ (after.rows - before.rows))
    rounding = PRODUCT_ROUNDING * (
        abs(after.objective) + float(np.abs(multipliers) @ np.abs(after.rows))
    )
    return 2.0 * (rise - float(slope @ move) - rounding) / squared
