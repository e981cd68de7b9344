"""S-StarBL, the shifted bundle-level method for a known optimal value.

Fatkhullin, He, Lan, Wolf, "Global Solutions to Non-Convex Functional Constrained Problems with Hidden
Convexity" (2025), update rule (S-StarBL) and Theorem 2. With the adaptive rule the shift α comes from
backtracking: the wanted decrease is δ = α(F1 − F1*), α starts at 1 and follows the curvature met.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers import kkt
from hcmodel.solvers.first_order.feasibility import (
    FeasibilityState,
    feasibility_step,
)
from hcmodel.solvers.first_order.level_step import (
    LevelStep,
    LinearModel,
    Penalty,
    Search,
    backtrack,
    solve_level,
    solve_rows,
    worst,
)
from hcmodel.solvers.first_order.method_rules import BundleRules, LevelRules
from hcmodel.solvers.first_order.secant import secant_matrix
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.numerics import BOTTOM, FAR, MERIT_ROUNDING, SUM_ROUNDING
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import ACTIVE_SET, QPBackend, make_backend
from hcmodel.solvers.result import Termination
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """Options of the bundle-level methods under the adaptive rule."""

    backend: str = ACTIVE_SET
    memory: int = 5
    """How many past points the merit is compared with; 1 is a monotone method."""
    failures: int = 4
    """How many times in a row a step may fail before the run counts as stalled."""
    patience: int = 30
    """How many steps in a row may leave the merit where it is before the run counts as stalled."""
    rules: BundleRules = field(default_factory=BundleRules)
    """The numbers inside the method, with their sources in `solvers/first_order/method_rules.py`."""

    def __post_init__(self) -> None:
        for name in ("memory", "failures", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be at least 1, a whole number, not {value!r}")
        make_backend(self.backend)


@dataclass(frozen=True)
class BundleState(State):
    """State of a bundle-level method; `decrease` is δ, the fall of F1 that the next QP asks for.

    `bundle` are the last points, whose derivatives give the QP its metric; `weight` is the multiplier
    of the level in that metric, or in the domain's own where the bundle tells nothing (not `curved`).
    """

    decrease: float = np.nan
    weight: float = 0.0
    bundle: tuple[Evaluation, ...] = ()
    curved: bool = False
    penalty: Penalty = field(default_factory=lambda: Penalty(np.zeros(0)))
    history: tuple[Evaluation, ...] = ()
    failures: int = 0
    lowest: Evaluation | None = None
    stagnant: int = 0
    feasibility: FeasibilityState | None = None
    origin: Evaluation | None = None
    phase_steps: int = 0


class StarBundleLevel:
    """`sbl-star`."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.backend = make_backend(self.options.backend)

    def init(self, task: Task, start: Evaluation) -> BundleState:
        if task.optimal_value is None:
            raise ValueError("sbl-star needs the optimal value")
        state = initial_state(task, start, self.options.rules)
        return replace(state, level=task.optimal_value)

    def step(self, task: Task, state: BundleState) -> BundleState:
        if state.feasibility is not None:
            return continue_feasibility(task, self.backend, state, self.options.rules)
        assert task.optimal_value is not None
        remaining = state.current.objective + owed(state) - task.optimal_value
        last = state.decrease
        wanted = min(last, max(remaining, 0.0))
        state = advance(task, self.backend, self.options, state, wanted)
        if wanted == 0.0:
            # Below the level for want of feasibility: that tells nothing of the curvature.
            state = replace(state, decrease=last)
        gap = state.current.objective - task.optimal_value
        share = min(1.0, state.decrease / gap) if gap > 0 else 1.0
        return replace(state, level=task.optimal_value, shift=share)

    def terminate(self, task: Task, state: BundleState) -> Termination | None:
        assert task.optimal_value is not None
        rules = self.options.rules
        feasible = (
            state.current.relative_violation <= rules.feasibility.feasible_share * task.tolerance
        )
        below = task.optimal_value - state.current.objective
        if state.feasibility is None and feasible:
            margin = rules.level_margin * task.tolerance * max(1.0, abs(task.optimal_value))
            if abs(below) <= margin:
                return Termination.LEVEL_REACHED
            if below > task.tolerance * max(1.0, abs(task.optimal_value)) + owed(state):
                return Termination.LEVEL_PASSED
        return None


def initial_state(task: Task, start: Evaluation, rules: BundleRules) -> BundleState:
    """The first state; a phase on the rows alone comes first where the start violates them."""
    state = BundleState(
        current=start,
        multipliers=np.zeros(start.rows.size),
        phase="descent",
        decrease=first_decrease(start, task, rules),
        penalty=Penalty(np.zeros(start.rows.size), rules.penalty),
        history=(start,),
    )
    if start.relative_violation <= rules.feasibility.feasible_share * task.tolerance:
        return state
    rows_only = task.oracle.restricted(objective=False).at(start.point)
    inner = FeasibilityState.begin(rows_only, rules.feasibility)
    return replace(state, phase="feasibility", feasibility=inner)


