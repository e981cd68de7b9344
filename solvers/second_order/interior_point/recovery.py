"""From an iterate back to the program: multipliers of all rows and bounds, residuals, certificates."""

from __future__ import annotations

import numpy as np

from hcmodel.records import replace
from hcmodel.solvers.second_order.interior_point.certificates import FarkasCertificate
from hcmodel.solvers.second_order.interior_point.convex_program import (
    FloatArray,
    SmoothConvexProgram,
)
from hcmodel.solvers.second_order.interior_point.iterate import Iterate, Residuals, largest
from hcmodel.solvers.second_order.interior_point.operators import Operators
from hcmodel.solvers.second_order.interior_point.outcome import (
    InteriorPointResult,
    InteriorPointStatus,
    KKTResiduals,
)
from hcmodel.solvers.second_order.interior_point.standard_form import StandardForm


def answer(
    program: SmoothConvexProgram,
    operators: Operators,
    iterate: Iterate,
    status: InteriorPointStatus,
    iterations: int,
    certificate: FarkasCertificate | None = None,
    direction: FloatArray | None = None,
) -> InteriorPointResult:
    """The result at an iterate, with residuals from the functions of the program."""
    form, weight = operators.form, float(iterate.multipliers[0])
    point = form.whole(iterate.u)
    rows = _row_multipliers(program, operators, iterate) / weight
    equality = _equality_multipliers(form, iterate)[form.opposite[0].size :] / weight
    lower, upper = np.zeros(point.size), np.zeros(point.size)
    at_lower, at_upper = form.free[form.lower_index], form.free[form.upper_index]
    lower[at_lower] = iterate.multipliers[operators.head : operators.first_upper] / weight
    upper[at_upper] = iterate.multipliers[operators.first_upper :] / weight
    functions = program.values(point)
    objective = np.zeros(rows.size + 1)
    objective[0] = 1.0
    if rows.size:
        own, pull = program.gradient(point, objective, np.concatenate([[0.0], rows])).T
        slope = own - lower + upper + pull
    else:
        own = program.gradient(point, objective)
        slope = own - lower + upper
    violation = 0.0
    if program.equality is not None:
        slope = slope + program.equality.T @ equality
        violation = largest(program.equality @ point - program.equality_bound)
    if form.free.size < point.size:
        fixed = np.ones(point.size, dtype=bool)
        fixed[form.free] = False
        lower[fixed] = np.maximum(slope[fixed], 0.0)
        upper[fixed] = np.maximum(-slope[fixed], 0.0)
        slope[fixed] = 0.0
    products = float(rows @ np.abs(functions[1:]))
    products += float(lower[at_lower] @ (point[at_lower] - form.lower[form.lower_index]))
    products += float(upper[at_upper] @ (form.upper[form.upper_index] - point[at_upper]))
    scaled = functions[1:] * _row_scale(program, form)
    residuals = KKTResiduals(
        max(float(scaled.max()) if scaled.size else 0.0, violation, 0.0),
        largest(slope) / (1 + largest(own)),
        products / (1 + abs(float(functions[0]))),
    )
    return InteriorPointResult(
        status,
        point,
        float(functions[0]),
        rows,
        equality,
        lower,
        upper,
        residuals,
        iterations,
        certificate,
        direction,
    )


def _row_multipliers(
    program: SmoothConvexProgram, operators: Operators, iterate: Iterate
) -> FloatArray:
    """Those of the program's rows; opposite rows take them from their equality."""
    form = operators.form
    rows = np.zeros(program.row_count + 1)
    rows[form.row_index] = iterate.multipliers[: operators.head] * form.scale
    first, second = form.opposite
    if first.size:
        both = _equality_multipliers(form, iterate)[: first.size]
        rows[first] = np.maximum(both, 0.0)
        rows[second] = np.maximum(-both, 0.0) * form.opposite_ratio
    return rows[1:]


def _equality_multipliers(form: StandardForm, iterate: Iterate) -> FloatArray:
    """Those of opposite rows, then those of the program's equalities."""
    whole = np.zeros(form.equality_count)
    whole[form.equality_index] = iterate.equality
    return whole


def _row_scale(program: SmoothConvexProgram, form: StandardForm) -> FloatArray:
    """Rows with large coefficients are measured relative to them."""
    scale = np.ones(program.row_count + 1)
    scale[form.row_index] = form.scale
    return np.minimum(scale, 1.0)[1:]


# ---- multipliers where the method's own do not converge

# Least squares with so many entries take about 0.1 s.
FITTED_ENTRIES = 300_000


