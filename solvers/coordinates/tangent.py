"""A map near a point: its derivatives along the directions of X, their units and their rank.

All decisions about units and rank of a Jacobian are made here:

- **Units.** A direction of X has its natural length, and an entry of u the size of its derivatives, where
  these are very large or small; otherwise the unit is 1, so that u is measured as it was declared.
- **Rank** does not depend on units. It is that of the balanced matrix, whose rows and columns are divided
  by their sizes in turn. A singular value below `DEPENDENT` times the largest counts as 0: there is no
  frame then, and no slope that a certificate could use. Least squares, which only have to be solvable,
  leave out what is dependent to rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.numerics import DATA_ROUNDING, DEPENDENT, PRODUCT_ROUNDING, TINY
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TangentRules:
    """The numbers of the policy above, except for those of rounding."""

    # Sizes within this factor of 1 are not scaled.
    moderate: float = 1e6  # the square root of what DEPENDENT and rounding leave
    # How often rows and columns are divided by the roots of their sizes.
    sweeps: int = 10  # Ruiz 2001: each halves the logarithms of the sizes, so 1e12 becomes 1.03


RULES = TangentRules()


def unit_sizes(sizes: FloatArray) -> FloatArray:
    """The sizes that are very large or small, and 1 for the others."""
    moderate = (sizes > 1 / RULES.moderate) & (sizes < RULES.moderate)
    return np.asarray(np.where(moderate | (sizes == 0), 1.0, sizes))


def tangent_directions(domain: Domain, basis: FloatArray, x: FloatArray) -> FloatArray:
    """Directions along which X extends, of natural length where that is far from 1."""
    return basis * unit_sizes(np.sqrt((basis**2).T @ domain.metric(x) ** 2))


def balanced(matrix: FloatArray) -> FloatArray:
    """Rows and columns divided by their sizes in turn, so that units alone make nothing singular.

    Or those of several matrices, the last two axes being theirs.
    """
    return _balance(matrix)[0]


def _balance(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The balanced matrix, and by what its columns were divided."""
    columns = np.ones_like(matrix[..., :1, :])
    for axis in (-1, -2) * RULES.sweeps:
        sizes = np.sqrt(np.max(np.abs(matrix), axis=axis, keepdims=True, initial=0.0))
        # powers of two, by which division is exact
        sizes = np.exp2(np.round(np.log2(np.where(sizes > 0, sizes, 1.0))))
        matrix = matrix / sizes
        if axis == -2:
            columns = columns * sizes
    return matrix, columns


def orientations(derivatives: FloatArray) -> NDArray[np.int_]:
    """Of several finite matrices: 1 keeps the orientation, −1 turns it round, 0 is singular.

    1 for matrices that are not square: there is no orientation to keep.
    """
    rows, columns = derivatives.shape[-2:]
    if rows < columns:
        return np.zeros(len(derivatives), dtype=int)
    even = balanced(derivatives)
    sizes = np.linalg.svd(even, compute_uv=False)
    largest = np.maximum(sizes.max(axis=-1, initial=0.0), TINY)
    regular = (sizes > PRODUCT_ROUNDING * largest[:, None]).all(axis=-1)
    signs = np.linalg.slogdet(even)[0] if rows == columns else np.ones(len(derivatives))
    return np.where(regular, np.where(signs > 0, 1, -1), 0)


