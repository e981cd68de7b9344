"""IPPM, the inexact proximal point method: `ippm-swsg`, `ippm-sm`, `ippm-acgd` by its inner solver.

Fatkhullin, He, Lan, Wolf (2025), Algorithm 1 and Theorem 1. From a τ-feasible x_k the next point is an
approximate solution of

    minimise F1(x) + ρ̂/2 ‖x − x_k‖²   s.t.   F2(x) + ρ̂/2 ‖x − x_k‖² <= τ,   x in X       (Shifted-IPPM)

by an inner solver that keeps to the constraint; `theory_ippm` takes every parameter from the theorems.
This is the adaptive rule, without constants. Lengths are those of the domain's metric at x_k; ρ̂ falls
while the outer steps succeed and rises when one fails; the number of inner steps grows where it was too
small. The rows are taken without the prox term, whose purpose is to make them convex: a candidate is
repaired by steps onto the rows instead, and accepted only if it is feasible and F1 has fallen.
"""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers import kkt
from hcmodel.solvers.first_order.feasibility import (
    FeasibilityState,
    feasibility_step,
)
from hcmodel.solvers.first_order.level_step import LinearModel
from hcmodel.solvers.first_order.method_rules import FeasibilityRules, IppmRules
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.numerics import BOTTOM, MERIT_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import DEFAULT_BACKEND, QPBackend, make_backend
from hcmodel.solvers.result import Termination
from hcmodel.solvers.theory.theorems import Constants, IppmParameters

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """Options of the IPPM methods under the adaptive rule."""

    backend: str = DEFAULT_BACKEND
    inner_steps: int = 60
    """How many inner steps an outer step begins with; failures raise it."""
    most_inner_steps: int = 2000
    """How many steps the inner solver may take for one outer step."""
    patience: int = 12
    """How many outer steps in a row may fail before the run counts as stalled."""
    rules: IppmRules = field(default_factory=IppmRules)
    """The numbers inside the method, with their sources in `solvers/first_order/method_rules.py`."""


@dataclass(frozen=True)
class Subproblem:
    """(Shifted-IPPM) at a centre. `metric` has a length for each coordinate.

    `smoothness` is what the inner solver knows of the curvature from before, `allowed` the relative
    violation up to which a point counts as feasible.
    """

    centre: Evaluation
    metric: FloatArray
    rho_hat: float
    steps: int
    smoothness: float
    allowed: float


@dataclass(frozen=True)
class InnerResult:
    """What an inner solver found: a point with all functions evaluated, or None if none was feasible.

    `settled` says that the accuracy asked for was met within the steps given.
    """

    evaluation: Evaluation | None
    multipliers: FloatArray | None = None
    smoothness: float = np.nan
    settled: bool = True


