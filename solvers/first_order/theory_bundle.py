"""`sbl-star` and `sbl-adals` under the theory rule: (SBL-QP) with the parameters of Theorems 2 and 3.

Fatkhullin, He, Lan, Wolf (2025), update rule (S-StarBL), Algorithms 4 and 5 with their errata: the first
epoch uses η0, there are N + 1 epochs of T steps, and an infeasible QP proves the bad case and ends its
epoch. The metric is Euclidean, the domain is all of X, nothing is searched or backtracked:

    minimise ‖x − x_t‖²   s.t.   ℓ_F1 <= (1−αβ)F1 + αβη + (1−β)αλ[F2]₊ + τ,
                                 ℓ_g <= (1−α)g + τ,   |ℓ_h − (1−α)h| <= τ,   x in X
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.violation import max_of_abs
from hcmodel.solvers.loop import RULES, State, Task
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import DEFAULT_BACKEND, QPBackend, QPStatus, QuadraticProgram, make_backend
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.result import Termination
from hcmodel.solvers.sets.domain import FARTHEST, Domain
from hcmodel.solvers.theory.theorems import (
    BundleParameters,
    Constants,
    feasibility_phase,
    multiplier_bound,
    theorem_2,
    theorem_3,
)

FloatArray = NDArray[np.float64]

# The theorem's iterations are done, or its promise can be checked and is kept.
DONE = Termination.PROMISE_DONE


def coordinate_bounds(domain: Domain) -> tuple[FloatArray, FloatArray]:
    """The smallest box around X: what `step_rows` would cut off for safety is let in again."""
    lower, upper = np.zeros(domain.dimension), np.zeros(domain.dimension)
    direction = np.zeros(domain.dimension)
    for entry in range(domain.dimension):
        direction[entry] = 1.0
        upper[entry] = domain.support(direction)
        lower[entry] = -domain.support(-direction)
        direction[entry] = 0.0
    return lower, upper


def whole_domain(domain: Domain, bounds: tuple[FloatArray, FloatArray], x: FloatArray) -> StepRows:
    """x + d in X with d in plain units."""
    rows = domain.step_rows(x, np.ones(x.size))
    return replace(rows, lower=bounds[0] - x, upper=bounds[1] - x)


def stacked(*blocks: Any) -> Any:
    """Rows one under the other, sparse where one of them is."""
    if any(scipy.sparse.issparse(block) for block in blocks):
        return scipy.sparse.csr_array(scipy.sparse.vstack(blocks))
    return np.vstack(blocks)


class QPFailedError(Exception):
    """The backend found no answer, which, unlike an infeasible program, proves nothing."""


@dataclass(frozen=True)
class ShiftedCuts:
    """One step of (SBL-QP) on a domain."""

    domain: Domain
    bounds: tuple[FloatArray, FloatArray]
    backend: QPBackend

    def step(
        self, current: Evaluation, alpha: float, tau: float, rise: float | None
    ) -> tuple[FloatArray, FloatArray] | None:
        """The next point and multipliers; `rise` bounds ∇F1·d, None leaves F1 out. None: infeasible."""
        count, rows = current.inequalities, current.rows
        jacobian: Any = current.jacobian
        cuts = stacked(jacobian, -jacobian[count:])
        right = np.concatenate([tau - alpha * rows, tau + alpha * rows[count:]])
        if rise is not None:
            cuts = stacked(cuts, current.gradient.reshape(1, -1))
            right = np.append(right, rise)
        norms = np.sqrt(np.asarray((cuts * cuts).sum(axis=1)).reshape(-1))
        lengths = np.where(norms > 0, norms, 1.0)
        if (right[norms == 0] < 0).any():
            return None
        # The step is as long as the farthest cut is away, about: the QP is solved in that unit.
        unit = float(np.max(-right / lengths, initial=0.0))
        if unit == 0.0:
            return current.point, np.zeros(rows.size)
        scaling = 1.0 / lengths
        scaled = (
            scipy.sparse.csr_array(scipy.sparse.diags_array(scaling) @ cuts)
            if scipy.sparse.issparse(cuts)
            else cuts * scaling[:, None]
        )
        steps = whole_domain(self.domain, self.bounds, current.point)
        cones = tuple(replace(cone, offset=cone.offset / unit) for cone in steps.cones)
        size = current.point.size
        solution = self.backend.solve(
            QuadraticProgram(
                quadratic=np.ones(size),
                linear=np.zeros(size),
                inequality=scaled,
                inequality_bound=right * scaling / unit,
                equality=np.zeros((0, size)),
                equality_bound=np.zeros(0),
                domain=StepRows(
                    np.where(steps.lower < -FARTHEST * unit, -np.inf, steps.lower / unit),
                    np.where(steps.upper > FARTHEST * unit, np.inf, steps.upper / unit),
                    cones,
                ),
            )
        )
        if solution.status is QPStatus.INFEASIBLE:
            return None
        if not solution.usable:
            raise QPFailedError(solution.status.value)
        weights = solution.inequality_multipliers * scaling
        multipliers = weights[: rows.size].copy()
        multipliers[count:] -= weights[rows.size : 2 * rows.size - count]
        level = weights[-1] if rise is not None else 1.0
        multipliers = multipliers / level if level > 0 else np.zeros(rows.size)
        moved = self.domain.project(current.point + unit * solution.step)
        if np.array_equal(moved, current.point):
            raise ValueError(
                f"with these constants the steps of the theorem are about {unit:.1e} long, which is "
                "lost to rounding: mu_c may be too small, or diameter_u, f1_upper or multiplier too "
                "large, for this tolerance; problem.analyze() estimates the constants"
            )
        return moved, multipliers


@dataclass(frozen=True)
class TheoryState(State):
    """`parameters` are those of the phase the run is in, `taken` its steps so far."""

    parameters: BundleParameters = field(default_factory=lambda: BundleParameters(1.0, 1.0, 0.0, 0))
    taken: int = 0
    epoch: int = 0
    origin: Evaluation | None = None
    lowest: Evaluation | None = None
    """x̄, the lowest F1 + λ[F2]₊ of the epoch."""


class _TheoryBundle:
    """What the two methods share: the phase on F2 and steps in bunches, one record each."""

    def __init__(self, constants: Constants, backend: str = DEFAULT_BACKEND) -> None:
        self.constants = constants
        self.backend = make_backend(backend)
        self._cuts: ShiftedCuts | None = None

    def cuts(self, task: Task) -> ShiftedCuts:
        if self._cuts is None or self._cuts.domain is not task.domain:
            bounds = coordinate_bounds(task.domain)
            self._cuts = ShiftedCuts(task.domain, bounds, self.backend)
        return self._cuts

    def terminate(self, task: Task, state: TheoryState) -> Termination | None:
        return None


class TheoryStarBundleLevel(_TheoryBundle):
    """`sbl-star`: stops as soon as ε is reached, which a known F1* lets it see."""

    def init(self, task: Task, start: Evaluation) -> TheoryState:
        if task.optimal_value is None:
            raise ValueError("sbl-star needs the optimal value")
        merit = max(start.objective - task.optimal_value, max_of_abs(start)[0])
        parameters = theorem_2(task.tolerance, self.constants, merit)
        return TheoryState(
            current=start,
            multipliers=np.zeros(start.rows.size),
            phase="descent",
            level=task.optimal_value,
            shift=parameters.alpha,
            parameters=parameters,
        )

    def step(self, task: Task, state: TheoryState) -> TheoryState:
        try:
            return self._advance(task, state)
        except QPFailedError:
            return replace(state, stop=Termination.BACKEND_FAILED)

    def _advance(self, task: Task, state: TheoryState) -> TheoryState:
        rule = state.parameters
        assert task.optimal_value is not None
        for _ in range(max(1, rule.steps // RULES.records)):
            if state.taken >= rule.steps:
                return replace(state, stop=DONE)
            gap = state.current.objective - task.optimal_value
            found = self.cuts(task).step(
                state.current, rule.alpha, rule.tau, rule.tau - rule.alpha * gap
            )
            state = _moved(task.oracle, state, found)
            if state.stop is not None or self.terminate(task, state) is not None:
                break
        return state

    def terminate(self, task: Task, state: TheoryState) -> Termination | None:
        assert task.optimal_value is not None
        gap = max(state.current.objective - task.optimal_value, max_of_abs(state.current)[0])
        return Termination.LEVEL_REACHED if gap <= task.tolerance else None


class TheoryAdaptiveLineSearch(_TheoryBundle):
    """`sbl-adals`: η0 is the given lower bound of F1, λ the given bound of the multiplier."""

    def init(self, task: Task, start: Evaluation) -> TheoryState:
        multiplier = multiplier_bound(self.constants)
        (level,) = self.constants.need("Theorem 3", "f1_lower")
        wanted = task.tolerance / (2.0 * multiplier)
        violation = max_of_abs(start)[0]
        state = TheoryState(current=start, multipliers=np.zeros(start.rows.size), level=level)
        if violation <= wanted:
            return self._descent(task, state, start)
        rule = feasibility_phase(wanted, self.constants, violation)
        rows_only = task.oracle.restricted(objective=False).at(start.point)
        return replace(
            state, current=rows_only, phase="feasibility", shift=rule.alpha, parameters=rule
        )

    def step(self, task: Task, state: TheoryState) -> TheoryState:
        advance = self._feasibility if state.phase == "feasibility" else self._epoch
        for _ in range(max(1, state.parameters.iterations // RULES.records)):
            phase = state.phase
            try:
                state = advance(task, state)
            except QPFailedError:
                return replace(state, stop=Termination.BACKEND_FAILED)
            if state.stop is not None or state.phase != phase:
                break
        return state

    def _feasibility(self, task: Task, state: TheoryState) -> TheoryState:
        rule = state.parameters
        rows_only = task.oracle.restricted(objective=False)
        found = self.cuts(task).step(state.current, rule.alpha, rule.tau, None)
        state = _moved(rows_only, state, found)
        wanted = task.tolerance / (2.0 * multiplier_bound(self.constants))
        if state.stop is None and max_of_abs(state.current)[0] <= wanted:
            return self._descent(task, state, task.oracle.at(state.current.point))
        if state.taken >= rule.steps:
            return replace(state, stop=DONE)
        return state

    def _descent(self, task: Task, state: TheoryState, start: Evaluation) -> TheoryState:
        delta0 = start.objective - state.level
        known = task.optimal_value
        gap = None if known is None else known - state.level
        rule = theorem_3(task.tolerance, self.constants, delta0, gap)
        return replace(
            state,
            current=start,
            phase="descent",
            shift=rule.alpha,
            parameters=rule,
            taken=0,
            origin=start,
            lowest=start,
            stop=DONE if delta0 + rule.multiplier * violated(start) <= task.tolerance else None,
        )

    def _epoch(self, task: Task, state: TheoryState) -> TheoryState:
        """A step of Algorithm 4, and the update of Algorithm 5 at the end of its epoch."""
        rule, current = state.parameters, state.current
        share = rule.alpha * rule.beta * (current.objective - state.level)
        debt = (1.0 - rule.beta) * rule.alpha * rule.multiplier * violated(current)
        found = self.cuts(task).step(current, rule.alpha, rule.tau, rule.tau - share + debt)
        bad_case = found is None
        lowest, origin = state.lowest, state.origin
        assert lowest is not None
        assert origin is not None
        if not bad_case:
            state = _moved(task.oracle, state, found)
            if self._merit(state.current) < self._merit(lowest):
                lowest = state.current
                state = replace(state, lowest=lowest)
        if state.stop is not None or not (bad_case or state.taken >= rule.steps):
            return state
        merit = self._merit(lowest)
        level = rule.beta * state.level + (1.0 - rule.beta) * merit
        # η is below F1*, or the good case has occurred and x̄ is as near as promised (Lemma 2).
        done = state.epoch + 1 >= rule.epochs or merit - level <= task.tolerance
        if done:
            return replace(state, current=lowest, level=level, stop=DONE)
        return replace(
            state,
            current=origin,
            lowest=origin,
            level=level,
            taken=0,
            epoch=state.epoch + 1,
        )

    def _merit(self, evaluation: Evaluation) -> float:
        return evaluation.objective + multiplier_bound(self.constants) * violated(evaluation)


def violated(evaluation: Evaluation) -> float:
    """[F2]₊."""
    return max(max_of_abs(evaluation)[0], 0.0)


def _moved(
    oracle: Oracle, state: TheoryState, found: tuple[FloatArray, FloatArray] | None
) -> TheoryState:
    """The state after a step; a QP without a solution refutes the constants or the level."""
    if found is None:
        return replace(state, stop=Termination.STALLED)
    point, multipliers = found
    following = oracle.at(point)
    if not (following.finite and following.differentiable):
        return replace(state, stop=Termination.OUTSIDE_DOMAIN)
    length = float(np.linalg.norm(point - state.current.point))
    return replace(
        state,
        current=following,
        multipliers=multipliers,
        step=length,
        taken=state.taken + 1,
    )