def first_decrease(start: Evaluation, task: Task, rules: BundleRules) -> float:
    """The fall of F1 along a share of a natural step, the scale to begin with."""
    scaled = start.gradient * task.domain.metric(start.point)
    return rules.first_step * float(np.max(np.abs(scaled), initial=0.0))


def continue_feasibility(
    task: Task, backend: QPBackend, state: BundleState, rules: BundleRules
) -> BundleState:
    """One step of the phase on the rows, or its end: the objective at the point it has reached."""
    assert state.feasibility is not None
    inner = state.feasibility
    feasible = inner.current.relative_violation <= rules.feasibility.feasible_share * task.tolerance
    if not feasible:
        inner = feasibility_step(task, backend, inner, rules.feasibility)
    state = replace(
        state, feasibility=inner, current=inner.current, step=inner.step, shift=inner.shift
    )
    if feasible:
        start = task.oracle.at(inner.current.point)
        if start.finite and start.differentiable:
            return replace(
                state,
                current=start,
                phase="descent",
                decrease=first_decrease(start, task, rules),
                history=(start,),
                bundle=(),
                feasibility=None,
            )
        return replace(state, stop=Termination.OUTSIDE_DOMAIN)
    if inner.failed:
        return replace(state, stop=Termination.BACKEND_FAILED)
    if inner.stationary:
        stop = Termination.INFEASIBLE_STATIONARY
        return replace(state, stop=stop, conflict=inner.conflict)
    return state


def owed(state: BundleState) -> float:
    """Σ |λ_i| [row_i]₊: by how much F1 has to rise, to first order, to repair the rows."""
    return float(np.abs(state.multipliers) @ state.current.violations)


def advance(
    task: Task,
    backend: QPBackend,
    options: Options,
    state: BundleState,
    wanted: float,
    oracle: Oracle | None = None,
) -> BundleState:
    """One step: the QP for a decrease, the KKT test its multipliers allow, and the search.

    `wanted` is the decrease of F1 + λ[F2]₊; as the rows are repaired in full, F1 may rise by λ[F2]₊.
    """
    oracle, rules = oracle or task.oracle, options.rules
    curvature = _curvature(task.domain, state, rules)
    if state.curved != (curvature is not None):
        # Of its own, a quadratic model has its minimum at a multiplier of 1.
        state = replace(state, curved=not state.curved, weight=0.0 if state.curved else 1.0)
    model = LinearModel.at(state.current, task.domain, curvature)
    debt = owed(state)
    level_step = solve_level(model, wanted - debt, state.weight, backend, rules.level)
    if level_step is None and state.current.relative_violation <= task.tolerance:
        return replace(state, stop=Termination.BACKEND_FAILED)  # d = 0 satisfies every row
    if level_step is None:
        rows_only = oracle.restricted(objective=False).at(state.current.point)
        inner = FeasibilityState.begin(rows_only, rules.feasibility)
        return replace(state, phase="feasibility", feasibility=replace(inner, elastic=True))
    state = _judge(task, state, level_step, rules)
    if state.stop is not None:
        return state
    slope = rules.smallest_slope * model.gradient_scale
    smallest = SUM_ROUNDING * max(abs(state.current.objective), slope)
    if wanted <= smallest and debt <= smallest:
        return replace(state, stop=Termination.STALLED)
    penalty = state.penalty
    if level_step.multipliers is not None:
        penalty = penalty.covering(level_step.multipliers)
    penalty = penalty.enforcing(model, level_step.s)
    reference = worst(state.history, penalty)
    longest = float(np.linalg.norm(level_step.s * model.metric))

    def repair(trial: Evaluation) -> Evaluation | None:
        return _onto_rows(oracle, task.domain, backend, trial, curvature, longest, rules.level)

    search = backtrack(
        oracle, task.domain, model, level_step.s, penalty, reference, rules.search, repair
    )
    if search is None:
        return _failed(options, state, penalty, wanted)
    promised = penalty.predicted(model, level_step.s)
    used = 0.0 if level_step.decrease is None else level_step.decrease + debt
    decrease = _next_decrease(wanted, used, promised, search, rules)
    return _moved(task.domain, options, state, level_step, penalty, search, decrease)


def _curvature(domain: Domain, state: BundleState, rules: BundleRules) -> FloatArray | None:
    size, count = state.current.point.size, state.current.rows.size
    if size > rules.largest_matrix or count * size > rules.largest_jacobian:
        return None
    return secant_matrix(state.bundle, state.current, state.multipliers, domain)


