"""The domain of a problem from its variables: boxes, simplices, symmetric matrices, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Variable
from hcmodel.solvers.algebra.symmetric import to_vector
from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.matrices import SymmetricMatrices
from hcmodel.solvers.sets.product import side_by_side
from hcmodel.solvers.sets.simplices import Simplices


def make_domain(
    variables: Sequence[Variable], steep: Mapping[Variable, NDArray[np.bool_]] | None = None
) -> Domain:
    """The product of the variables' domains; neighbouring boxes are one box.

    `steep` marks entries of boxes that move by factors though their lower bound is 0.
    """
    return side_by_side(_factor(variable, steep) for variable in variables)


def _factor(variable: Variable, steep: Mapping[Variable, NDArray[np.bool_]] | None) -> Domain:
    if variable.domain_kind == "simplex":
        return _simplex(variable)
    if variable.domain_kind in ("symmetric", "psd"):
        return _matrix(variable)
    low, high = np.ravel(variable.lower), np.ravel(variable.upper)
    positive = (low > 0) | variable.pos
    return Box(low, high, positive if steep is None else positive | np.ravel(steep[variable]))


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
