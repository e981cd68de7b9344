"""KKT residual and multipliers at a point.

The residual is ‖Π_X(x − ∇L/s) − x‖∞, where s_i is the size of what has to cancel in coordinate i, at
least 1, and the same for entries that only move together. One scale for all coordinates would let a
steep direction that a row takes up hide the others, and dividing after the projection would let every
steep point of a small box pass. Complementarity counts alike, |λ_i g_i| of rows and |v_i| times the
distance to a bound, over max(1, |F1|), v being the part of −∇L that X does not balance; and so does
the sign of λ.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.marks import all_are_0, all_finite, largest, some
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.sets.domain import Domain, roomy_metric

FloatArray = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class KktRules:
    """Numbers of the residual and of the fit of multipliers.

    *Development set*: the value with which the figures of `tests/benchmarks/calls.py` were measured.
    """

    # The least size that an objective is taken to have where it and its slopes vanish.
    smallest_scale: float = 1e-5  # development set (optima of 0)
    # The share of terms that cancel among themselves which counts as size.
    cancellation: float = 1e-8  # half the digits, as many as the multipliers of dependent rows have
    # The share of √tolerance that the residual in natural units may have.
    natural_share: float = 0.1  # development set: its square is the order of the error in the value
    # Unknowns beyond which least squares cost more than a method's own multipliers are worth.
    largest_fit: int = 200  # development set
    # Unknowns beyond which the fit is made smaller by a QR factorisation first.
    tall: int = 1000  # a fit of 3,240 unknowns to 11 rows took 0.4 s without it
    # The share of the tolerance under which multipliers are good enough not to look for others.
    exact: float = 1e-2  # two more digits than are asked for
    # The widths, in tolerances, within which rows count as active for the fit.
    fit_widths: tuple[float, ...] = (1.0, 1e3)  # development set
    # Fits that entries on bounds join whose slopes have the wrong sign.
    sign_fits: int = 6  # what 300 random vertices of up to 30 unknowns need


RULES = KktRules()


def lagrangian_gradient(evaluation: Evaluation, multipliers: FloatArray) -> FloatArray:
    return np.asarray(evaluation.gradient + evaluation.jacobian.T @ multipliers)


def residual(evaluation: Evaluation, domain: Domain, multipliers: FloatArray) -> float:
    """Stationarity and complementarity of (x, multipliers); feasibility is judged apart."""
    pull = np.asarray(evaluation.jacobian.T @ multipliers)
    gradient = evaluation.gradient + pull
    if not all_finite(gradient):
        return np.inf
    point = evaluation.point
    downhill = domain.normal_cone_distance(point, -gradient)
    scale = np.maximum(1.0, _terms(evaluation, domain, multipliers, pull))
    moved = domain.project(point - gradient / scale) - point
    stationarity = largest(np.abs(moved))
    complementarity = largest(np.abs(moved * downhill))
    count = evaluation.inequalities
    if count:
        own = multipliers[:count]
        stationarity = max(stationarity, -float(own[own.argmin()]))
        complementarity = max(largest(np.abs(own * evaluation.rows[:count])), complementarity)
    return max(stationarity, complementarity / max(1.0, abs(evaluation.objective)))


def _terms(
    evaluation: Evaluation, domain: Domain, multipliers: FloatArray, pull: FloatArray
) -> FloatArray:
    """|∇F1| + |Σ λ_j ∇row_j|: the size of what cancels in each coordinate of ∇L; `pull` is that sum.

    Multipliers of dependent rows may be as large as they like and cancel each other: those terms
    count only as far as their rounding does. Entries of a matrix or of a distribution, which can only
    move together, have one size, that of the parts which X does not balance.
    """
    point, slope = evaluation.point, evaluation.gradient
    rounding = RULES.cancellation * (abs(evaluation.jacobian).T @ np.abs(multipliers))
    sizes = np.asarray(np.abs(slope) + np.abs(pull) + rounding)
    groups = domain.moving_together
    if groups:
        parts = [np.abs(domain.normal_cone_distance(point, -part)) for part in (slope, pull)]
        free = np.maximum(*parts) + rounding
        for group in groups:
            sizes[group] = free[group].max(initial=0.0)
    return sizes


def scaled_residual(evaluation: Evaluation, domain: Domain, multipliers: FloatArray) -> float:
    """Stationarity in the units of the domain's metric, relative to the objective's own size.

    Its square is of the order of the error in the value, so complementarity, whose error is of
    first order, joins by its root.
    """
    point, metric = evaluation.point, roomy_metric(domain, evaluation.point)
    for group in domain.moving_together:
        metric[group] = np.max(metric[group])
    pull = np.asarray(evaluation.jacobian.T @ multipliers)
    gradient = evaluation.gradient + pull
    if not np.isfinite(gradient).all():
        return np.inf
    least = max(abs(evaluation.objective), RULES.smallest_scale)
    scale = np.maximum(least, metric * _terms(evaluation, domain, multipliers, pull))
    count = evaluation.inequalities
    products = float(np.abs(multipliers[:count] * evaluation.rows[:count]).max(initial=0.0))
    step = metric * (metric * -gradient / scale)  # in this order: a tiny metric squared would be 0
    moved = (domain.project(point + step) - point) / metric
    return max(float(np.abs(moved).max(initial=0.0)), float(np.sqrt(products / least)))


def least_squares_multipliers(
    evaluation: Evaluation, domain: Domain, tolerance: float
) -> FloatArray | None:
    """Multipliers of the active rows that come nearest to ∇L in −N_X(x), λ >= 0; None if too large.

    Rows and bounds count as active within the tolerance. Only directions along the face of X at the
    point enter the fit, since the multipliers of X itself take up what remains. Where a bound of a box
    would need a multiplier of the wrong sign, its entry joins with a multiplier of its own.
    """
    rows, count = evaluation.rows, evaluation.inequalities
    near = np.abs(rows) <= tolerance * evaluation.magnitudes
    active = (near | (np.arange(rows.size) >= count) | (rows > 0)).nonzero()[0]
    if not 0 < active.size <= RULES.largest_fit:
        return np.zeros(rows.size) if active.size == 0 else None
    jacobian: Any = evaluation.jacobian[active]
    dense = jacobian.toarray() if is_sparse(jacobian) else np.asarray(jacobian)
    both = np.column_stack([dense.T, evaluation.gradient])
    along = domain.along_face(evaluation.point, tolerance, both)
    free = active >= count
    weights = _fitted(along, free)
    signs = _signs_at_bounds(domain, evaluation.point, tolerance)
    metric, chosen = domain.metric(evaluation.point)[:, None], np.zeros(signs.size, dtype=bool)
    for _ in range(RULES.sign_fits):
        wrong = _of_wrong_sign(both, weights, signs)
        if not some(wrong) or np.count_nonzero(chosen | wrong) > RULES.largest_fit:
            break
        chosen |= wrong
        own, slack = (metric * both)[chosen], -np.diag(signs[chosen])
        parts = [along[:, :-1], np.zeros((len(along), len(slack))), along[:, -1:]]
        whole = np.block([parts, [own[:, :-1], slack, own[:, -1:]]])
        again = _fitted(whole, np.append(free, np.zeros(len(slack), dtype=bool)))
        weights = weights if again is None else again
    if weights is None:
        return None
    result = np.zeros(rows.size)
    result[active] = weights[: active.size]
    return result


def _fitted(both: FloatArray, free: Marks) -> FloatArray | None:
    """The least-squares solution w of matrix·w = −(the last column); nonnegative where not free."""
    matrix, target = both[:, :-1], -both[:, -1]
    if not (np.isfinite(matrix).all() and np.isfinite(target).all()):
        return None
    scales = np.maximum(np.abs(matrix).max(axis=0, initial=0.0), TINY)
    columns = np.hstack([matrix / scales, -(matrix / scales)[:, free]])
    if columns.shape[0] == 0:
        return np.zeros(free.size)
    if columns.shape[0] > max(RULES.tall, columns.shape[1]):
        orthonormal, columns = np.linalg.qr(columns)  # the same fit with few rows
        target = orthonormal.T @ target
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older versions of scipy warn of dependent columns
            solution, _ = scipy.optimize.nnls(columns, target)
    except (RuntimeError, np.linalg.LinAlgError):  # nnls ran out of iterations, or gave up
        return None
    weights = solution[: free.size].copy()
    weights[free] -= solution[free.size :]
    return np.asarray(weights / scales)


def _signs_at_bounds(domain: Domain, point: FloatArray, tolerance: float) -> FloatArray:
    """The sign of ∇L that each bound of a box holds back; 0 of entries on no bound, or on two."""
    if not domain.is_box:
        return np.zeros(point.size)
    (lower, upper), reach = domain.entry_bounds(), tolerance * domain.metric(point)
    return (point - lower <= reach).astype(float) - (upper - point <= reach)


def _of_wrong_sign(both: FloatArray, weights: FloatArray | None, signs: FloatArray) -> Marks:
    """The entries on bounds at which ∇L has a sign that the bound does not balance."""
    if weights is None or all_are_0(signs):
        return np.zeros(signs.size, dtype=bool)
    own = np.append(weights[: both.shape[1] - 1], 1.0)
    rounding = RULES.cancellation * (np.abs(both) @ np.abs(own))
    return np.asarray((signs * (both @ own) < -rounding) & (signs != 0.0))


def is_stationary(
    evaluation: Evaluation,
    domain: Domain,
    multipliers: FloatArray,
    tolerance: float,
    known: float | None = None,
) -> bool:
    """Whether the residual is below the tolerance, in the user's units and in natural ones.

    In natural units the root of the tolerance is asked for: its square is the error in the value.
    `known` is the residual in the user's units, where it has been computed.
    """
    value = residual(evaluation, domain, multipliers) if known is None else known
    if value > tolerance:
        return False
    allowed = RULES.natural_share * float(np.sqrt(tolerance))
    return scaled_residual(evaluation, domain, multipliers) <= allowed


def best_multipliers(
    evaluation: Evaluation,
    domain: Domain,
    candidates: Iterable[FloatArray],
    tolerance: float,
    enough: float | None = None,
) -> tuple[FloatArray, float]:
    """The candidate, or the least-squares fit, of smallest residual; one that passes both tests first.

    A candidate far below the tolerance, or with a residual that is `enough`, needs no fit. Where all
    slopes of the objective are small, so is the residual of any small multipliers, 0 among them:
    `enough` is relative to these slopes.
    """
    pool = list(candidates)
    values: list[float] = []
    if enough is not None:
        enough *= min(1.0, largest(np.abs(evaluation.gradient)))
    for each in pool:
        value = residual(evaluation, domain, each)
        values.append(value)
        if enough is not None and value <= enough:
            return each, value
        if is_stationary(evaluation, domain, each, RULES.exact * tolerance, value):
            return each, value
    for width in RULES.fit_widths:
        fitted = least_squares_multipliers(evaluation, domain, width * tolerance)
        if fitted is not None and not (pool and np.array_equal(fitted, pool[-1])):
            pool.append(fitted)
    if not pool:
        pool.append(np.zeros(evaluation.rows.size))
    values += [residual(evaluation, domain, multipliers) for multipliers in pool[len(values) :]]
    scored = list(zip(values, pool, strict=True))
    passing = [
        (value, multipliers)
        for value, multipliers in scored
        if is_stationary(evaluation, domain, multipliers, tolerance, value)
    ]
    value, multipliers = min(passing or scored, key=lambda pair: pair[0])
    return multipliers, value
