"""SwSG, the switching sub-gradient method: the inner solver of `ippm-swsg` and, without rows, `ippm-sm`.

Fatkhullin, He, Lan, Wolf (2025), Algorithm 2, after Polyak (1967) and Jia and Grimmer (2025):

    where F2(z_t) + ρ̂/2 ‖z_t − x_k‖² <= τ − ατ/3 + ε_in:   z_{t+1} = Π_X(z_t − η_t ζ1),  t is feasible
    else:                                             z_{t+1} = Π_X(z_t − η_t ζ2)

from t = 0, with sub-gradients ζ of F + ρ̂/2 ‖· − x_k‖² and η_t = 2/((ρ̂−ρ)(t+2) + 36ρ̂²/((ρ̂−ρ)(t+1))); the
answer is the average of the feasible z_t with weights t + 1. An infeasible iteration looks at F2 alone,
which is one call. Adaptive rule: steps onto the rows are Polyak's, whose level 0 is known; the answer
is the feasible iterate, or the average, with the lowest F1, so that the outer iterates are feasible
and fall.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.feasibility import (
    FeasibilityState,
    feasibility_step,
)
from hcmodel.solvers.first_order.ippm import InnerResult, Options, Subproblem
from hcmodel.solvers.first_order.method_rules import FeasibilityRules, SubgradientRules
from hcmodel.solvers.first_order.violation import max_of_abs
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import QPBackend
from hcmodel.solvers.theory.theorems import (
    Constants,
    IppmParameters,
    corollary_1,
    subgradient_phase,
    unconstrained_corollary,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SubgradientOptions(Options):
    """Options of `ippm-swsg` and `ippm-sm` under the adaptive rule."""

    inner: SubgradientRules = field(default_factory=SubgradientRules)
    """The numbers of the inner solver, in the same file."""


def step_length(rule: IppmParameters, t: int) -> float:
    """η_t of Algorithm 2 (errata: the general form, of which the printed one is ρ̂ = 2ρ)."""
    strong = rule.rho_hat - rule.rho
    return 2.0 / (strong * (t + 2) + 36.0 * rule.rho_hat**2 / (strong * (t + 1)))


class _Average:
    """Σ (t+1) z_t / Σ (t+1) over the feasible t."""

    def __init__(self, size: int) -> None:
        self.value: FloatArray = np.zeros(size)
        self.total = 0.0

    def add(self, weight: float, z: FloatArray) -> None:
        if weight > 0.0:
            self.total += weight
            self.value = self.value + weight / self.total * (z - self.value)


def _weights(first: int, end: int) -> float:
    """Σ (t+1) over first <= t < end."""
    return 0.5 * (end * (end + 1.0) - first * (first + 1.0))


class SwitchingSubgradient:
    """The inner solver of `ippm-swsg`."""

    def __init__(self, rules: SubgradientRules | None = None) -> None:
        self.rules = rules or SubgradientRules()

    def check(self, task: Task) -> None:
        return None

    # ---- theory rule

    def parameters(self, tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
        return corollary_1(tolerance, constants, delta0)

    def exact(self, task: Task, centre: Evaluation, rule: IppmParameters) -> InnerResult:
        rows_only = task.oracle.restricted(objective=False)
        objective_only = task.oracle.restricted(rows=False)
        threshold = rule.violation - rule.tightening + rule.inner_accuracy
        z = centre.point
        average = _Average(z.size)
        for t in range(rule.inner_steps):
            away = z - centre.point
            value, direction = -np.inf, away
            if task.oracle.size:
                value, direction = max_of_abs(rows_only.at(z))
            feasible = value + 0.5 * rule.rho_hat * float(away @ away) <= threshold
            if feasible:
                average.add(t + 1.0, z)
                direction = objective_only.at(z).gradient
            subgradient = direction + rule.rho_hat * away
            following = task.domain.project(z - step_length(rule, t) * subgradient)
            if np.array_equal(following, z):
                # −ζ lies in the normal cone of X: z stays for good, whatever the step.
                if feasible:
                    average.add(_weights(t + 1, rule.inner_steps), z)
                break
            z = following
        if average.total == 0.0:
            return InnerResult(None, settled=False)
        return InnerResult(task.oracle.at(task.domain.project(average.value)))

    def exact_feasibility(
        self, task: Task, constants: Constants, current: Evaluation
    ) -> tuple[Evaluation, bool]:
        """Proximal sub-gradient steps on F2 alone until it is at most τ."""
        rule = subgradient_phase(task.tolerance, constants, max_of_abs(current)[0])
        rows_only = task.oracle.restricted(objective=False)
        for _ in range(rule.outer_steps):
            centre = z = current.point
            average = _Average(z.size)
            for t in range(rule.inner_steps):
                value, subgradient = max_of_abs(rows_only.at(z))
                if value <= task.tolerance:
                    return rows_only.at(z), True
                average.add(t + 1.0, z)
                subgradient = subgradient + rule.rho_hat * (z - centre)
                z = task.domain.project(z - step_length(rule, t) * subgradient)
            current = rows_only.at(task.domain.project(average.value))
        return current, True

    # ---- adaptive rule

    def feasibility(
        self, task: Task, backend: QPBackend, state: FeasibilityState, rules: FeasibilityRules
    ) -> FeasibilityState:
        """Polyak's step on F2 where there are kinks, which a linear model of each row cannot see."""
        if task.oracle.smooth or state.elastic:
            return feasibility_step(task, backend, state, rules)
        rows_only = task.oracle.restricted(objective=False)
        best, z = state.current, state.current.point
        for _ in range(self.rules.polyak_steps):
            at = rows_only.at(z)
            if not (at.finite and at.differentiable):
                break
            if at.relative_violation < best.relative_violation:
                best = at
            if at.relative_violation <= rules.feasible_share * task.tolerance:
                break
            z = self._onto_rows(task, at, task.domain.metric(z))
        needed = self.rules.violation_fall * state.current.relative_violation
        moved = best.relative_violation <= needed
        length = float(np.linalg.norm(best.point - state.current.point))
        return replace(state, current=best, step=length, elastic=not moved)

    def adaptive(self, task: Task, subproblem: Subproblem) -> InnerResult:
        centre, metric, rho_hat = subproblem.centre, subproblem.metric, subproblem.rho_hat
        rows_only = task.oracle.restricted(objective=False)
        objective_only = task.oracle.restricted(rows=False)
        strict, rules = subproblem.allowed, self.rules
        # Equalities leave no room inside: there F2 may be as far off as an objective step moves.
        loose = task.oracle.size > task.oracle.inequalities
        z, moved = centre.point, 0.0
        slope = float(np.linalg.norm(centre.gradient * metric))
        best, lowest = None, centre.objective
        average = _Average(z.size)
        for t in range(subproblem.steps):
            at = centre if t == 0 else rows_only.at(z)
            if at.finite and at.relative_violation > strict:
                following = self._onto_rows(task, at, metric)
                if not loose or _length(following - z, metric) > rules.near_rows * moved:
                    z = following
                    continue
            at = centre if t == 0 else objective_only.at(z)
            if not (at.finite and at.differentiable):
                z = 0.5 * (z + centre.point)
                continue
            if at.objective < lowest:
                best, lowest = z, at.objective
            average.add(t + 1.0, z)
            subgradient = at.gradient * metric + rho_hat * (z - centre.point) / metric
            # Sub-gradients need not be bounded: one far steeper than at the centre is cut down.
            cut = min(1.0, rules.steepest * slope / max(float(np.linalg.norm(subgradient)), TINY))
            length = 2.0 * cut / (rho_hat * (t + 2))
            following = task.domain.project(z - length * metric * subgradient)
            z, moved = following, _length(following - z, metric)
        candidates = [average.value] if average.total > 0.0 else []
        if best is not None and not loose:
            candidates.append(best)
        share = rules.decrease_share
        return _lowest(task, subproblem, candidates, np.inf if loose else strict, share)

    def _onto_rows(self, task: Task, at: Evaluation, metric: FloatArray) -> FloatArray:
        """Polyak's step for the level 0 of F2, and a little past it."""
        value, gradient = max_of_abs(at)
        scaled = gradient * metric
        squared = max(float(scaled @ scaled), TINY)
        length = (1.0 + self.rules.overshoot) * value / squared
        return task.domain.project(at.point - length * metric * scaled)


