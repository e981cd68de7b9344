"""Certified lower bounds: F1* >= L(x̃, λ, ν) + min over v in V of s·(v − c(x̃)), s the slope of L by u.

L = F1 + λ·g + ν·h with λ >= 0 is convex in hidden coordinates, so this holds at every point x̃ and for all
multipliers, whoever found them; a good pair only makes the bound tight (`minorants/search.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import BOUND, CONE_DUALITY, SEARCH
from hcmodel.certify.duals.cone_ranges import Range
from hcmodel.certify.minorants.charts import Chart
from hcmodel.certify.minorants.search import Pair, Search, signed
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers import kkt
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp.cone_program import ConeSolution
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.theory.theorems import Constants

if TYPE_CHECKING:
    from hcmodel.certify.duals.cone_duality import ConeBound

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
        shown = fair(search.value)
        if form.has_posynomials and (search.among_doubles or not shown):
            dual = _dual_bound(search, solution, pair, fair, among_doubles=False)
            if dual is not None and value - dual.value <= wanted:
                return dual
        if not shown:
            search.take_doubles()
            shown = fair(search.value)
        found = bound_of(search, plain, assume_convex)
        if shown:
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
    from hcmodel.certify.duals.cone_duality import cone_bound  # most bounds are found without

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
    conditions += sizes_in_words(found)
    return LowerBound(value, conditions, 0, evaluation.point, multipliers, reach=found.reach)


def sizes_in_words(found: ConeBound) -> tuple[str, ...]:
    """Which sizes of the coordinates a bound holds for, in words."""
    words = _among_doubles() if found.among_doubles else ()
    if np.isfinite(found.reach):
        words += (f"coordinates without bounds are at most {found.reach:.0e} in size",)
    return words


def gradient_domination(
    evaluation: Evaluation, domain: Domain, multipliers: FloatArray, constants: Constants
) -> float | None:
    """A bound of F1(x) − F1* from constants of an unknown map, given by the user.

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
    if bound.search is None or _is_convex(bound.search.form):
        return bound
    with np.errstate(all="ignore"):
        return None if _contradicted(bound.search) else bound


def _is_convex(form: Form) -> bool:
    return form.proof is not None or form.is_convex_in_map


def _contradicted(search: Search) -> bool:
    from hcmodel.certify.declared.map_test import contradicted  # of declared coordinates only

    return contradicted(search)


def bound_of(
    search: Search, plain: Callable[[float], float], assume_convex: bool
) -> LowerBound | None:
    """The best bound in the user's units, unless the model is visibly not convex."""
    if search.best is None or not np.isfinite(search.value):
        return None
    value = plain(search.value)
    trusted = assume_convex or _is_convex(search.form)
    if not np.isfinite(value) or (not trusted and _contradicted(search)):
        return None
    reference, points = search.best.evaluation.point, search.oracle.calls.points
    conditions = bound_conditions(search.form, search.chart, search.minorants[0].evaluation.point)
    if search.among_doubles:
        conditions += _among_doubles()
    return LowerBound(value, conditions, points, reference, search.best.multipliers, search)


def _among_doubles() -> tuple[str, ...]:
    reach = SEARCH.largest_logarithm
    return (f"variables without bounds are between e^-{reach:g} and e^{reach:g}",)


def proven_in(form: Form) -> tuple[str, ...]:
    """Convex in these coordinates; whether the way to them can be inverted, no bound needs to know."""
    return (f"proven convex in {', '.join(form.coordinate_names())}",)


def bound_conditions(form: Form, chart: Chart, point: FloatArray) -> tuple[str, ...]:
    """What a bound rests on, in words."""
    if form.proof is not None:
        return proven_in(form)
    conditions = ["hidden convex in the declared coordinates, which is not proven"]
    if form.is_convex_in_map:
        conditions = ["proven convex in the declared coordinates, which it is written in"]
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
            f"an active bound of {listed} is curved in u, so that the gap may not close"
        )
    return (*conditions, *chart.notes)
