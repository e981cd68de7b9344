"""Duals that show a program with matrices to have no solution, with more digits than a backend has.

    Aᵀz = 0,   bᵀz = −1,   z in the dual cone

What a backend ends with has a residual of about 1e-8, so that it proves nothing for unknowns without
bounds that are larger than 1e8. With the matrices as products V Vᵀ of as many columns as they have rank,
z stays in the cone whatever V is, and the equations are solved by steps of Gauss and Newton (S. Burer and
R. Monteiro, *A nonlinear programming algorithm for solving semidefinite programs via low-rank
factorization*, Mathematical Programming 95, 2003). The ray of a plant with a mode that no input moves has
the left eigenvector of that mode as V.

A program that nearly has no solution, because all its points are very large, has a z with a small
residual too: a plant with a mode that an input moves by 1e-6 has one of 1e-12 or less. So the residual is
computed with many digits, by whole numbers, and a ray counts only if the rounding of the data explains
what is left.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CONE_DUALITY
from hcmodel.certify.duals.cone_ranges import ConePlaces
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.symmetric import ROOT_TWO, to_matrix, triangle
from hcmodel.solvers.numerics import DATA_ROUNDING, DEPENDENT
from hcmodel.solvers.qp.cone_program import ConeProgram

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]
Whole = NDArray[Any]
"""Whole numbers without a limit, in units of 2^−BITS."""

BITS = 256  # 77 digits, many more than any data have
_ABOVE, _BELOW = ROOT_TWO.as_integer_ratio()
ROOT = (_BELOW << BITS + 1) // _ABOVE
"""√2 in these units, such that its product with the rounded √2 in the rows of a matrix is 2."""
# Relative singular values below which steps leave a direction out. Far from a ray a low cut leads astray;
# next to a ray of ill-conditioned data a high one stops short of it.
CUTS = (DEPENDENT, DATA_ROUNDING)


def refined_ray(program: ConeProgram, places: ConePlaces, z: FloatArray) -> FloatArray | None:
    """A ray next to z with no more of a residual than data in double precision leave; None without one.

    A single vector for each matrix is tried first: where there are many rays, backends end in the middle
    of them, at which the equations depend on each other.
    """
    if not can_be_refined(program, places, z):
        return None
    equations = _Equations(program)
    least = CONE_DUALITY.ray_zero * float(np.abs(z).max(initial=0.0))
    counts = (1, max(order for order, _ in places.blocks))
    for most, cut in itertools.product(counts, CUTS):
        ray: _Ray | None = _Ray.of(places, z, least, most)
        sizes: list[float] = []
        while ray is not None and not _is_stuck(sizes):
            rest, found = equations.rest(ray), ray.vector()
            sizes.append(float(np.abs(rest).sum()))
            if sizes[-1] <= CONE_DUALITY.ray_rounding * float(program.pulled_sizes(found).sum()):
                return found
            ray = ray.stepped(equations, rest, cut)
    return None


def can_be_refined(program: ConeProgram, places: ConePlaces, z: FloatArray) -> bool:
    """Whether the program has matrices and is small, and other cones have no weight."""
    others = np.concatenate([places.tops, places.members, places.exponential, places.power])
    small = np.prod(program.matrix.shape) <= CONE_DUALITY.largest_inner
    return bool(small and places.blocks and not z[others].any())


def light_matrices(places: ConePlaces, z: FloatArray) -> Places:
    """The rows of matrices with little weight beside the heaviest one.

    A backend ends in the middle of all duals, and gives a weight also to matrices that are not needed.
    """
    blocks = [slice(first, first + order * (order + 1) // 2) for order, first in places.blocks]
    weights = [float(np.abs(z[own]).max()) for own in blocks]
    least = CONE_DUALITY.ray_light * max(weights, default=0.0)
    light = [np.arange(z.size)[own] for own, w in zip(blocks, weights, strict=True) if w < least]
    return np.concatenate([*light, np.zeros(0, dtype=np.intp)])


def _is_stuck(sizes: list[float]) -> bool:
    """Whether the residual has not become less for some steps, or there were enough of them."""
    count = CONE_DUALITY.ray_patience
    old = min(sizes[:-count], default=np.inf)
    return len(sizes) > CONE_DUALITY.ray_steps or min(sizes[-count:], default=0.0) >= old


class _Equations:
    """Aᵀz = 0 and bᵀz = −1, in floating point and in whole numbers."""

    def __init__(self, program: ConeProgram) -> None:
        matrix = program.sparse
        self.columns = np.column_stack([matrix.toarray(), program.offset])
        used = np.flatnonzero(program.offset)
        self._rows = np.concatenate([matrix.indices, used])
        starts = np.concatenate([matrix.indptr, [matrix.indptr[-1] + used.size]])
        self._filled = np.flatnonzero(np.diff(starts))
        self._starts = starts[self._filled]
        self._values = _whole(np.concatenate([matrix.data, program.offset[used]]))

    def rest(self, ray: _Ray) -> FloatArray:
        """What is left of the equations."""
        products = (self._values * ray.whole()[self._rows]) >> BITS
        found = np.zeros(self.columns.shape[1], dtype=object)
        found[self._filled] = np.add.reduceat(products, self._starts)
        found[-1] += 1 << BITS
        return _number(found)


def _whole(numbers: FloatArray) -> Whole:
    """Numbers in units of 2^−BITS, smaller digits cut off."""
    parts = [float(number).as_integer_ratio() for number in numbers.ravel()]
    found = np.array([(above << BITS) // below for above, below in parts], dtype=object)
    return found.reshape(numbers.shape)


def _number(whole: Whole) -> FloatArray:
    return np.array([each / (1 << BITS) for each in whole.ravel()], dtype=float)


@dataclass(frozen=True)
class _Ray:
    """Weights of rows that are numbers, those of inequalities not 0, and V of each matrix."""

    size: int
    rows: Places
    signed: NDArray[np.bool_]
    """Which rows are inequalities."""
    weights: Whole
    roots: tuple[tuple[slice, Whole], ...]

    @staticmethod
    def of(places: ConePlaces, z: FloatArray, least: float, most: int) -> _Ray:
        """Of the largest eigenvalues of each matrix, so many at most, and of weights above the least."""
        numbers = places.nonnegative[z[places.nonnegative] > least]
        rows = np.concatenate([places.zero, numbers])
        signed = np.arange(rows.size) >= places.zero.size
        roots = []
        for order, first in places.blocks:
            own = slice(first, first + order * (order + 1) // 2)
            values, vectors = np.linalg.eigh(to_matrix(z[own]))
            values, vectors = values[-most:], vectors[:, -most:]
            large = values > least
            if large.any():
                roots.append((own, _whole(vectors[:, large] * np.sqrt(values[large]))))
        return _Ray(z.size, rows, signed, _whole(z[rows]), tuple(roots))

    def whole(self) -> Whole:
        """z in whole numbers."""
        z = np.full(self.size, 0, dtype=object)
        z[self.rows] = self.weights
        for own, root in self.roots:
            row, column = triangle(root.shape[0])
            entries = (root[row] * root[column]).sum(axis=1) >> BITS
            z[own] = np.where(row == column, entries, (entries * ROOT) >> BITS)
        return z

    def vector(self) -> FloatArray:
        return _number(self.whole())

    def stepped(self, equations: _Equations, rest: FloatArray, cut: float) -> _Ray | None:
        """The better of a step of Gauss and Newton and one of twice its length, None where there is none.

        Where equations touch in V, as those of an eigenvector do, the second one is Newton's step.
        Singular values below the `cut`, relative to the largest, are left out.
        """
        slopes = [equations.columns[self.rows].T]
        for own, root in self.roots:
            stack = _matrices(equations.columns[own], root.shape[0])
            number = _number(root).reshape(root.shape)
            slopes.append(2.0 * (stack @ number).reshape(stack.shape[0], -1))
        try:
            step = np.linalg.lstsq(np.hstack(slopes), -rest, rcond=cut)[0]
        except np.linalg.LinAlgError:
            return None
        found = [self._moved(length * step) for length in (1.0, 2.0)]
        found = [ray for ray in found if not (ray.weights[self.signed] < 0).any()]
        return min(found, key=lambda ray: float(np.abs(equations.rest(ray)).sum()), default=None)

    def _moved(self, step: FloatArray) -> _Ray:
        count = self.weights.size
        weights, roots = self.weights + _whole(step[:count]), []
        for own, root in self.roots:
            own_step = _whole(step[count : count + root.size]).reshape(root.shape)
            roots.append((own, root + own_step))
            count += root.size
        return _Ray(self.size, self.rows, self.signed, weights, tuple(roots))


def _matrices(columns: FloatArray, order: int) -> FloatArray:
    """The symmetric matrix of each column of rows of a block."""
    row, column = triangle(order)
    found = np.zeros((columns.shape[1], order, order))
    entries = np.where(row == column, 1.0, 1.0 / ROOT_TWO) * columns.T
    found[:, row, column] = found[:, column, row] = entries
    return found
