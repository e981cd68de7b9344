"""Proofs that a form has no feasible point, by the dual of its cone program or by a weighted sum of rows.

On feasible points an objective that is 0 everywhere is not positive, and no sum of rows with weights of
their signs is: a lower bound of either above 0 (`lower_bound`) shows that there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import BOUND, CONE_DUALITY
from hcmodel.certify.duals.cone_duality import (
    ConeBound,
    cone_bound,
    ray_bound,
    without_added,
    without_small,
)
from hcmodel.certify.duals.cone_ranges import ConePlaces, Range
from hcmodel.certify.duals.farkas_rays import can_be_refined, light_matrices, refined_ray
from hcmodel.certify.lower_bound import NO_MARKS, LowerBound, bound_of, proven_in, sizes_in_words
from hcmodel.certify.minorants.search import Search
from hcmodel.records import replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.loop import WholeProgram
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    without_idle,
)

FloatArray = NDArray[np.float64]


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
    conditions = proven_in(form) + sizes_in_words(found)
    return LowerBound(found.value, conditions, 0, evaluation.point, shown, reach=found.reach)


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
    choices = [*_without_numbers(rows, first.lower.size), *([] if idle is None else [idle])][::-1]
    while choices:
        dropped = choices.pop()
        program, kept = without_idle(rows, dropped, first.lower.size)
        solution = make_cone_backend().solve(program, ConeOptions(time_limit=time_limit))
        value = -float(program.offset @ solution.dual)
        if solution.usable or not value > 0:
            continue
        own = solution.dual / value  # of a failed solve, too
        size = max(1.0, float(np.abs(program.offset).max(initial=0.0)))
        duals: list[tuple[FloatArray, float | None]] = [(own, None)]
        places = ConePlaces.of(program)
        ray = None if best else refined_ray(program, places, own)
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
        light = light_matrices(places, own)
        if best is None and light.size:
            dropped = dropped.copy()
            dropped[kept.nonzero()[0][light]] = True
            choices.append(dropped)
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
    given = ray.dual
    # what the objective adds to the program has no range, and rounding leaves it a weight
    for change in (_as_it_is, without_small, without_added):
        ray = replace(ray, dual=change(rows, given, first.lower.size))
        found = cone_bound(rows, ray, 1.0, logs, _conflicting, first, within_reach=within_reach)
        if found is not None and _conflicting(found.value):
            break
    else:
        return None
    farthest = CONE_DUALITY.reaches[0] * max(1.0, float(np.abs(point).max(initial=0.0)))
    return found if found.reach >= farthest else None


def _as_it_is(rows: ConeProgram, dual: FloatArray, own: int) -> FloatArray:
    return dual


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
        return bound_of(search, float, False) if _conflicting(search.value) else None


def _conflicting(bound: float) -> bool:
    return bound > BOUND.conflict
