"""The constants of the theorems, bounded where the map allows it and sampled elsewhere.

Coordinates x_i or log x_i on boxes give μ_c and D_U by arithmetic on the bounds. All else is sampled:
that overestimates μ_c and underestimates D_U, ρ, L and G, so these are labelled estimates and no
certificate may rest on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import CONSTANTS
from hcmodel.analysis.hidden_map import OBJECTIVE, HiddenMap, MapPoint
from hcmodel.expressions.leaves import Variable
from hcmodel.maps.declared import complete
from hcmodel.maps.separable import LOG
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.theory.theorems import Constants

FloatArray = NDArray[np.float64]
Labels = dict[str, str]

BOUND, ESTIMATE = "bound", "estimate"


def estimate_constants(forms: Forms, samples: int = 50) -> tuple[Constants, Labels]:
    """Constants of the problem under its declared map, or in the coordinates of its proof.

    Each constant that could be given has a label, "bound" or "estimate".
    """
    coordinates: Mapping[Variable, str] | None
    model = forms.sign.before
    if model.hidden is not None:
        coordinates = forms.declared()
    else:
        proof = forms.prove()
        coordinates = forms.coordinates_of(proof) if proof.proven else None
    return constants_in(forms, coordinates, samples, seed=0)


def constants_in(
    forms: Forms, coordinates: Mapping[Variable, str] | None, samples: int, seed: int
) -> tuple[Constants, Labels]:
    """The same in given coordinates; None stands for the declared map, if there is one.

    Without samples only constants that follow from the sets are given.
    """
    with np.errstate(all="ignore"):  # what is not finite is skipped
        return _constants(forms, coordinates, samples, np.random.default_rng(seed))


def _constants(
    forms: Forms,
    coordinates: Mapping[Variable, str] | None,
    samples: int,
    generator: np.random.Generator,
) -> tuple[Constants, Labels]:
    hidden, variables = forms.model.hidden, forms.model.variables
    declared = coordinates is None and hidden is not None
    found: dict[str, float] = {}
    labels: Labels = {}
    model, points = None, []
    if samples:
        model = HiddenMap(forms, complete(hidden or (), variables) if declared else ())
        points = model.sample(samples, generator)
    diameter = forms.written.domain.diameter()
    if np.isfinite(diameter):
        found["diameter_x"], labels["diameter_x"] = diameter, BOUND
    if coordinates is not None:
        found |= _separable_geometry(variables, coordinates)
        labels |= {name: BOUND for name in ("mu_c", "diameter_u") if name in found}
    elif declared and points:
        found |= _sampled_geometry(points)
        labels |= {"mu_c": ESTIMATE, "diameter_u": ESTIMATE}
    if model is not None and points:
        sampled = _functions(model, points, generator)
        found |= sampled
        labels |= dict.fromkeys(sampled, ESTIMATE)
    return Constants(**found), labels


def _separable_geometry(
    variables: Sequence[Variable], coordinates: Mapping[Variable, str]
) -> dict[str, float]:
    """μ_c and D_U of coordinates x or log x: log has the slope 1/x, at least 1/upper."""
    slopes, widths = [], []
    for variable in variables:
        if coordinates.get(variable) == LOG:
            slopes.append(float(1.0 / np.max(variable.upper)))
            ratio = np.log(variable.upper) - np.log(variable.lower)
            widths.append(float(np.linalg.norm(ratio)))
        else:
            slopes.append(1.0)
            widths.append(variable.set.domain().diameter())
    found = {"mu_c": min(slopes), "diameter_u": float(np.linalg.norm(widths))}
    return {name: value for name, value in found.items() if 0 < value < np.inf}


def _sampled_geometry(points: Sequence[MapPoint]) -> dict[str, float]:
    """The least stretch of the map, by its Jacobian and between samples, and the widest images."""
    stretches = [
        float(np.linalg.svd(point.map_jacobian, compute_uv=False)[-1])
        for point in points
        if point.map.dimension
    ]
    widest = 0.0
    for i, first in enumerate(points):
        for second in points[i + 1 :]:
            image = float(np.linalg.norm(first.image - second.image))
            apart = float(np.linalg.norm(first.point - second.point))
            widest = max(widest, image)
            if apart > 0:
                stretches.append(image / apart)
    return {"mu_c": min(stretches), "diameter_u": widest} if stretches else {}


def _functions(
    model: HiddenMap, points: Sequence[MapPoint], generator: np.random.Generator
) -> dict[str, float]:
    """ρ, L and G over the objective and the rows; no L where there are kinks."""
    rows = np.arange(model.rows)
    if rows.size > CONSTANTS.most_rows:
        rows = np.sort(generator.choice(rows, CONSTANTS.most_rows, replace=False))
    steepest = smooth = concave = 0.0
    tangent = model.domain.tangent_basis()
    whole = model.domain.dimension <= CONSTANTS.largest_hessian and not model.stack.kinked
    for function in (OBJECTIVE, *rows.tolist()):
        slopes = np.array([tangent.T @ point.gradient(function) for point in points])
        known = np.isfinite(slopes).all(axis=1)
        steepest = max([steepest, *np.linalg.norm(slopes[known], axis=1).tolist()])
        if whole:
            few = max(CONSTANTS.least_hessians, CONSTANTS.most_hessians // (1 + rows.size))
            low, high = _by_hessians(points[:few], function)
        else:
            ys = np.array([tangent.T @ point.point for point in points])
            low, high = _by_differences(ys[known], slopes[known])
        smooth, concave = max(smooth, high, -low), max(concave, -low)
    found = {"rho": concave, "G": steepest}
    return found if model.stack.kinked else {**found, "L": smooth}


def _by_hessians(points: Sequence[MapPoint], function: int) -> tuple[float, float]:
    """The smallest and the largest eigenvalue seen of ∇²F on the tangent space."""
    low = high = 0.0
    for point in points:
        model = point.map
        hessian = as_dense(model.stack.hessian(point.point, model.weights(function)))
        projected = model.basis.T @ hessian @ model.basis
        if projected.size and np.isfinite(projected).all():
            values = np.linalg.eigvalsh(projected)
            low, high = min(low, float(values[0])), max(high, float(values[-1]))
    return low, high


def _by_differences(points: FloatArray, slopes: FloatArray) -> tuple[float, float]:
    """The least ⟨∇F(x) − ∇F(y), x − y⟩/‖x − y‖² and the largest ‖∇F(x) − ∇F(y)‖/‖x − y‖."""
    low = high = 0.0
    for i in range(len(points)):
        steps, changes = points[i + 1 :] - points[i], slopes[i + 1 :] - slopes[i]
        squares = np.sum(steps**2, axis=1)
        apart = squares > 0
        if apart.any():
            along = np.sum(steps * changes, axis=1)[apart] / squares[apart]
            size = np.linalg.norm(changes, axis=1)[apart] / np.sqrt(squares[apart])
            low, high = min(low, float(along.min())), max(high, float(size.max()))
    return low, high
