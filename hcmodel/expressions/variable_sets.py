"""The domain of a problem from its variables: boxes, simplices, symmetric matrices, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Variable
from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.cones import Simplices, SymmetricMatrices, to_vector
from hcmodel.solvers.sets.domain import Box, Domain, Product


def make_domain(
    variables: Sequence[Variable], steep: Mapping[Variable, NDArray[np.bool_]] | None = None
) -> Domain:
    """The product of the variables' domains; neighbouring boxes are one box.

    `steep` marks entries of boxes that move by factors though their lower bound is 0.
    """
    factors: list[Domain] = []
    for variable in variables:
        factor = _factor(variable)
        if steep is not None and variable.domain_kind == "box" and isinstance(factor, Box):
            factor = replace(factor, positive=factor.positive | np.ravel(steep[variable]))
        last = factors[-1] if factors else None
        if isinstance(factor, Box) and isinstance(last, Box):
            factors[-1] = Box(
                np.concatenate([last.lower, factor.lower]),
                np.concatenate([last.upper, factor.upper]),
                np.concatenate([last.positive, factor.positive]),
            )
        else:
            factors.append(factor)
    return factors[0] if len(factors) == 1 else Product(factors)


def _factor(variable: Variable) -> Domain:
    if variable.domain_kind == "simplex":
        return _simplex(variable)
    if variable.domain_kind in ("symmetric", "psd"):
        return _matrix(variable)
    low, high = np.ravel(variable.lower), np.ravel(variable.upper)
    return Box(low, high, (low > 0) | variable.pos)


def _simplex(variable: Variable) -> Domain:
    length = variable.shape[-1]
    count = variable.size // length
    low, high = np.ravel(variable.lower), np.ravel(variable.upper)
    # The simplex itself bounds its entries by 0 and 1.
    if (low <= 0).all() and (high >= 1).all():
        return Simplices(count, length)
    return BoundedSimplices(count, length, low, high)


def _matrix(variable: Variable) -> Domain:
    """Bounds are symmetric by now, and scaled as the entries are where these are stored."""
    smallest, largest = variable.eigenvalue_bounds or (-np.inf, np.inf)
    matrices = SymmetricMatrices(variable.shape[0], smallest, largest)
    low, high = _stored(variable.lower), _stored(variable.upper)
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return matrices
    box = Box(low, high, (low > 0) | variable.pos)
    if variable.eigenvalue_bounds is None:
        return box
    try:
        return BoundedMatrices(matrices, box)
    except ValueError:
        raise ModelError(
            f"variable '{variable.name}' has no value: no matrix has eigenvalues between {smallest:g} "
            f"and {largest:g} and entries within the bounds; widen one of them"
        ) from None


def _stored(bound: np.ndarray) -> np.ndarray:
    """A symmetric array of bounds in the order and scale of a stored matrix."""
    finite = np.where(np.isfinite(bound), bound, 0.0)
    infinite = np.where(np.isfinite(bound), 0.0, np.sign(bound))
    places = to_vector(infinite)
    return np.where(places == 0.0, to_vector(finite), np.where(places > 0, np.inf, -np.inf))