def _lowest(
    task: Task,
    subproblem: Subproblem,
    candidates: list[FloatArray],
    allowed: float,
    share: float,
) -> InnerResult:
    """The candidate of lowest F1 that violates the rows by no more than is allowed."""
    rows_only = task.oracle.restricted(objective=False)
    centre = subproblem.centre
    answer: Evaluation | None = None
    for candidate in candidates:
        at = rows_only.at(task.domain.project(candidate))
        if at.finite and at.relative_violation <= allowed:
            at = task.oracle.at(at.point)
            lower = answer is None or at.objective < answer.objective
            if at.finite and at.differentiable and lower:
                answer = at
    if answer is None:
        return InnerResult(None, smoothness=subproblem.smoothness, settled=False)
    away = (answer.point - centre.point) / subproblem.metric
    wanted = share * subproblem.rho_hat * float(away @ away)
    settled = centre.objective - answer.objective >= wanted
    return InnerResult(answer, smoothness=subproblem.smoothness, settled=settled)


def _length(move: FloatArray, metric: FloatArray) -> float:
    return float(np.linalg.norm(move / metric))


class SubgradientMethod(SwitchingSubgradient):
    """The inner solver of `ippm-sm`: the same steps for a problem without functional constraint."""

    def check(self, task: Task) -> None:
        if task.oracle.size:
            raise ValueError("ippm-sm takes no functional constraint; use ippm-swsg")

    def parameters(self, tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
        return unconstrained_corollary(tolerance, constants, delta0)
