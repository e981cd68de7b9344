"""One step of a shifted bundle-level method: a projection onto linearised rows, then backtracking.

    minimise sᵀMs   s.t.   ∇F1·d <= −δ,   ∇g·d <= −α g (violated) or −g (slack),   ∇h·d = −α h,
                           x + d in X,    d = metric(x)·s

With M = I this is (SBL-QP) of Fatkhullin, He, Lan, Wolf (2025) with τ = 0 and the level written as a
decrease δ = αβ(F1 − η) − (1−β)αλ[F2]₊. The shift comes from backtracking instead of from constants:
hidden convexity makes d = αJ⁻¹(u* − u) satisfy every row for every α <= 1 when the level is not below
F1*, so nothing is lost by starting large. Slack rows are not shifted: that only enlarges the set. Merit
is the exact penalty F1 + Σ λ_i [row_i]₊ with a weight for each row, compared with the worst of the last
few points, because steps of a first-order method are longest where it may rise now and then. M may come
from the gradients of past points instead (`secant`); then a level whose multiplier is 1 is the minimum of
the quadratic model. A step that the rows' own curvature spoils is followed by one back onto the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.first_order.method_rules import LevelRules, PenaltyRules, SearchRules
from hcmodel.solvers.numerics import MERIT_ROUNDING, PRODUCT_ROUNDING
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import QPBackend, QuadraticProgram
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.domain import FARTHEST, Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """Objective and rows linearised at a point, in the units of the domain's metric.

    Rows are divided by their largest derivative, the objective by its own, so that the QP sees
    numbers of one size whatever units the user chose. `quadratic` is the M of ‖s‖² = sᵀMs: ones, or
    the curvature, divided like the objective.
    """

    evaluation: Evaluation
    metric: FloatArray
    gradient: FloatArray
    gradient_scale: float
    jacobian: Any
    row_scales: FloatArray
    rows: FloatArray
    steps: StepRows
    quadratic: FloatArray

    @staticmethod
    def at(
        evaluation: Evaluation, domain: Domain, curvature: FloatArray | None = None
    ) -> LinearModel:
        metric = domain.metric(evaluation.point)
        gradient = evaluation.gradient * metric
        jacobian = evaluation.jacobian
        if scipy.sparse.issparse(jacobian):
            scaled = scipy.sparse.csr_array(jacobian @ scipy.sparse.diags_array(metric))
            largest = np.asarray(abs(scaled).max(axis=1).todense()).reshape(-1)
        else:
            scaled = jacobian * metric
            largest = np.max(np.abs(scaled), axis=1, initial=0.0)
        scales = np.where(largest > 0, largest, 1.0)
        shrunk = (
            scipy.sparse.csr_array(scipy.sparse.diags_array(1 / scales) @ scaled)
            if scipy.sparse.issparse(scaled)
            else (scaled / scales[:, None])
        )
        gradient_scale = float(np.max(np.abs(gradient), initial=0.0)) or 1.0
        quadratic = np.ones(gradient.size) if curvature is None else curvature / gradient_scale
        return LinearModel(
            evaluation=evaluation,
            metric=metric,
            gradient=gradient,
            gradient_scale=gradient_scale,
            jacobian=shrunk,
            row_scales=scales,
            rows=evaluation.rows / scales,
            steps=domain.step_rows(evaluation.point, metric),
            quadratic=quadratic,
        )

    @property
    def curved(self) -> bool:
        """Whether the quadratic term knows more than the domain's metric."""
        return self.quadratic.ndim == 2

    @cached_property
    def stiffness(self) -> float:
        """The size of the quadratic term, by which it is divided for the backend."""
        return float(np.max(np.abs(self.quadratic), initial=0.0)) or 1.0

    @property
    def inequalities(self) -> int:
        return self.evaluation.inequalities

    def program(
        self,
        shift: float,
        decrease: float | None,
        unit: float,
        linear: FloatArray | None = None,
        weight: float | None = None,
    ) -> QuadraticProgram:
        """The QP for a shift α and a decrease δ (None: rows alone), with s measured in `unit`s.

        It has a `linear` part if that is given; `weight` multiplies the quadratic one, which else is
        divided by its own size.

        Near a solution all right-hand sides are tiny; dividing by `unit` keeps the backend's
        absolute tolerances from swallowing them.
        """
        count = self.inequalities
        slack, equal = self.rows[:count], self.rows[count:]
        inequality = self.jacobian[:count]
        bound = np.where(slack > 0, -shift * slack, -slack)
        if decrease is not None:
            cut = (self.gradient / self.gradient_scale).reshape(1, -1)
            stack = scipy.sparse.vstack if scipy.sparse.issparse(inequality) else np.vstack
            inequality = stack([inequality, cut])
            bound = np.concatenate([bound, [-decrease / self.gradient_scale]])
        cones = tuple(
            replace(cone, offset=cone.offset / unit)
            for cone in self.steps.cones
            if not _beyond_reach(cone, unit)
        )
        steps = StepRows(self.steps.lower / unit, self.steps.upper / unit, cones)
        return QuadraticProgram(
            quadratic=self.quadratic / self.stiffness
            if weight is None
            else self.quadratic * weight,
            linear=np.zeros(self.gradient.size) if linear is None else linear,
            inequality=inequality,
            inequality_bound=bound / unit,
            equality=self.jacobian[count:],
            equality_bound=-shift * equal / unit,
            domain=steps,
        )

    def unit(self, decrease: float) -> float:
        """The size that the step will have, about."""
        violated = np.max(self.evaluation.violations / self.row_scales, initial=0.0)
        size = max(float(violated), abs(decrease) / self.gradient_scale)
        return min(max(size, PRODUCT_ROUNDING), 1.0)

    def change(self, s: FloatArray) -> tuple[float, FloatArray]:
        """Predicted change of the objective, and the predicted rows, of a scaled step."""
        return float(self.gradient @ s), (self.rows + self.jacobian @ s) * self.row_scales


