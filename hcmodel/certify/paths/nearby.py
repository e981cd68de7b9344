"""Better feasible points beside one that looks like a minimum.

A start at a maximum, at a saddle or on a plateau is stationary, and so is the top of a concave kink
to everyone who asks for one derivative there. Directions of negative curvature of the Lagrangian and a
fixed set of perturbed points, from small to as large as the domain, are tried before a point is called
a local minimum. Points that leave the rows are put back by Gauss and Newton's method.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain, roomy_metric

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NearbyRules:
    """Which points are tried; the claims' tests (test_claims.py) chose the numbers."""

    scales: tuple[float, ...] = (1e-4, 1e-2, 1.0, 30.0)
    """Distances of the perturbed points, in natural units."""
    directions: int = 3
    """Perturbed points, each with its mirror image, at each distance."""
    samples: int = 8
    """Points from all over the domain."""
    curved: tuple[float, ...] = (1e-4, 1e-2, 1.0, 1e2, 1e4)
    """Distances along negative curvature, both ways."""
    negative: float = 1e-8
    """The eigenvalue, relative to the largest, from which curvature counts as negative."""
    largest: int = 200
    """Unknowns and rows up to which curvature and restoration are affordable: they are dense."""
    repairs: int = 4
    """Steps of Gauss and Newton's method that put a point back on the rows."""
    chords: bool = False
    """Whether these steps take the slopes at the point found, which cost nothing."""


RULES = NearbyRules()
# For functions of the user, each call of which may be expensive (tests/benchmarks/black_boxes.py).
FEW_POINTS = NearbyRules(scales=(1e-4, 1e-2, 1.0), directions=1, repairs=1, chords=True)


def better_point(
    form: Form, evaluation: Evaluation, multipliers: FloatArray, tolerance: float, least: float
) -> Evaluation | None:
    """A feasible point whose value is lower by more than `least`; the lowest of those tried.

    The point belongs to `form`, as the multipliers do. What a row gives within the tolerance is paid for
    at the price of its multiplier: a value that is lower by that is not better.
    """
    oracle, best = form.oracle(), None
    rules = FEW_POINTS if form.compiled.has_black_boxes else RULES
    highest = evaluation.objective - least
    with np.errstate(all="ignore"):
        for point in _candidates(form, oracle, evaluation, multipliers, rules):
            slopes = evaluation.jacobian if rules.chords else None
            there = _restored(oracle, form, point, tolerance, rules, slopes)
            if there is None:
                continue
            value = there.objective + float(np.abs(multipliers) @ there.violations)
            if value < highest:
                best, highest = there, value
    return best


def _candidates(
    form: Form,
    oracle: Oracle,
    evaluation: Evaluation,
    multipliers: FloatArray,
    rules: NearbyRules,
) -> Iterator[FloatArray]:
    generator, domain, point = np.random.default_rng(0), form.domain, evaluation.point
    yield from _along_curvature(form, oracle, evaluation, multipliers)
    metric = domain.metric(point)
    for scale in rules.scales:
        for _ in range(rules.directions):
            step = scale * metric * generator.uniform(-1.0, 1.0, point.size)
            yield point + step
            yield point - step
    for _ in range(rules.samples):
        yield domain.sample(generator)


def _along_curvature(
    form: Form, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray
) -> Iterator[FloatArray]:
    """Both ways along the direction of most negative curvature that the active rows allow."""
    point, domain = evaluation.point, form.domain
    if max(point.size, evaluation.rows.size) > RULES.largest:
        return  # before second derivatives are asked for: compiling large ones takes minutes
    if not (evaluation.finite and evaluation.differentiable and form.affords_hessian):
        return
    basis = _free_directions(domain, evaluation)
    if basis.shape[1] == 0:
        return
    hessian = as_dense(oracle.lagrangian_hessian(evaluation, multipliers))
    reduced = basis.T @ hessian @ basis
    if not np.isfinite(reduced).all():
        return
    values, vectors = scipy.linalg.eigh(reduced)
    if values[0] >= -RULES.negative * max(abs(values[-1]), abs(values[0])):
        return
    direction = basis @ vectors[:, 0]
    for length in RULES.curved:
        yield point + length * direction
        yield point - length * direction


def _free_directions(domain: Domain, evaluation: Evaluation) -> FloatArray:
    """Directions of natural length along the face of the domain that active rows do not forbid."""
    face = domain.face_basis(evaluation.point, RULES.negative).toarray()
    rows, count = evaluation.rows, evaluation.inequalities
    near = np.abs(rows) <= RULES.negative * evaluation.magnitudes
    active = near | (np.arange(rows.size) >= count)
    if not active.any() or face.shape[1] == 0:
        return np.asarray(face)
    slopes = _dense(evaluation.jacobian[np.flatnonzero(active)]) @ face
    if not np.isfinite(slopes).all():
        return np.zeros((face.shape[0], 0))
    return np.asarray(face @ scipy.linalg.null_space(slopes))


def _restored(
    oracle: Oracle,
    form: Form,
    point: FloatArray,
    tolerance: float,
    rules: NearbyRules,
    known: Any = None,
) -> Evaluation | None:
    """The point, put back on the rows that it breaks; None where that fails.

    `known` are the slopes of the rows close by, where they are used instead of those at the point.
    """
    domain = form.domain
    for _ in range(rules.repairs + 1):
        there = oracle.at(form.settled(domain.project(point)))
        point = there.point
        if not there.finite:
            return None
        if there.violation_in_units(domain.metric(point)) <= tolerance:
            return there
        if max(point.size, there.rows.size) > rules.largest:
            return None
        if known is None and not there.differentiable:
            return None
        broken = np.flatnonzero(there.violations > 0)
        metric = roomy_metric(domain, point)
        slopes = _dense((there.jacobian if known is None else known)[broken]) * metric
        step = np.linalg.lstsq(slopes, -there.rows[broken], rcond=None)[0]
        point = point + metric * step
    return None


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
