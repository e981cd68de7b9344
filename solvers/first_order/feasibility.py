"""Steps on the violation alone: the τ-feasible start that the paper's methods ask for.

The level of the violation is known, it is 0, so these are steps of S-StarBL on the rows. Where the
linearised rows admit no step, the largest violation F2 is lowered instead by the proximal step
`min t + ‖s‖²/(2w)  s.t.  rows + ∇rows·d <= t`; when that finds no decrease, x is a stationary point of
F2, and the multipliers of the step name the rows that conflict.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.level_step import (
    LinearModel,
    Penalty,
    backtrack,
    solve_rows,
)
from hcmodel.solvers.first_order.method_rules import FeasibilityRules
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import QPBackend, QuadraticProgram
from hcmodel.solvers.qp.program import nearer
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FeasibilityState:
    """`width` is the w of the next proximal step; `elastic` says that such steps are taken."""

    current: Evaluation
    width: float
    elastic: bool = False
    step: float = np.nan
    shift: float = 1.0
    conflict: FloatArray | None = None
    stationary: bool = False
    failed: bool = False
    flat: bool = False
    restarts: int = 0

    @staticmethod
    def begin(current: Evaluation, rules: FeasibilityRules) -> FeasibilityState:
        return FeasibilityState(current, rules.first_width)


class WorstViolation:
    """F2 = max(max g, max |h|, 0) as a merit."""

    def merit(self, evaluation: Evaluation) -> float:
        return float(np.max(evaluation.violations, initial=0.0))

    def predicted(self, model: LinearModel, s: FloatArray) -> float:
        _, rows = model.change(s)
        count = model.inequalities
        after = np.concatenate([np.maximum(rows[:count], 0.0), np.abs(rows[count:])])
        return self.merit(model.evaluation) - float(np.max(after, initial=0.0))


def feasibility_step(
    task: Task, backend: QPBackend, state: FeasibilityState, rules: FeasibilityRules
) -> FeasibilityState:
    """One step towards the rows; `stationary` is set where the violation cannot be lowered.

    Rows almost without slope say nothing of where to go; a few samples of X are then tried instead.
    """
    stepped = _step(task, backend, state, rules)
    if not (stepped.stationary and stepped.flat and stepped.restarts < rules.most_restarts):
        return stepped
    generator = np.random.default_rng(stepped.restarts)
    sample = task.oracle.restricted(objective=False).at(task.domain.sample(generator))
    if not (sample.finite and sample.differentiable):
        return replace(stepped, stationary=False, restarts=stepped.restarts + 1)
    return FeasibilityState(sample, rules.first_width, restarts=stepped.restarts + 1)


def _step(
    task: Task, backend: QPBackend, state: FeasibilityState, rules: FeasibilityRules
) -> FeasibilityState:
    oracle = task.oracle.restricted(objective=False)
    norm = _natural(task.domain, state.current.point, rules.largest_matrix)
    model = LinearModel.at(state.current, task.domain, norm)
    if not state.elastic:
        inner = replace(model, steps=nearer(model.steps, rules.reach))
        onto_rows = solve_rows(inner, backend, rules.level)
        onto_rows = onto_rows or solve_rows(model, backend, rules.level)
        if onto_rows is not None:
            s, shift = onto_rows
            merit = Penalty(1.0 / model.row_scales)
            start = merit.merit(state.current)
            search = backtrack(oracle, task.domain, model, s, merit, start, rules.search)
            length = float(np.linalg.norm(s)) * search.length if search else 0.0
            if search is not None and max(search.length, length) >= rules.shortest:
                return replace(state, current=search.evaluation, step=length, shift=shift)
        state = replace(state, elastic=True)
    return _elastic_step(task, backend, state, model, rules)


def _natural(domain: Domain, point: FloatArray, largest: int) -> FloatArray | None:
    if point.size > largest:
        return None
    norm = domain.norm(point)
    return norm if norm.ndim == 2 else None


def _elastic_step(
    task: Task,
    backend: QPBackend,
    state: FeasibilityState,
    model: LinearModel,
    rules: FeasibilityRules,
) -> FeasibilityState:
    oracle = task.oracle.restricted(objective=False)
    merit = WorstViolation()
    worst = merit.merit(state.current)
    unit = min(worst, float(np.max(model.row_scales)))
    solution = backend.solve(_elastic_program(model, worst, unit, state.width, rules))
    if not solution.usable:
        return replace(state, failed=True)
    s = solution.step[:-1]
    count, equal = model.inequalities, state.current.rows.size - model.inequalities
    weights = solution.inequality_multipliers
    conflict = weights[:count].copy()
    conflict = np.append(conflict, weights[count : count + equal] + weights[count + equal :])
    conflict = conflict / model.row_scales
    state = replace(state, conflict=conflict / max(float(conflict.sum()), TINY), shift=np.nan)
    slopes = abs(model.jacobian).max(axis=1)
    slopes = slopes.toarray() if scipy.sparse.issparse(slopes) else slopes
    violated = state.current.violations >= rules.violated_share * worst
    steepest = np.max((np.reshape(slopes, -1) * model.row_scales)[violated], initial=0.0)
    state = replace(state, flat=bool(steepest <= rules.flat * worst))
    if merit.predicted(model, s) <= rules.stationary * unit:
        if state.width >= rules.widest:
            return replace(state, stationary=True)
        return replace(state, width=state.width * rules.width_change)
    search = backtrack(oracle, task.domain, model, s, merit, worst, rules.search)
    if search is None:
        if state.width < rules.narrowest:
            return replace(state, stationary=True)
        return replace(state, width=state.width / rules.width_change)
    width = state.width * np.clip(search.ideal, rules.width_cut, rules.width_growth)
    return replace(
        state,
        current=search.evaluation,
        width=float(np.clip(width, rules.narrowest, rules.widest)),
        step=float(np.linalg.norm(s)) * search.length,
    )


def _elastic_program(
    model: LinearModel, worst: float, unit: float, width: float, rules: FeasibilityRules
) -> QuadraticProgram:
    """Over (s, t): the largest violation is to fall by t units, t as large as may be.

    Slack that no step of natural length can use up is cut off, so that the numbers stay of one size.
    """
    count, dimension = model.inequalities, model.gradient.size
    jacobian = model.jacobian
    stack = scipy.sparse.vstack if scipy.sparse.issparse(jacobian) else np.vstack
    beside = scipy.sparse.hstack if scipy.sparse.issparse(jacobian) else np.hstack
    rows = stack([jacobian, -jacobian[count:]])
    shares = (unit / model.row_scales).reshape(-1, 1)
    shares = np.vstack([shares, shares[count:]])
    slack = worst / model.row_scales - model.rows
    opposite = (worst / model.row_scales + model.rows)[count:]
    bound = np.minimum(np.concatenate([slack, opposite]), rules.largest_slack)
    steps = replace(
        model.steps,
        lower=np.append(model.steps.lower, 0.0),
        upper=np.append(model.steps.upper, worst / unit),
        cones=tuple(
            replace(
                cone,
                matrix=scipy.sparse.csr_array(
                    scipy.sparse.hstack(
                        [cone.matrix, scipy.sparse.csr_array((cone.matrix.shape[0], 1))]
                    )
                ),
            )
            for cone in model.steps.cones
        ),
    )
    return QuadraticProgram(
        quadratic=np.append(np.full(dimension, 1.0 / width), 0.0),
        linear=np.append(np.zeros(dimension), -1.0),
        inequality=beside([rows, shares]),
        inequality_bound=bound,
        equality=np.zeros((0, dimension + 1)),
        equality_bound=np.zeros(0),
        domain=steps,
    )