class InnerSolver(Protocol):
    """Algorithm 2 or 3. `exact` runs it as printed, `adaptive` without constants."""

    def check(self, task: Task) -> None:
        """Refuse, with a ValueError, a problem that the solver is not made for."""

    def exact(self, task: Task, centre: Evaluation, rule: IppmParameters) -> InnerResult: ...
    def adaptive(self, task: Task, subproblem: Subproblem) -> InnerResult: ...

    def feasibility(
        self, task: Task, backend: QPBackend, state: FeasibilityState, rules: FeasibilityRules
    ) -> FeasibilityState:
        """One step on F2 alone, under the adaptive rule."""

    def parameters(self, tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
        """The corollary that this inner solver belongs to."""

    def exact_feasibility(
        self, task: Task, constants: Constants, current: Evaluation
    ) -> tuple[Evaluation, bool]:
        """A share of the phase on F2 with the theorem's parameters, and whether it is over."""


@dataclass(frozen=True)
class IppmState(State):
    """`rho_hat` is ρ̂ in units of F1 for a squared natural length.

    `slope` is the largest derivative of F1, in natural units, where the descent began.
    """

    rho_hat: float = np.nan
    slope: float = np.nan
    inner_steps: int = 0
    smoothness: float = np.nan
    failures: int = 0
    lowest_residual: float = np.inf
    feasibility: FeasibilityState | None = None


class Ippm:
    """Algorithm 1 with a pluggable inner solver."""

    def __init__(self, inner: InnerSolver, options: Options | None = None) -> None:
        self.options = options or Options()
        self.inner = inner
        self.backend = make_backend(self.options.backend)

    def init(self, task: Task, start: Evaluation) -> IppmState:
        self.inner.check(task)
        state = IppmState(
            current=start,
            multipliers=np.zeros(start.rows.size),
            inner_steps=self.options.inner_steps,
        )
        if start.relative_violation <= self._allowed(task):
            return self._descent(task, state, start)
        rows_only = task.oracle.restricted(objective=False).at(start.point)
        inner = FeasibilityState.begin(rows_only, self.options.rules.feasibility)
        return replace(state, phase="feasibility", feasibility=inner)

    def step(self, task: Task, state: IppmState) -> IppmState:
        if state.feasibility is not None:
            return self._feasibility(task, state)
        centre = state.current
        subproblem = Subproblem(
            centre=centre,
            metric=task.domain.metric(centre.point),
            rho_hat=state.rho_hat,
            steps=state.inner_steps,
            smoothness=state.smoothness,
            allowed=self._allowed(task),
        )
        found = self.inner.adaptive(task, subproblem)
        state = replace(state, smoothness=found.smoothness)
        candidate = self._repaired(task, found.evaluation)
        if candidate is None or not _lower(candidate, centre, found.multipliers):
            return self._failed(state)
        fallen = centre.objective - candidate.objective
        slow = fallen <= self.options.rules.slow * task.tolerance * abs(candidate.objective)
        state = self._judged(task, self._accepted(state, candidate, found))
        return self._paced(state, slow)

    def terminate(self, task: Task, state: IppmState) -> Termination | None:
        return None

    def _allowed(self, task: Task) -> float:
        """The relative violation that an outer iterate may have."""
        return self.options.rules.feasibility.feasible_share * task.tolerance

    def _descent(self, task: Task, state: IppmState, start: Evaluation) -> IppmState:
        """The first ρ̂ lets an outer step go about one natural unit."""
        model = LinearModel.at(start, task.domain)
        state = replace(
            state,
            current=start,
            phase="descent",
            feasibility=None,
            rho_hat=model.gradient_scale,
            smoothness=model.gradient_scale,
            slope=model.gradient_scale,
        )
        return self._judged(task, state)

    def _feasibility(self, task: Task, state: IppmState) -> IppmState:
        assert state.feasibility is not None
        rules = self.options.rules.feasibility
        inner = self.inner.feasibility(task, self.backend, state.feasibility, rules)
        state = replace(state, feasibility=inner, current=inner.current, step=inner.step)
        if inner.current.relative_violation <= self._allowed(task):
            start = task.oracle.at(inner.current.point)
            if start.finite and start.differentiable:
                return self._descent(task, state, start)
            return replace(state, stop=Termination.OUTSIDE_DOMAIN)
        if inner.stationary:
            # At a kink no model of first order is fit to say that the violation is stationary.
            smooth = task.oracle.smooth
            stop = Termination.INFEASIBLE_STATIONARY if smooth else Termination.STALLED
            return replace(state, stop=stop, conflict=inner.conflict)
        return state

    def _repaired(self, task: Task, candidate: Evaluation | None) -> Evaluation | None:
        """The candidate, brought back onto the rows where it violates them."""
        if candidate is None:
            return None
        allowed, rules = self._allowed(task), self.options.rules
        if candidate.relative_violation <= allowed:
            return candidate
        rows_only = task.oracle.restricted(objective=False).at(candidate.point)
        inner = FeasibilityState.begin(rows_only, rules.feasibility)
        for _ in range(rules.repairs):
            needed = rules.repair_fall * inner.current.relative_violation
            inner = feasibility_step(task, self.backend, inner, rules.feasibility)
            if inner.current.relative_violation <= allowed:
                whole = task.oracle.at(inner.current.point)
                return whole if whole.finite and whole.differentiable else None
            if inner.elastic or inner.stationary or inner.current.relative_violation > needed:
                return None
        return None

    def _failed(self, state: IppmState) -> IppmState:
        failures = state.failures + 1
        return replace(
            state,
            rho_hat=self.options.rules.failed * state.rho_hat,
            inner_steps=self._more_steps(state),
            failures=failures,
            step=0.0,
            stop=Termination.STALLED if failures >= self.options.patience else None,
        )

    def _more_steps(self, state: IppmState) -> int:
        more = int(self.options.rules.more_steps * state.inner_steps)
        return min(self.options.most_inner_steps, more)

    def _accepted(self, state: IppmState, candidate: Evaluation, found: InnerResult) -> IppmState:
        move = candidate.point - state.current.point
        return replace(
            state,
            current=candidate,
            multipliers=state.multipliers if found.multipliers is None else found.multipliers,
            rho_hat=(self.options.rules.settled if found.settled else 1.0) * state.rho_hat,
            inner_steps=state.inner_steps if found.settled else self._more_steps(state),
            step=float(np.linalg.norm(move)),
            stop=Termination.UNBOUNDED if candidate.objective < -BOTTOM else None,
        )

    def _paced(self, state: IppmState, slow: bool) -> IppmState:
        """Steps that lower neither F1 nor the residual by much count as failures."""
        fall = self.options.rules.residual_fall
        if not slow or state.residual <= fall * state.lowest_residual:
            lowest = min(state.residual, state.lowest_residual)
            return replace(state, failures=0, lowest_residual=lowest)
        failures = state.failures + 1
        tired = failures >= self.options.patience
        stop = state.stop or (Termination.STALLED if tired else None)
        return replace(state, failures=failures, stop=stop)

    def _judged(self, task: Task, state: IppmState) -> IppmState:
        """Whether the point is a KKT point. Where there are kinks derivatives prove nothing."""
        current = state.current
        multipliers, residual = kkt.best_multipliers(
            current, task.domain, [state.multipliers], task.tolerance
        )
        converged = (
            task.oracle.smooth
            and current.relative_violation <= task.tolerance
            and residual <= task.tolerance
            and self._flat(task, state, multipliers)
        )
        stop = Termination.CONVERGED if converged else state.stop
        return replace(state, multipliers=multipliers, residual=residual, stop=stop)

    def _flat(self, task: Task, state: IppmState, multipliers: FloatArray) -> bool:
        """Stationary in natural units too, beside the objective or beside its first slope."""
        current, share = state.current, self.options.rules.first_slope
        root = kkt.RULES.natural_share * task.tolerance**0.5
        if kkt.scaled_residual(current, task.domain, multipliers) <= root:
            return True
        gradient = kkt.lagrangian_gradient(current, multipliers)
        held = task.domain.normal_cone_distance(current.point, -gradient)
        natural = np.abs(held * task.domain.metric(current.point))
        count = current.inequalities
        products = np.abs(multipliers[:count] * current.rows[:count])
        allowed = share * task.tolerance * state.slope
        return bool((natural <= allowed).all() and (products <= share * allowed).all())


def _lower(candidate: Evaluation, centre: Evaluation, multipliers: FloatArray | None) -> bool:
    """Whether F1 fell, what a violation within the tolerance is worth taken into account."""
    weights = np.zeros(centre.rows.size) if multipliers is None else np.abs(multipliers)
    before = centre.objective + float(weights @ centre.violations)
    after = candidate.objective + float(weights @ candidate.violations)
    return after < before - MERIT_ROUNDING * abs(before)
