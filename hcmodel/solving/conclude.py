"""From evidence to a solution in the user's names, units and sign."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.domains.nowhere import Nowhere
from hcmodel.certify.least_values import ENCLOSURE
from hcmodel.certify.lower_bound import LowerBound, proven_in
from hcmodel.certify.paths.descent import Descent
from hcmodel.expressions.model import Model
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Duals, Origin
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.limits import TimeExhausted
from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.oracle import Evaluation, OracleCalls
from hcmodel.solvers.result import Record, Result, Termination, Trace
from hcmodel.solving.data_checks import VERBS
from hcmodel.solving.evidence import Evidence, Outcome
from hcmodel.solving.judge import Status, judge
from hcmodel.solving.naming import Naming, in_order_of_declaration, named_point
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.solution import BoundDuals, Certificate, Solution

FloatArray = NDArray[np.float64]

CERTIFIED = "shown to be within the tolerance of the optimal value"
DECLARED = "within the tolerance of the optimal value, if the declared coordinates hold"
HIDDEN_CONVEX = "global if the model is hidden convex"
IMPOSSIBLE = "shown to have no feasible point"
NEARLY = "stationary; the rows contradict each other by less than the tolerance"
INEXACT = (Status.OPTIMAL_INACCURATE, Status.SOLVER_ERROR)
NOWHERE = (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE, Status.UNBOUNDED)
# The share of the largest weight from which a row counts as part of a conflict: weights of rows that
# have nothing to do with it are what an interior-point method leaves, about 1e-8.
INVOLVED = 1e-3
# As many entries of a path are named.
LONGEST_PATH = 4
# An entry below this, on its way to a bound, is said to go to 0.
SMALL = 1e-6


@dataclass(frozen=True)
class History:
    """What several runs, one after the other, cost and left in the trace."""

    trace: tuple[Record, ...] = ()
    calls: OracleCalls = field(default_factory=OracleCalls)
    iterations: int = 0

    def extended(self, result: Result) -> History:
        trace = (*self.trace, *(self.shifted(record) for record in result.trace))
        return History(trace, self.calls.plus(result.calls), self.iterations + result.iterations)

    def shifted(self, record: Record) -> Record:
        """A record of the run that follows."""
        return replace(
            record,
            iteration=record.iteration + len(self.trace),
            calls=record.calls + self.calls.total,
            points=record.points + self.calls.points,
        )


def conclude(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evidence: Evidence,
    history: History,
    method: str,
) -> Solution:
    """The solution that the evidence supports."""
    status, naming = judge(evidence), Naming.of(forms.user)
    evaluation, smooth, lifted = evidence.evaluation, evidence.smooth, forms.lifted
    # A multiplier or a residual means something only at a point that may be a minimum.
    nowhere = status in NOWHERE
    known = evidence.has_multipliers and not nowhere
    duals: dict[str, FloatArray] = {}
    bound_duals: dict[str, BoundDuals] = {}
    if known:
        assert smooth is not None
        assert evaluation is not None
        assert evidence.multipliers is not None
        found = lifted.duals(smooth, evidence.multipliers)
        duals = _duals(forms.front.duals_back(evaluation.point, found), naming)
        bound_duals = _bound_duals(forms, evidence)
    return Solution(
        value=_value(status, forms, evidence),
        status=status,
        termination=evidence.termination,
        point=_point(forms, outcome, evaluation),
        duals=duals,
        bound_duals=bound_duals,
        certificate=_certificate(status, forms, evidence, known, hidden),
        trace=Trace(signed(record, forms) for record in history.trace),
        oracle_calls=history.calls,
        iterations=history.iterations,
        method=method,
        engine=forms.engine,
        compile_seconds=0.0,
        solve_seconds=0.0,
        message=_message(status, evidence, forms, proven=hidden is not None)
        + _beside_in_words(status, outcome, evidence)
        + _singular_in_words(status, evidence, hidden),
        conflict=_conflict(status, forms, hidden, outcome, evidence),
        cause=evidence.cause,
    )


def without_time(model: Model, start: FloatArray, method: str) -> Solution:
    """The start, unjudged, where time ran out before the model was compiled."""
    return Solution(
        value=None,
        status=Status.USER_LIMIT,
        termination=Termination.TIME_LIMIT,
        point=named_point(model.layout, start),
        duals={},
        bound_duals={},
        certificate=Certificate("none", None, None),
        trace=Trace(),
        oracle_calls=OracleCalls(),
        iterations=0,
        method=method,
        engine="none",
        compile_seconds=0.0,
        solve_seconds=0.0,
        message=f"{Termination.TIME_LIMIT.value}; it was over before the model was compiled",
    )


def nowhere(forms: Forms, found: Nowhere, method: str, request: SolveRequest) -> Solution:
    """What is said of a model none of whose points is in the domain of every function."""
    from hcmodel.solving.convex_rows import irreducible  # of such models only

    with contextlib.suppress(TimeExhausted):
        found = irreducible(forms, found, request)
    conflict, condition = named_parts(forms, found.parts), found.condition
    message = IMPOSSIBLE
    if condition is not None:
        from hcmodel.proof.failure import Words

        words = Words(forms.model.source)
        function, argument = words.of(condition.function), words.of(condition.argument)
        where = f"where {', '.join(conflict)} hold" if conflict else "anywhere"
        where += "s" if len(conflict) == 1 else ""
        needs = VERBS.get(condition.domain, "must be ") + condition.domain.value
        message += f": {function} is not defined {where}: {argument} {needs}"
    return Solution(
        value=forms.sign.value_back(np.inf),
        status=Status.INFEASIBLE,
        termination=Termination.EXCLUDED,
        point={},
        duals={},
        bound_duals={},
        certificate=Certificate(ENCLOSURE, None, None, conditions=()),
        trace=Trace(),
        oracle_calls=OracleCalls(),
        iterations=0,
        method=method,
        engine=forms.engine,
        compile_seconds=0.0,
        solve_seconds=0.0,
        message=message,
        conflict=conflict,
    )


def _point(forms: Forms, outcome: Outcome, evaluation: Evaluation | None) -> dict[str, FloatArray]:
    """The point by names; the method's own where the model cannot be evaluated again."""
    if evaluation is not None:
        return user_point(forms, evaluation.point)
    if outcome.result.evaluation is None:
        return {}
    return user_point(forms, outcome.point(forms))