@dataclass(frozen=True)
class Tangent:
    """Directions T of X as columns, and the `derivative` J T of the map along them."""

    directions: FloatArray
    derivative: FloatArray

    @property
    def defined(self) -> bool:
        """Whether the map has derivatives at the point."""
        return bool(np.isfinite(self.derivative).all())

    @property
    def square(self) -> bool:
        return bool(self.derivative.shape[0] == self.derivative.shape[1])

    @cached_property
    def units(self) -> FloatArray:
        """The units of u."""
        return unit_sizes(np.max(np.abs(self.derivative), axis=1, initial=0.0))

    @cached_property
    def _singular_values(self) -> FloatArray:
        """Of the balanced matrix, one for each direction, relative to the largest."""
        count = self.derivative.shape[1]
        if not self.defined:
            return np.zeros(count)
        found = np.linalg.svd(balanced(self.derivative), compute_uv=False)
        found = found / max(float(np.max(found, initial=0.0)), TINY)
        return np.concatenate([found, np.zeros(max(count - found.size, 0))])

    @property
    def rank(self) -> int:
        """The number of directions in which the map moves."""
        return int(np.sum(self._singular_values > DEPENDENT))

    @property
    def full_rank(self) -> bool:
        """Whether u determines x to first order, with digits to spare."""
        return self.defined and self.rank == self.derivative.shape[1]

    @property
    def singular(self) -> bool:
        """Whether some direction is lost to rounding: the map has no inverse here, in any units."""
        return not self.defined or bool((self._singular_values <= PRODUCT_ROUNDING).any())

    @property
    def still(self) -> FloatArray | None:
        """A combination of the directions in which no entry of the map moves, up to rounding.

        None where there is none. A chain such as x_k − 2 x_(k−1) only becomes singular to rounding, since
        it shrinks: relative to its terms, an entry of it moves.
        """
        if not self.singular or not self.defined:
            return None
        even, columns = _balance(self.derivative)
        found = np.linalg.svd(even)[2][-1]
        found = np.where(np.abs(found) > DATA_ROUNDING * np.abs(found).max(), found, 0.0)
        moved, terms = np.abs(even @ found), np.abs(even) @ np.abs(found)
        moves = moved > DEPENDENT * terms + PRODUCT_ROUNDING
        return None if some(moves) else np.asarray(found / columns[0])

    @property
    def orientation(self) -> bool | None:
        """Whether a square J keeps the orientation, True for others; None where it is singular."""
        found = int(orientations(self.derivative[None])[0]) if self.defined else 0
        return found > 0 if found else None

    @property
    def hull(self) -> FloatArray:
        """An orthonormal basis of the directions in which the image extends."""
        return np.asarray(np.linalg.qr(self.derivative / _column_sizes(self.derivative))[0])

    def slopes(self, gradients: FloatArray) -> FloatArray:
        """Rows s with s J = g on the directions of X, from rows g; of many the least in units of u."""
        along = gradients @ self.directions
        if not (self.defined and np.isfinite(along).all()):
            return np.full((gradients.shape[0], self.derivative.shape[0]), np.nan)
        exact = None if self.singular else self._eliminated(self.derivative.T, along.T)
        if exact is not None:
            return exact.T
        left, values, right, sizes = self._decomposed
        return np.asarray((((along / sizes) @ right.T / values) @ left.T) / self.units)

    def step(self, change: FloatArray) -> FloatArray:
        """The step along the directions of X that changes u by `change`, by least squares."""
        exact = self._eliminated(self.derivative, change)
        if exact is not None:
            return exact
        left, values, right, sizes = self._decomposed
        return np.asarray((right.T @ ((left.T @ (change / self.units)) / values)) / sizes)

    def _eliminated(self, matrix: FloatArray, right: FloatArray) -> FloatArray | None:
        """matrix⁻¹ right by elimination, good for steep triangular maps; None where it is not square."""
        if not self.square:
            return None
        try:
            return np.asarray(np.linalg.solve(matrix, right))
        except np.linalg.LinAlgError:
            return None

    @cached_property
    def _decomposed(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Singular value decomposition in units of u, without the sizes of the columns, and these.

        What is dependent to rounding is left out.
        """
        matrix = self.derivative / self.units[:, None]
        sizes = _column_sizes(matrix)
        left, values, right = np.linalg.svd(matrix / sizes, full_matrices=False)
        kept = values > PRODUCT_ROUNDING * np.max(values, initial=0.0)
        return left[:, kept], values[kept], right[kept], sizes

    def orthonormal(self) -> FloatArray | None:
        """Columns along X that the map makes orthonormal in units of u; None where it is singular.

        Here the units count: a program whose columns have lengths as far apart as that is singular too.
        """
        if not self.defined or self.derivative.shape[0] < self.derivative.shape[1]:
            return None
        _, sizes, right = np.linalg.svd(self.derivative / self.units[:, None], full_matrices=False)
        if sizes.size and sizes[-1] <= DEPENDENT * sizes[0]:
            return None
        return np.asarray(self.directions @ (right.T / sizes))


def _column_sizes(matrix: FloatArray) -> FloatArray:
    sizes = np.max(np.abs(matrix), axis=0, initial=0.0)
    return np.asarray(np.where(sizes > 0, sizes, 1.0))