def _beyond_reach(cone: Cone, unit: float) -> bool:
    """Whether no step of a natural length leads to the cone's edge; numbers that large spoil the QP."""
    if cone.kind != "psd":
        return False
    room = float(np.linalg.eigvalsh(to_matrix(cone.offset))[0])
    return room > FARTHEST * unit * float(np.max(np.abs(cone.matrix.data), initial=0.0))


@dataclass(frozen=True)
class LevelStep:
    """A direction. `decrease` is the δ that was feasible, None when the level had to be dropped.

    `weight` is the multiplier of the level: the step is −weight times a gradient of the Lagrangian.
    """

    s: FloatArray
    multipliers: FloatArray | None
    shift: float
    decrease: float | None
    weight: float


def solve_rows(
    model: LinearModel, backend: QPBackend, rules: LevelRules
) -> tuple[FloatArray, float] | None:
    """The shortest step onto the linearised rows and the largest shift α that admits one."""
    unit = model.unit(0.0)
    shift = 1.0
    while shift >= rules.smallest_shift:
        solution = backend.solve(model.program(shift, None, unit))
        if solution.usable:
            return solution.step * unit, shift
        shift /= rules.coarse_cut if shift < rules.coarse_below else rules.shift_cut
    return None


def solve_level(
    model: LinearModel, decrease: float, weight: float, backend: QPBackend, rules: LevelRules
) -> LevelStep | None:
    """A step of the wanted decrease, or of one that the linearised rows admit.

    `weight` is the multiplier that the level had in the last step. None means that the rows alone
    admit no step: their linearisation is infeasible over X.
    """
    attempt = _try_level(model, 1.0, decrease, backend, rules)
    if attempt is not None and weight > 0:
        # A level whose multiplier is far from the last one asks for a step of another kind: it is
        # met by slack rows alone, or only by going very far.
        usual = _usual_weight(model, attempt.weight, weight, rules)
        if usual != attempt.weight:
            attempt = _try_weight(model, usual, backend, rules) or attempt
    attempt = attempt or _try_vertex(model, backend, rules)
    attempt = attempt or _try_weight(model, weight, backend, rules)
    if attempt is not None:
        return attempt
    normal = solve_rows(model, backend, rules)
    if normal is None:
        return None
    s, shift = normal
    rise = float(model.gradient @ s)  # what the step onto the rows costs, at most
    least = rules.least_share * model.gradient_scale * model.unit(decrease)
    share = rules.first_share * max(decrease, abs(rise), least)
    for _ in range(rules.level_trials):
        attempt = _try_level(model, shift, share - rise, backend, rules)
        if attempt is not None:
            return attempt
        share /= rules.share_cut
    return LevelStep(s, None, shift, None, weight)


