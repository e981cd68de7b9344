"""Factorisations of symmetric matrices: dense Cholesky, and LDLᵀ of sparse quasi-definite ones.

The sparse one was chosen by measurement on normal matrices of the method (one core; ordering and analysis
are done once per program, "again" is every further factorisation):

| matrix | QDLDL first / again | SuperLU, symmetric mode | CHOLMOD (GPL, by CVXOPT) |
|---|---|---|---|
| chain, n = 10⁴ | 13 / 0.2 ms | 15 ms | 10 / 1.2 ms |
| chain, n = 10⁵ | 92 / 8 ms | 118 ms | 67 / 37 ms |
| gate sizing, n = 2·10³ | 12 / 0.8 ms | 14 ms | 10 / 1.1 ms |
| gate sizing, n = 2·10⁴ | 370 / 155 ms | 410 ms | 115 / 94 ms |

QDLDL (Stellato and others, Apache 2.0) reuses its analysis. SuperLU, which scipy brings, takes its place
where the package is not installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray

# How often the diagonal is raised, each time a hundredfold, before a matrix counts as indefinite
# (ablation: without it 400 gates fail).
ATTEMPTS = 6


class FactorisationError(ArithmeticError):
    """The matrix could not be factorised, even with a larger diagonal."""


class DenseCholesky:
    """(D^½ (S + ε I) D^½)⁻¹ for a matrix whose scaled diagonal is 1; ε is raised until it exists."""

    def __init__(self, matrix: FloatArray) -> None:
        """`matrix` is overwritten; only its lower triangle is read."""
        diagonal = np.einsum("ii->i", matrix)
        self.scale = 1.0 / np.sqrt(np.maximum(diagonal, TINY))
        matrix *= self.scale
        matrix *= self.scale[:, None]
        ridge = PRODUCT_ROUNDING
        for _ in range(ATTEMPTS):
            diagonal[:] = 1.0 + ridge
            factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=0)
            if not failed:
                self.factor = factor
                return
            ridge *= 100
        raise FactorisationError

    def solve(self, right: FloatArray) -> FloatArray:
        if not right.size:
            return right
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        solution, _ = scipy.linalg.lapack.dpotrs(self.factor, scale * right, lower=1)
        return np.asarray(scale * solution)


class SparseFactor:
    """LDLᵀ of matrices that share one pattern: the upper triangle in compressed columns."""

    def __init__(self, indices: Any, starts: Any, size: int) -> None:
        self.indices, self.starts, self.size = indices, starts, size
        self._solver: Any = None
        self._upper: Any = None

    def factorise(self, entries: FloatArray) -> None:
        if self._upper is None:
            self._upper = scipy.sparse.csc_matrix(
                (entries, self.indices, self.starts), shape=(self.size, self.size)
            )
        upper = self._upper
        upper.data = entries
        qdldl = _qdldl()
        try:
            if qdldl is None:
                self._solver = _superlu(upper)
            elif self._solver is None:
                self._solver = qdldl.Solver(upper, upper=True)
            else:
                self._solver.update(upper, upper=True)
        except (RuntimeError, ValueError) as error:  # a pivot is 0
            self._solver = None
            raise FactorisationError from error

    def solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(self._solver.solve(right))


def _qdldl() -> Any:
    try:
        import qdldl
    except ImportError:
        return None
    return qdldl


def _superlu(upper: Any) -> Any:
    whole = upper + scipy.sparse.triu(upper, 1).T
    return scipy.sparse.linalg.splu(
        scipy.sparse.csc_matrix(whole),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True, "Equil": False},
    )