def user_point(forms: Forms, x: FloatArray) -> dict[str, FloatArray]:
    """A point of the forms' model by the names of the user's variables."""
    point = named_point(forms.user.layout, forms.front.point_back(x))
    return in_order_of_declaration(forms.user, point)


def signed(record: Record, forms: Forms) -> Record:
    """A record of the trace in the user's sign and names."""
    if record.point is None and forms.sign.before.sign > 0:
        return record
    back = forms.sign.value_back
    return replace(
        record,
        objective=back(record.objective),
        level=back(record.level),
        bound=back(record.bound),
        point=None if record.point is None else user_point(forms, record.point),
    )


def _message(status: Status, evidence: Evidence, forms: Forms, *, proven: bool) -> str:
    """What the status rests on, or why the run ended where nothing was shown.

    Of a model without hidden coordinates, the expression that its proof fails at is named.
    """
    if status is Status.OPTIMAL:
        declared = evidence.bound is not None and not evidence.proven
        far = "" if evidence.descent is None else _path_in_words(evidence.descent, forms)
        if evidence.infimum is not None:
            far = f"; the infimum is {forms.sign.value_back(evidence.infimum):g}{far}"
        return (DECLARED if declared else CERTIFIED) + _reach_in_words(evidence.bound) + far
    if status is Status.INFEASIBLE:
        return IMPOSSIBLE + _reach_in_words(evidence.conflict)
    if evidence.undefined is not None:
        return evidence.undefined
    reason = evidence.termination.value
    if status is Status.LOCALLY_OPTIMAL and evidence.termination is Termination.INFEASIBLE:
        reason = NEARLY  # the rows hold within the tolerance
    if evidence.descent is not None and evidence.feasible:
        return f"{reason}{_path_in_words(evidence.descent, forms)}"
    if status is Status.LOCALLY_OPTIMAL and evidence.bends_at is not None:
        return f"{reason}; {_bends_in_words(evidence.bends_at, forms)}"
    if status is Status.LOCALLY_OPTIMAL and not proven and forms.failure is not None:
        return f"{reason}; not proven to be a global minimum: {forms.failure}"
    if proven:
        told = status in (*INEXACT, Status.LOCALLY_OPTIMAL)
        return reason + (_lost_bounds_in_words(evidence, forms) if told else "")
    if status is Status.INFEASIBLE_INACCURATE:
        reason = f"{reason}; this is not a proof: try another start"
    if status in (*INEXACT, Status.INFEASIBLE_INACCURATE) and forms.near_miss is not None:
        return f"{reason}; not proven: {forms.near_miss}"
    return reason