def _usual_weight(model: LinearModel, found: float, last: float, rules: LevelRules) -> float:
    """The multiplier of the level to take, near the last one, where the level alone asks for `found`.

    With the curvature known, the level is asked of the quadratic model instead of the linear one: in
    units of the last multiplier, that falls by w − w²/2 where this falls by w, and no further than w = 1.
    """
    least = last / rules.weight_range
    if not model.curved:
        return min(max(found, least), last * rules.weight_range)
    return max(last * (1.0 - float(np.sqrt(max(0.0, 1.0 - 2.0 * found / last)))), least)


def _try_vertex(model: LinearModel, backend: QPBackend, rules: LevelRules) -> LevelStep | None:
    """The lowest point of the linear model, where that is near: at a sharp minimum it is the answer.

    The quadratic term only chooses among several such points, for which its diagonal is enough.
    """
    if model.curved:
        model = replace(model, quadratic=np.diagonal(model.quadratic).copy())
    attempt = _weighted(model, rules.vertex_weight, 1.0, backend)
    if attempt is None or np.max(np.abs(attempt.s), initial=0.0) > rules.vertex_reach:
        return None
    return attempt


def _try_weight(
    model: LinearModel, weight: float, backend: QPBackend, rules: LevelRules
) -> LevelStep | None:
    """The step whose level has the given multiplier.

    Near a solution the cuts of level and rows are almost opposite and their intersection is too
    ill-conditioned to project onto; the same step in its proximal form is not.
    """
    if not weight > 0:
        return None
    unit = max(model.unit(0.0), min(weight, 1.0))
    attempt = _weighted(model, weight, unit, backend)
    while attempt is not None:
        size = float(np.max(np.abs(attempt.s), initial=0.0))
        if size >= rules.short * unit or unit <= rules.smallest_unit:
            break
        # The step is far shorter than the unit it was computed in, and so is its precision.
        unit = max(rules.unit_margin * size, rules.unit_cut * unit)
        attempt = _weighted(model, weight, unit, backend) or attempt
    return attempt


def _weighted(
    model: LinearModel, weight: float, unit: float, backend: QPBackend
) -> LevelStep | None:
    """minimise ∇F1·d/‖∇F1‖ + sᵀMs/(2 weight) over the linearised rows."""
    linear = model.gradient / model.gradient_scale
    solution = backend.solve(model.program(1.0, None, unit, linear, unit / weight))
    if not solution.usable:
        return None
    rows = np.concatenate([solution.inequality_multipliers, solution.equality_multipliers])
    multipliers = rows * model.gradient_scale / model.row_scales
    s = solution.step * unit
    return LevelStep(s, multipliers, 1.0, -float(model.gradient @ s), weight)


def _try_level(
    model: LinearModel, shift: float, decrease: float, backend: QPBackend, rules: LevelRules
) -> LevelStep | None:
    unit = model.unit(decrease)
    solution = backend.solve(model.program(shift, decrease, unit))
    if not solution.usable:
        return None
    rows = np.concatenate([solution.inequality_multipliers[:-1], solution.equality_multipliers])
    weight = solution.inequality_multipliers[-1]
    multipliers = None
    largest = max(rules.negligible_rows, float(np.max(np.abs(rows), initial=0.0)))
    if weight > rules.negligible * largest:
        multipliers = rows / model.row_scales / weight * model.gradient_scale
    return LevelStep(
        solution.step * unit, multipliers, shift, decrease, weight * unit * model.stiffness
    )