def _onto_rows(
    oracle: Oracle,
    domain: Domain,
    backend: QPBackend,
    trial: Evaluation,
    curvature: FloatArray | None,
    longest: float,
    rules: LevelRules,
) -> Evaluation | None:
    """The point on the linearised rows nearest to a trial point, where the way is not too long."""
    if not trial.differentiable:
        return None
    model = LinearModel.at(trial, domain, curvature)
    found = solve_rows(model, backend, rules)
    if found is None or found[1] < 1.0:
        return None
    step = found[0] * model.metric
    if np.linalg.norm(step) > longest:
        return None
    repaired = oracle.at(domain.project(trial.point + step))
    return repaired if repaired.finite else None


def _judge(
    task: Task, state: BundleState, level_step: LevelStep, rules: BundleRules
) -> BundleState:
    """Whether the present point is a KKT point with the multipliers that the QP gave."""
    current = state.current
    candidates = [] if level_step.multipliers is None else [level_step.multipliers]
    residual = min(
        (kkt.residual(current, task.domain, multipliers) for multipliers in candidates),
        default=np.inf,
    )
    multipliers = candidates[0] if candidates else state.multipliers
    feasible = current.relative_violation <= rules.feasibility.feasible_share * task.tolerance
    small = current.rows.size * current.point.size <= rules.small
    near = not candidates or residual <= rules.near * task.tolerance
    if feasible and residual > task.tolerance and (small or near):
        fitted, fitted_residual = kkt.best_multipliers(
            current, task.domain, [*candidates, state.multipliers], task.tolerance
        )
        if fitted_residual <= task.tolerance or near:
            multipliers, residual = fitted, fitted_residual
    known = residual if np.isfinite(residual) else None
    converged = feasible and kkt.is_stationary(
        current, task.domain, multipliers, task.tolerance, known
    )
    stop = Termination.CONVERGED if converged else None
    return replace(state, multipliers=multipliers, residual=residual, stop=stop)


def _next_decrease(
    wanted: float, used: float, promised: float, search: Search, rules: BundleRules
) -> float:
    if used >= rules.mostly * promised:
        return used * float(np.clip(search.ideal, rules.least_change, rules.most_change))
    # A step mostly onto the rows tells little of the curvature along the level.
    return wanted * float(np.clip(search.ideal, rules.rows_change, 1.0))


def _next_weight(last: float, used: float, ideal: float, rules: BundleRules) -> float:
    wanted = used * float(np.clip(ideal, rules.least_change, rules.weight_growth))
    if last <= 0:
        return wanted
    most = rules.level.weight_range
    return float(np.clip(wanted, last / most, last * most))


def _escapes(domain: Domain, state: BundleState, reached: Evaluation, rules: BundleRules) -> bool:
    """Whether the point runs away along an unbounded direction, and the objective still falls."""
    fallen = state.current.objective - reached.objective
    settled = reached.objective >= 0 or fallen <= rules.escape * abs(reached.objective)
    if settled or np.max(np.abs(reached.point)) < FAR:
        return False
    further = domain.project(rules.farther * reached.point)
    return bool((np.abs(further) > rules.beyond * FAR).any())


def _moved(
    domain: Domain,
    options: Options,
    state: BundleState,
    level_step: LevelStep,
    penalty: Penalty,
    search: Search,
    decrease: float,
) -> BundleState:
    rules = options.rules
    merit = penalty.merit(search.evaluation)
    needed = MERIT_ROUNDING * max(abs(merit), abs(search.evaluation.objective))
    lowest = state.lowest
    history = (*state.history, search.evaluation)[-options.memory :]
    falling = worst(history, penalty) < worst(state.history, penalty) - needed
    lower = lowest is None or merit < penalty.merit(lowest) - needed
    progress = lower or falling
    stagnant = 0 if progress else state.stagnant + 1
    stop = Termination.STALLED if stagnant >= options.patience else None
    low = search.evaluation.objective < -BOTTOM and not np.isfinite(domain.diameter())
    if low or _escapes(domain, state, search.evaluation, rules):
        stop = Termination.UNBOUNDED
    return replace(
        state,
        current=search.evaluation,
        decrease=decrease,
        weight=_next_weight(state.weight, level_step.weight, search.ideal, rules),
        penalty=penalty,
        history=history,
        bundle=(*(state.bundle or (state.current,)), search.evaluation)[-rules.bundle :],
        step=float(np.linalg.norm(level_step.s)) * search.length,
        failures=0,
        lowest=search.evaluation if lower else lowest,
        stagnant=stagnant,
        stop=stop,
    )


def _failed(options: Options, state: BundleState, penalty: Penalty, wanted: float) -> BundleState:
    cut = options.rules.failed_cut
    failures = state.failures + 1
    stop = Termination.STALLED if failures >= options.failures else None
    return replace(
        state,
        decrease=cut * wanted,
        weight=cut * state.weight,
        penalty=penalty,
        failures=failures,
        stop=stop,
        step=0.0,
    )