def with_fitted_multipliers(
    program: SmoothConvexProgram, found: InteriorPointResult
) -> InteriorPointResult | None:
    """The same point with the multipliers λ, z >= 0, η that make |∇f_0 + Jᵀλ + …| + Σ λ|f| small.

    Where no point is strictly inside the rows, multipliers are not unique or grow without limit, and
    those of the iterates need not fit their point. None for large programs.
    """
    size, rows, u = program.dimension, program.row_count, found.point
    equalities = found.equality_multipliers.size
    count = rows + 2 * equalities + 2 * size
    if (size + count) * count > FITTED_ENTRIES:
        return None
    from scipy.optimize import nnls  # imported late: it takes 0.1 s

    functions, jacobian = program.values(u), program.jacobian(u).toarray()
    room_below = np.where(np.isfinite(program.lower), u - program.lower, np.inf)
    room_above = np.where(np.isfinite(program.upper), program.upper - u, np.inf)
    free_below, free_above = np.flatnonzero(room_below < 1), np.flatnonzero(room_above < 1)
    identity = np.eye(size)
    matrix = program.equality if program.equality is not None else np.zeros((0, size))
    equality = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    slopes = np.vstack(
        [jacobian[1:], equality, -equality, -identity[free_below], identity[free_above]]
    )
    prices = np.concatenate(
        [
            np.abs(functions[1:]),
            np.zeros(2 * equalities),
            room_below[free_below],
            room_above[free_above],
        ]
    )
    system = np.vstack([slopes.T, np.diag(prices)])
    # without columns there is nothing to fit, and nnls of scipy 1.17 ends the process (double free)
    finite = np.isfinite(system).all() and np.isfinite(jacobian[0]).all()
    if not prices.size or not finite:
        return None
    target = np.concatenate([-jacobian[0], np.zeros(prices.size)])
    try:
        weights, _ = nnls(system, target)
    except RuntimeError:  # no convergence
        return None
    ends = np.cumsum([rows, equalities, equalities, free_below.size])
    own, plus, minus, below, above = np.split(weights, ends)
    lower, upper = np.zeros(size), np.zeros(size)
    lower[free_below], upper[free_above] = below, above
    slope = jacobian[0] + slopes.T @ weights
    residuals = KKTResiduals(
        found.residuals.primal,
        largest(slope) / (1 + largest(jacobian[0])),
        float(prices @ weights) / (1 + abs(float(functions[0]))),
    )
    return replace(
        found,
        row_multipliers=own,
        equality_multipliers=plus - minus,
        lower_multipliers=lower,
        upper_multipliers=upper,
        residuals=residuals,
    )


# ---- certificates of infeasibility


def farkas_certificate(
    program: SmoothConvexProgram,
    operators: Operators,
    iterate: Iterate,
    residuals: Residuals,
    reach: float,
) -> FarkasCertificate:
    """The multipliers of an iterate as a certificate, which may prove something or not."""
    values, form = residuals.model.values, operators.form
    shares = np.zeros(0)
    if program.log_sums is not None:
        groups = program.log_sums.groups
        shares = np.ones(len(groups))
        shares[np.bincount(groups)[groups] > 1] = values[: form.log_terms]
    plain = np.ones(0 if program.sums is None else len(program.sums.offsets))
    plain[form.plain_index] = values[form.log_terms :]
    return FarkasCertificate(
        row_weights=_row_multipliers(program, operators, iterate),
        equality_weights=_equality_multipliers(form, iterate)[form.opposite[0].size :],
        log_terms=shares,
        plain_terms=plain,
        point=form.whole(iterate.u),
        reach=reach,
    )


def may_prove(operators: Operators, iterate: Iterate, residuals: Residuals) -> bool:
    """A cheap test whether the multipliers can be a certificate: the constant part is positive.

    It is that of the minorant of `certificates`, with the bounds' own multipliers.
    """
    form, model, head = operators.form, residuals.model, operators.head
    multipliers, logs = iterate.multipliers, form.log_terms
    if largest(multipliers[1:]) < LEAST_MULTIPLIER and largest(iterate.equality) < LEAST_MULTIPLIER:
        return False
    if form.smooth:
        return True
    objective = np.zeros(operators.pairs)
    objective[0] = multipliers[0]
    own = model.values * (model.term_weights - operators.term_weights(objective))
    height = form.offsets - np.log(model.values)
    height[logs:] += 1.0
    constant = float(own @ height) + float(multipliers[1:head] @ form.constants[1:])
    constant -= float(iterate.equality @ form.equality_bound)
    constant += float(multipliers[head : operators.first_upper] @ form.lower[form.lower_index])
    constant -= float(multipliers[operators.first_upper :] @ form.upper[form.upper_index])
    return constant > 0


# Multipliers start at 1; those of an infeasible program grow without limit.
LEAST_MULTIPLIER = 10.0