def _beside_in_words(status: Status, outcome: Outcome, evidence: Evidence) -> str:
    """Which matrices no minimum leaves regular, or numbers not 0, where a point beside it was taken."""
    cone, form = outcome.result.cone, outcome.form
    if status is not Status.OPTIMAL or cone is None or not cone.beside:
        return ""
    matrices = (form.texts.get(each, each.name) for each in form.divisors if not each.pos)
    names = " and ".join(sorted(matrices))
    if names:
        return (
            f"; closer to it {names} becomes singular: this is the best conditioned point within the "
            "tolerance, and a larger tol, or bounds on the eigenvalues, give a better one"
        )
    if evidence.descent is not None:
        return ""  # which says where it goes
    texts = " and ".join(sorted(form.texts.get(each, each.name) for each in form.divisors))
    return (
        f"; closer to it {texts} goes to 0 and no point attains the best value: this is the smallest "
        "point within the tolerance; a larger tol, or bounds, give a smaller one"
    )


def _singular_in_words(status: Status, evidence: Evidence, hidden: Form | None) -> str:
    """Which matrices that the way back divides by are nearly singular where a result is inexact.

    A row that is multiplied by the inverse from both sides has the errors of a backend times its square.
    """
    if status not in INEXACT or evidence.evaluation is None or hidden is None:
        return ""
    x, model = evidence.evaluation.point, hidden.chain.end.before
    try:
        for step in hidden.chain.steps:
            x = step.point(x)
    except np.linalg.LinAlgError:  # a point without an image
        return ""
    point, names = named_point(model.layout, x), list[str]()
    for each in (each for each in hidden.divisors if model.layout.holds(each) and each.shape):
        value = point[each.name]
        values = np.linalg.eigvalsh(value) if all_finite(value) else np.ones(1)
        if values[0] <= np.sqrt(BACKEND_ROUNDING / evidence.tolerance) * values[-1]:
            names.append(hidden.texts.get(each, each.name))
    if not names:
        return ""
    return (
        f"; {' and '.join(sorted(names))} is nearly singular there, and the best value may not be "
        "attained: bound its eigenvalues from below, or use a larger tol"
    )


def _reach_in_words(bound: LowerBound | None) -> str:
    """Up to which size of coordinates without bounds something was shown."""
    if bound is None or not np.isfinite(bound.reach):
        return ""
    return f", for coordinates up to {bound.reach:.0e} in size"


def _bends_in_words(point: FloatArray, forms: Forms) -> str:
    """Where the model is not convex in the declared coordinates."""
    named = user_point(forms, point).items()
    shown = ", ".join(f"{name} = {np.array2string(array, precision=6)}" for name, array in named)
    return f"not convex in the declared coordinates, as at {shown}: there may be better minima"


def _lost_bounds_in_words(evidence: Evidence, forms: Forms) -> str:
    """The entries at bounds that a proof in other coordinates does not cover."""
    if evidence.evaluation is None or not forms.lost_bounds:
        return ""
    naming, entries = Naming.of(forms.user), list[str]()
    point = named_point(forms.model.layout, evidence.evaluation.point)
    for variable in forms.lost_bounds:
        x = np.asarray(point[variable.name])
        reach = evidence.tolerance * np.maximum(1.0, np.abs(x))
        active = (x <= variable.lower + reach) | (x >= variable.upper - reach)
        entries += [naming.entry(variable.name, index) for index in np.argwhere(active)]
    if not entries:
        return ""
    shown = ", ".join(entries[:LONGEST_PATH]) + (", …" if len(entries) > LONGEST_PATH else "")
    return f"; bounds are active that are not convex in the coordinates of the proof: {shown}"