@dataclass(frozen=True)
class Penalty:
    """λ of F1 + Σ λ_i [row_i]₊, one weight for each row, raised from the multipliers of the QPs."""

    weights: FloatArray
    rules: PenaltyRules = field(default_factory=PenaltyRules)

    def merit(self, evaluation: Evaluation) -> float:
        own = evaluation.objective if evaluation.has_objective else 0.0
        return own + float(self.weights @ evaluation.violations)

    def covering(self, multipliers: FloatArray) -> Penalty:
        """Weights above the multipliers; what an early, far step raised comes down again."""
        rules, needed = self.rules, np.abs(multipliers)
        above = rules.raised * needed
        weights = np.where(self.weights < rules.margin * needed, above, self.weights)
        lowered = np.maximum(rules.lowering * weights, above)
        return replace(self, weights=np.where(weights > rules.excess * needed, lowered, weights))

    def predicted(self, model: LinearModel, s: FloatArray) -> float:
        """The decrease of the merit that the linear model promises."""
        change, rows = model.change(s)
        count = model.inequalities
        after = np.concatenate([np.maximum(rows[:count], 0.0), np.abs(rows[count:])])
        return -change + float(self.weights @ (model.evaluation.violations - after))

    def enforcing(self, model: LinearModel, s: FloatArray) -> Penalty:
        """Weights under which a step that repairs rows is a descent step, though F1 rises."""
        change, rows = model.change(s)
        count = model.inequalities
        after = np.concatenate([np.maximum(rows[:count], 0.0), np.abs(rows[count:])])
        repaired = model.evaluation.violations - after
        gain = float(self.weights @ repaired)
        total = float(np.sum(np.maximum(repaired, 0.0) / model.row_scales))
        if gain >= 2.0 * change or total <= 0.0:
            return self
        more = np.where(repaired > 0, 2 * change / total / model.row_scales, 0)
        return replace(self, weights=self.weights + more)


Repair: TypeAlias = "Callable[[Evaluation], Evaluation | None]"


class Merit(Protocol):
    """What a search lowers, and how much of it a linear model promises to take off."""

    def merit(self, evaluation: Evaluation) -> float: ...
    def predicted(self, model: LinearModel, s: FloatArray) -> float: ...


@dataclass(frozen=True)
class Search:
    """The outcome of backtracking: where it went, how far, and where the parabola has its bottom.

    `ideal` is the step length that the curvature along the direction asks for; the next decrease is
    scaled by it.
    """

    evaluation: Evaluation
    length: float
    ideal: float


def backtrack(
    oracle: Oracle,
    domain: Domain,
    model: LinearModel,
    s: FloatArray,
    merit_function: Merit,
    reference: float,
    rules: SearchRules,
    repair: Repair | None = None,
) -> Search | None:
    """Halve the step, or interpolate, until the merit falls; None if it does not.

    `repair` is tried where a trial point disappoints because the rows bend.
    """
    promised = merit_function.predicted(model, s)
    start = merit_function.merit(model.evaluation)
    point = model.evaluation.point
    length = 1.0
    if not promised > 0:
        return None
    while length >= rules.shortest:
        trial = oracle.at(domain.project(point + length * model.metric * s))
        if trial.finite:
            merit = merit_function.merit(trial)
            surplus = merit - start + length * promised
            charged = merit - trial.objective if trial.has_objective else 0.0
            if repair is not None and _bent(charged, surplus, length * promised, rules):
                repaired = repair(trial)
                if repaired is not None and merit_function.merit(repaired) < merit:
                    trial, merit = repaired, merit_function.merit(repaired)
            curvature = 2.0 * (merit - start + length * promised) / length**2
            ideal = promised / curvature if curvature > 0 else np.inf
            allowance = MERIT_ROUNDING * max(abs(start), abs(merit))
            if merit <= reference - rules.sufficient * length * promised + allowance:
                if trial.differentiable:
                    return Search(trial, length, ideal)
                ideal = 0.0
            length = min(rules.most_cut * length, max(rules.least_cut * length, ideal))
        else:
            length *= rules.outside_cut
    return None


def _bent(charged: float, surplus: float, promised: float, rules: SearchRules) -> bool:
    """Whether rows that bend are the reason why a trial point disappoints."""
    return charged > rules.bent_share * surplus and surplus > rules.bent_least * promised


def worst(history: Sequence[Evaluation], penalty: Penalty) -> float:
    """The reference of the non-monotone search."""
    return max(penalty.merit(evaluation) for evaluation in history)
