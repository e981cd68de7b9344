"""Certified lower bounds: F1* >= L(x̃, λ, ν) + min over v in V of s·(v − c(x̃)), s the slope of L by u.

L = F1 + λ·g + ν·h with λ >= 0 is convex in hidden coordinates, so this holds at every point x̃ and for all
multipliers, whoever found them; a good pair only makes the bound tight (`bounds.search` looks for one).
The same bound of a weighted sum of the rows, above 0, proves that no feasible point exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import BOUND, CONE_DUALITY, SEARCH
from hcmodel.certify.charts import Chart
from hcmodel.certify.cone_duality import (
    ConeBound,
    cone_bound,
    ray_bound,
    without_added,
    without_small,
)
from hcmodel.certify.cone_ranges import ConePlaces, Range
from hcmodel.certify.contradiction import contradicted
from hcmodel.certify.farkas_rays import can_be_refined, refined_ray
from hcmodel.certify.search import Pair, Search, signed
from hcmodel.records import dataclass, replace
from hcmodel.reductions.forms import Form
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers import kkt
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.loop import WholeProgram
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    without_idle,
)
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.theory.theorems import Constants

FloatArray = NDArray[np.float64]
NO_MARKS = np.zeros(0, dtype=bool)


@dataclass(frozen=True)
class LowerBound:
    """A number that the objective, to be minimised, does not fall below at a feasible point.

    `conditions` say in words what this rests on, `points` how many evaluations it took,
    `reference` where it was taken and `multipliers` with which weights of the rows. `kind` is how it was
    found: by one minorant of the Lagrangian ("duality"), or by the cuts of a bundle.
    """

    value: float
    conditions: tuple[str, ...]
    points: int
    reference: FloatArray
    multipliers: FloatArray
    search: Search | None = field(default=None, repr=False, compare=False)
    kind: str = "duality"
    reach: float = np.inf
    """How large coordinates without bounds may be; infinite where the bound holds for any size."""


def lower_bound(
    form: Form,
    evaluation: Evaluation,
    multipliers: FloatArray,
    *,
    target: float | None = None,
    finest: float | None = None,
    assume_convex: bool = False,
    solution: ConeSolution | None = None,
    thorough: bool = True,
) -> LowerBound | None:
    """The best bound found from a point and multipliers of the form, in units of the plain objective.

    Ends as soon as the gap to the point's own value is at most `target`, or, where it is given and as
    far as that is cheap, `finest`. None where the form has no hidden coordinates, where no finite bound
    is found, and where the form is visibly not convex; `assume_convex` skips that test (see `tested`).
    With a solution of the form's cone program its dual gives a bound, before anything is searched. Unless
    the search is to be `thorough`, it leaves out what costs programs or many evaluations.
    """
    search = Search.of(form, form.oracle(), evaluation)
    if search is None:
        return None
    plain = form.chain.value_back
    value = plain(evaluation.objective)
    least = BOUND.finest * abs(value)
    wanted = least if target is None else target
    aim = wanted if finest is None else min(wanted, max(finest, least))

    def fair(bound: float) -> bool:
        return value - plain(bound) <= wanted

    def enough(bound: float) -> bool:
        return value - plain(bound) <= aim

    with np.errstate(all="ignore"):
        pair = evaluation, multipliers
        # over sets of matrices a minorant is seldom tight: then its derivatives need not be taken
        matrices = solution is not None and _is_semidefinite(form)
        if not matrices:
            search.begin(evaluation, multipliers)
        # the terms of posynomials enclose the points of low value in less time than a dual is checked
        early = not form.has_posynomials and not fair(search.value)
        dual = _dual_bound(search, solution, pair, fair, among_doubles=False) if early else None
        if dual is not None and value - dual.value <= wanted:
            return dual
        if matrices:
            search.begin(evaluation, multipliers)
        search.improve(enough, fair, thorough)
        if form.has_posynomials and (search.among_doubles or not fair(search.value)):
            dual = _dual_bound(search, solution, pair, fair, among_doubles=False)
            if dual is not None and value - dual.value <= wanted:
                return dual
        if not fair(search.value):
            search.take_doubles()
        found = _result(search, plain, assume_convex)
        if fair(search.value):
            return found
        if not early or isinstance(form.stack, LogStack):  # else it is the one from before
            dual = _dual_bound(search, solution, pair, fair, among_doubles=True)
        return dual if found is None or (dual is not None and dual.value > found.value) else found


def _is_semidefinite(form: Form) -> bool:
    whole = Refusal(None, "not proven") if form.proof is None else form.whole("cone")
    return not isinstance(whole, Refusal) and whole.is_semidefinite


def bound_within_reach(
    form: Form,
    evaluation: Evaluation,
    multipliers: FloatArray,
    solution: ConeSolution,
    target: float,
) -> LowerBound | None:
    """A bound from the dual of the cone program for coordinates up to some size; None without one.

    It is at most `target` below the point's own value.
    """
    search = Search.of(form, form.oracle(), evaluation)
    if search is None:
        return None
    plain = form.chain.value_back
    value = plain(evaluation.objective)

    def fair(bound: float) -> bool:
        return value - plain(bound) <= target

    with np.errstate(all="ignore"):
        pair = evaluation, multipliers
        return _dual_bound(search, solution, pair, fair, among_doubles=True, within_reach=True)


def _dual_bound(
    search: Search,
    solution: ConeSolution | None,
    pair: Pair,
    fair: Callable[[float], bool],
    *,
    among_doubles: bool,
    within_reach: bool = False,
) -> LowerBound | None:
    """The bound from the dual of the cone program of a proven form (`cone_duality`), if there is one.

    `among_doubles` allows one for variables without bounds that are doubles, `within_reach` one for
    coordinates up to some size.
    """
    form, (evaluation, multipliers) = search.form, pair
    if solution is None or form.proof is None:
        return None
    whole = form.whole("cone")
    if isinstance(whole, Refusal):
        return None
    level = evaluation.objective + CONE_DUALITY.margin * abs(evaluation.objective)
    stack = form.stack
    logs = stack.logs if among_doubles and isinstance(stack, LogStack) else NO_MARKS
    known = Range(*form.implied_ends())
    found = cone_bound(whole.program, solution, level, logs, fair, known, within_reach=within_reach)
    if found is None:
        return None
    value = form.chain.value_back(found.value)
    if not np.isfinite(value):
        return None
    conditions = bound_conditions(form, search.chart, evaluation.point)
    conditions += _sizes(found)
    return LowerBound(value, conditions, 0, evaluation.point, multipliers, reach=found.reach)


def _sizes(found: ConeBound) -> tuple[str, ...]:
    """Which sizes of the coordinates a bound holds for, in words."""
    words = _among_doubles() if found.among_doubles else ()
    if np.isfinite(found.reach):
        words += (f"coordinates without bounds are at most {found.reach:.0e} in size",)
    return words


def dual_infeasibility(
    form: Form,
    evaluation: Evaluation,
    time_limit: float,
    weights: FloatArray | None = None,
    *,
    within_reach: bool = False,
) -> LowerBound | None:
    """A proof that no feasible point exists, from the dual of the cone program of a proven form.

    On feasible points an objective that is 0 everywhere is not positive; where its cone program has a
    positive lower bound, there are none. The dual that shows it is what a solver ends with when it finds
    a program infeasible. Rows without a weight are left out first, where `weights` has those of a method
    that found a contradiction. `within_reach` allows one for coordinates up to some size.
    """
    whole = Refusal(None, "not proven") if form.proof is None else form.whole("cone")
    if isinstance(whole, Refusal) or not whole.program.offset.size:
        return None
    program = whole.program
    rows = replace(
        program, quadratic=0.0 * program.quadratic, linear=0.0 * program.linear, constant=0.0
    )
    best = None if within_reach else _by_ray(form, whole, rows, time_limit, weights)
    for each, kept in () if best is not None else _with_fewer_rows(form, whole, rows, weights):
        solution = make_cone_backend().solve(each, ConeOptions(time_limit=time_limit))
        if solution.status not in (ConeStatus.INFEASIBLE, ConeStatus.ALMOST_INFEASIBLE):
            continue
        if kept is not None:
            dual = np.zeros(kept.size)
            dual[kept] = solution.dual
            zeros = {"primal": np.zeros(rows.linear.size), "slack": np.zeros(kept.size)}
            solution = replace(solution, **zeros, dual=dual)
        if within_reach and can_be_refined(rows, ConePlaces.of(rows), solution.dual):
            continue  # there is none that is more than nearly a contradiction
        found = _farkas(form, rows, solution, evaluation.point, within_reach)
        best = best if found is None else (found, solution.dual)
        if found is not None and not found.among_doubles:
            break
    if best is None:
        return None
    found, dual = best
    shown = whole.multipliers(dual, evaluation.point)
    return LowerBound(
        found.value, _proven_in(form) + _sizes(found), 0, evaluation.point, shown, reach=found.reach
    )


def _by_ray(
    form: Form,
    whole: WholeProgram,
    rows: ConeProgram,
    time_limit: float,
    weights: FloatArray | None,
) -> tuple[ConeBound, FloatArray] | None:
    """The bound of an objective that is 0 from a dual without a residual (`farkas_rays`), and the dual.

    One for unknowns of any size is preferred: duals of simple numbers show it. Where no ray is found,
    there may be other duals that do.
    """
    if not rows.is_semidefinite:
        return None
    first = Range(*form.implied_ends())
    best: tuple[ConeBound, FloatArray] | None = None
    idle = _idle_rows(whole, rows, weights)
    choices = [*_without_numbers(rows, first.lower.size), *([] if idle is None else [idle])]
    for dropped in choices:
        program, kept = without_idle(rows, dropped, first.lower.size)
        solution = make_cone_backend().solve(program, ConeOptions(time_limit=time_limit))
        value = -float(program.offset @ solution.dual)
        if solution.usable or not value > 0:
            continue
        solution = replace(solution, dual=solution.dual / value)  # of a failed solve, too
        program = replace(program, matrix=program.matrix.sparse())
        size = max(1.0, float(np.abs(program.offset).max(initial=0.0)))
        duals: list[tuple[FloatArray, float | None]] = [(solution.dual, None)]
        ray = None if best else refined_ray(program, ConePlaces.of(program), solution.dual)
        if ray is not None:
            duals.append((ray, CONE_DUALITY.reaches[0] * size))
        for z, reach in duals:
            dual = np.zeros(kept.size)
            dual[kept] = z
            found = ray_bound(rows, dual, first, _conflicting, reach)
            if found is not None and not np.isfinite(found.reach):
                return found, dual
            if best is None and found is not None:
                best = found, dual
    return best


def _idle_rows(
    whole: WholeProgram, rows: ConeProgram, weights: FloatArray | None
) -> NDArray[np.bool_] | None:
    """The rows without a weight in a contradiction that a method has found; None where all have one."""
    if weights is None:
        return None
    idle = np.abs(weights) <= BOUND.involved * float(np.abs(weights).max(initial=0.0))
    dropped = np.zeros(rows.offset.size, dtype=bool)
    dropped[whole.rows[idle & (whole.rows >= 0)]] = True
    return dropped if idle.any() else None


def _without_numbers(rows: ConeProgram, own: int) -> Iterator[NDArray[np.bool_]]:
    """Rows to be left out: all but those of matrices in unknowns of the model, those with others, none.

    What the objective adds to the program has no range, and bounds of single numbers give a matrix a
    dual of high rank where a few vectors show the contradiction.
    """
    added = np.isin(rows.cone_of_row, rows.cone_of_row[rows.matrix.indices[rows.columns >= own]])
    kinds = [np.full(cone.size, cone.kind is ConeKind.NONNEGATIVE) for cone in rows.cones]
    numbers = np.concatenate(kinds)
    if (numbers & ~added).any():
        yield numbers | added
    yield added
    if added.any():
        yield np.zeros_like(added)


def _with_fewer_rows(
    form: Form, whole: WholeProgram, rows: ConeProgram, weights: FloatArray | None
) -> Iterator[tuple[ConeProgram, NDArray[np.bool_] | None]]:
    """Programs and which rows of the whole one they have: those with a weight, all rows, all there is.

    The objective of the last one takes part in what a solver ends with, by weights that are hardly 0.
    """
    own = form.canonical.layout.size
    idle = _idle_rows(whole, rows, weights)
    if idle is not None:
        yield without_idle(rows, idle, own)
    yield without_idle(rows, np.zeros(rows.offset.size, dtype=bool), own)
    yield whole.program, None


def _farkas(
    form: Form,
    rows: ConeProgram,
    solution: ConeSolution,
    point: FloatArray,
    within_reach: bool,
) -> ConeBound | None:
    """The positive bound of an objective that is 0, from the dual of a program without a solution.

    A bound within reach has to hold for coordinates far beyond the point, at which the rows are nearly
    satisfied: feasible points of badly scaled models are a million times as large.
    """
    primal = np.zeros_like(solution.primal)
    primal[: point.size] = point
    ray = replace(solution, primal=primal)
    logs = form.stack.logs if isinstance(form.stack, LogStack) else NO_MARKS
    first = Range(*form.implied_ends())
    # what the objective adds to the program has no range, and rounding leaves it a weight
    small, added = without_small(rows, ray.dual), without_added(rows, ray.dual, first.lower.size)
    for dual in (ray.dual, small, added):
        ray = replace(ray, dual=dual)
        found = cone_bound(rows, ray, 1.0, logs, _conflicting, first, within_reach=within_reach)
        if found is not None and _conflicting(found.value):
            break
    else:
        return None
    farthest = CONE_DUALITY.reaches[0] * max(1.0, float(np.abs(point).max(initial=0.0)))
    return found if found.reach >= farthest else None


def infeasibility(
    form: Form, evaluation: Evaluation, weights: FloatArray | None
) -> LowerBound | None:
    """A proof that no feasible point exists: Σ w_i row_i is at least `value` > 0 wherever x lies in X.

    Weights are nonnegative on inequalities; Σ |w_i| times the size of row i at the point is 1, so that
    `value` is a relative violation. None where there is no proof.
    """
    outer = replace(form.canonical.outer, objective_form="plain")
    oracle = Oracle(form.stack, outer, parts=(False, True))
    search = Search.of(form, oracle, evaluation)
    if search is None or not evaluation.rows.size:
        return None
    with np.errstate(all="ignore"):
        search.contradict(oracle.at(evaluation.point), weights, _conflicting)
        if not _conflicting(search.value):
            search.take_doubles()
        return _result(search, float, False) if _conflicting(search.value) else None


def _conflicting(bound: float) -> bool:
    return bound > BOUND.conflict


def gradient_domination(
    evaluation: Evaluation, domain: Domain, multipliers: FloatArray, constants: Constants
) -> float | None:
    """A bound of F1(x) − F1* from constants of an unknown map, for which the user vouches.

        F1(x) − F1* <= −λ·g − ν·h + (D_U/μ_c)·dist(−∇L(x), N_X(x)),   x in X

    For models as written and without kinks: the constants belong to no other form. None without μ_c
    and D_U.
    """
    if constants.mu_c is None or constants.diameter_u is None or constants.mu_c <= 0:
        return None
    if not domain.contains(evaluation.point, DATA_ROUNDING):
        return None
    multipliers = signed(evaluation, multipliers)
    downhill = -kkt.lagrangian_gradient(evaluation, multipliers)
    if not np.isfinite(downhill).all():
        return None
    rest = domain.normal_cone_distance(evaluation.point, downhill)
    # A point counted as on a face may be off it by the rounding of a backend.
    off = BACKEND_ROUNDING * max(1.0, float(np.max(np.abs(evaluation.point))))
    slack = off * float(np.sum(np.abs(downhill - rest)))
    reach = constants.diameter_u / constants.mu_c
    gap = reach * float(np.linalg.norm(rest)) + slack - float(multipliers @ evaluation.rows)
    return max(gap, 0.0) if np.isfinite(gap) else None


def tested(bound: LowerBound) -> LowerBound | None:
    """A bound that was found assuming convexity, None where the coordinates are visibly wrong."""
    if bound.search is None or bound.search.form.proof is not None:
        return bound
    with np.errstate(all="ignore"):
        return None if contradicted(bound.search) else bound


def _result(
    search: Search, plain: Callable[[float], float], assume_convex: bool
) -> LowerBound | None:
    """The best bound in the user's units, unless the model is visibly not convex."""
    if search.best is None or not np.isfinite(search.value):
        return None
    value = plain(search.value)
    trusted = assume_convex or search.form.proof is not None
    if not np.isfinite(value) or (not trusted and contradicted(search)):
        return None
    reference, points = search.best.evaluation.point, search.oracle.calls.points
    conditions = bound_conditions(search.form, search.chart, search.minorants[0].evaluation.point)
    if search.among_doubles:
        conditions += _among_doubles()
    return LowerBound(value, conditions, points, reference, search.best.multipliers, search)