def _path_in_words(descent: Descent, forms: Forms) -> str:
    """Where the objective falls to the end of the numbers, and what to do about it."""
    naming = Naming.of(forms.user)
    if descent.pole is not None:
        named = user_point(forms, descent.pole).items()
        places = [f"{name} = {np.array2string(array, precision=6)}" for name, array in named]
        return (
            f": it has a pole at {', '.join(places[:LONGEST_PATH])}, next to which it passes all "
            "numbers; keep what it divides by away from 0 with a constraint"
        )
    small = descent.vanishing & (np.abs(descent.lowest.point) < SMALL)
    entries = [
        f"{naming.entry(name, index)} -> {end}"
        for marks, end in (
            (descent.moves > 0, "inf"),
            (descent.moves < 0, "-inf"),
            (small, "0"),
            (descent.vanishing & ~small, "its bound"),
        )
        for name, array in user_point(forms, marks.astype(float)).items()
        for index in np.argwhere(array != 0)
    ]
    shown = ", ".join(entries[:LONGEST_PATH]) + (", …" if len(entries) > LONGEST_PATH else "")
    if descent.endless:
        return f", along {shown}"
    limit = forms.sign.value_back(descent.limit)
    return (
        f"; no point attains the best value: the objective still improves, to {limit:.6g}, along "
        f"{shown}; give these variables bounds"
    )


def _value(status: Status, forms: Forms, evidence: Evidence) -> float | None:
    if status in (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE):
        return forms.sign.value_back(np.inf)
    if status is Status.UNBOUNDED:
        return forms.sign.value_back(-np.inf)
    if evidence.evaluation is None:
        return None
    return forms.sign.value_back(evidence.evaluation.objective)


def _certificate(
    status: Status, forms: Forms, evidence: Evidence, known: bool, hidden: Form | None = None
) -> Certificate:
    """What is known of the point, strongest first; for a maximisation the bound is one from above."""
    stationary = status is Status.LOCALLY_OPTIMAL
    kind, lower, gap = "stationarity" if stationary else "none", None, None
    conditions: tuple[str, ...] | None = None
    if stationary:
        proven = hidden is not None and hidden.proof is not None and not evidence.relaxed
        conditions = proven_in(hidden) if hidden and proven else (HIDDEN_CONVEX,)
    evaluation, bound, back = evidence.evaluation, evidence.bound, forms.sign.value_back
    if status is Status.INFEASIBLE and evidence.conflict is not None:
        kind, conditions = evidence.conflict.kind, evidence.conflict.conditions
    elif evaluation is not None and status not in NOWHERE:
        if bound is not None:
            kind, conditions = bound.kind, bound.conditions
            lower, gap = back(bound.value), evaluation.objective - bound.value
        elif evidence.domination is not None:
            kind, gap = "gradient-domination", evidence.domination
            lower = back(evaluation.objective - evidence.domination)
            conditions = ("the constants mu_c and diameter_u are right",)
    return Certificate(
        kind=kind,
        violation=None if evaluation is None else float(np.max(evaluation.violations, initial=0.0)),
        stationarity=evidence.residual if known and not evidence.at_kink else None,
        lower_bound=lower,
        gap=gap,
        conditions=conditions,
    )


def _duals(duals: Duals, naming: Naming) -> dict[str, FloatArray]:
    return {
        name: naming.dual(position, dual)
        for position, (name, dual) in enumerate(zip(naming.constraints, duals.rows, strict=True))
        if dual is not None
    }


def _bound_duals(forms: Forms, evidence: Evidence) -> dict[str, BoundDuals]:
    """Multipliers of the bounds: what of ∇L a bound at the point holds back.

    Those of eigenvalues are matrices. Where a matrix has bounds on its entries too, these have the place.
    """
    evaluation, lifted = evidence.smooth, forms.lifted.canonical
    assert evaluation is not None
    assert evidence.multipliers is not None
    if evidence.at_kink and evidence.slope is None:
        return {}
    if evidence.slope is None:
        downhill = -kkt.lagrangian_gradient(evaluation, evidence.multipliers)
    else:
        slopes = named_point(forms.model.layout, evidence.slope)
        kept = [slopes.get(each.name, np.zeros(each.shape)) for each in lifted.layout.variables]
        downhill = -lifted.layout.pack(kept)
    bounds = lifted.domain.bound_multipliers(evaluation.point, downhill, evidence.tolerance)
    held_back = named_point(lifted.layout, bounds)
    point = named_point(lifted.layout, evaluation.point)
    duals = {}
    for variable in forms.user.variables:
        x, held = point[variable.name], held_back[variable.name]
        limits = variable.eigenvalue_bounds
        if limits is not None and not variable.has_bounds:
            from hcmodel.solvers.sets.matrices import eigenvalue_multipliers  # of such models only

            slope = named_point(lifted.layout, downhill)[variable.name]
            pair = eigenvalue_multipliers(x, slope, limits, evidence.tolerance)
            duals[variable.name] = BoundDuals(*pair)
            continue
        reach = evidence.tolerance * np.maximum(1.0, np.abs(x))
        # A simplex holds its entries above 0 by itself: only bounds as written have a dual.
        lower = np.where(x <= variable.lower + reach, np.maximum(-held, 0.0), 0.0)
        upper = np.where(x >= variable.upper - reach, np.maximum(held, 0.0), 0.0)
        duals[variable.name] = BoundDuals(lower, upper)
    return duals


def _conflict(
    status: Status, forms: Forms, hidden: Form | None, outcome: Outcome, evidence: Evidence
) -> tuple[str, ...]:
    """Rows and bounds that contradict each other, or else the rows that keep the violation up."""
    if status not in (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE):
        return ()
    form, result = outcome.form, outcome.result
    assert result.evaluation is not None
    if evidence.parts is not None:
        return named_parts(forms, evidence.parts)
    weights = result.evaluation.violations if result.conflict is None else result.conflict
    origins: list[Origin | None] = []
    if hidden is not None and evidence.conflict is not None:
        form = hidden
        there = hidden.oracle().at(evidence.conflict.reference)
        origins += _bounding_rows(hidden, there, evidence.conflict.multipliers)
        weights = np.abs(evidence.conflict.multipliers) * there.magnitudes
    largest = max(float(np.max(weights, initial=0.0)), np.finfo(float).tiny)
    origins += [form.chain.origin(int(row)) for row in np.flatnonzero(weights > INVOLVED * largest)]
    return named_parts(forms, [each for each in origins if each is not None])


def named_parts(forms: Forms, parts: Sequence[Origin | BoundOrigin]) -> tuple[str, ...]:
    """The names of rows and bounds, rows first; what a matrix inequality added is called by its name.

    Of a constraint whose entries are parts, other blocks of its matrix are not named: they say what
    the entries stand for.
    """
    naming = Naming.of(forms.user)
    rows = [forms.front.origin(each) for each in parts if isinstance(each, Origin)]
    entered = {each.position for each in rows if each and each.entry}
    written = [each for each in rows if each and (each.entry or each.position not in entered)]
    written.sort(key=lambda each: (each.position, each.entry))
    bounds = [each for each in parts if isinstance(each, BoundOrigin)]
    own = [naming.bound(each) for each in bounds if forms.user.layout.holds(each.variable)]
    names = [naming.row(each) for each in written]
    return tuple(dict.fromkeys([*names, *own]))


def _bounding_rows(form: Form, evaluation: Evaluation, weights: FloatArray) -> list[Origin]:
    """The rows that are bounds in this form and on which the contradiction of its rows rests."""
    if not form.chain.has_bound_rows:
        return []
    found: list[Origin] = []
    duals = form.conflicting_bounds(evaluation, weights).rows
    known = [dual for dual in duals if dual is not None]
    largest = max((float(np.max(dual, initial=0.0)) for dual in known), default=0.0)
    for position, dual in enumerate(duals):
        if dual is not None:
            entries = np.argwhere(dual > INVOLVED * max(largest, np.finfo(float).tiny))
            found += [Origin(position, tuple(int(i) for i in entry)) for entry in entries]
    return found