def _among_doubles() -> tuple[str, ...]:
    reach = SEARCH.largest_logarithm
    return (f"variables without bounds are between e^-{reach:g} and e^{reach:g}",)


def _proven_in(form: Form) -> tuple[str, ...]:
    """Convex in these coordinates; whether the way to them can be inverted, no bound needs to know."""
    return (f"proven convex in {', '.join(form.coordinate_names())}",)


def bound_conditions(form: Form, chart: Chart, point: FloatArray) -> tuple[str, ...]:
    """What a bound rests on, in words."""
    if form.proof is not None:
        return _proven_in(form)
    conditions = ["hidden convex in the declared coordinates, which is not proven"]
    if form.map_geometry is None:
        return tuple(conditions)
    conditions.append("the image of the variables' domain under the map is convex")
    layout, bending = form.canonical.layout, form.map_geometry.bending
    bent = form.program.bending
    if bent:
        listed = ", ".join(variable.name for variable in bent)
        conditions.append(
            f"bounds of {listed} left out, since they are not convex in hidden coordinates"
        )
    pushes = (np.ones(point.size), -np.ones(point.size))
    held = sum(np.abs(form.domain.bound_multipliers(point, p, BOUND.active)) for p in pushes)
    active = [v for v in bent if (held * bending)[layout.slice(v)].any()]
    if active:
        listed = ", ".join(variable.name for variable in active)
        conditions.append(
            f"a bound of {listed} that bends is active, so that the gap may not close"
        )
    return (*conditions, *chart.notes)
