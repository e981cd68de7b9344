"""Second derivatives with structure: H = S + V Vᵀ − R Rᵀ, S sparse, V and R of few columns.

Logarithms of sums over many variables, and limited-memory approximations, have this form. A small or
dense Hessian is a plain array; `Hessian` is either. Made positive semidefinite, S − R Rᵀ is so by itself,
which is what quadratic programs ask for (`qp.low_rank`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.memory import check_dense
from hcmodel.solvers.numerics import EIGENVALUE_ROUNDING, PRODUCT_ROUNDING, TINY

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class HessianRules:
    """When a matrix is treated as dense or sparse, and how definite it is made.

    *Large*: chosen by the times of `tests/benchmarks/large.py`.
    """

    # A gradient with more entries than this number and this share is kept as a column of V or R.
    wide: int = 40  # large
    wide_share: float = 0.05  # large
    # Up to this density squares of sparse rows are added up as sparse matrices.
    sparse_share: float = 0.1  # a product of sparse matrices takes ten times as long for each entry
    # Up to this size a sparse matrix is judged, and made definite, as a dense one.
    largest_dense: int = 1200  # large
    # Lanczos steps for the least eigenvalue of a larger one, and the factor of the shift by it.
    lanczos_steps: int = 60  # large
    margin: float = 1.1  # Lanczos finds the least eigenvalue from above only


RULES = HessianRules()


def _none() -> FloatArray:
    return np.zeros((0, 0))


@dataclass(frozen=True)
class SparseHessian:
    """`sparse` + `plus` @ `plus`ᵀ − `minus` @ `minus`ᵀ."""

    sparse: scipy.sparse.csr_array
    plus: FloatArray = field(default_factory=_none)
    minus: FloatArray = field(default_factory=_none)
    convex: bool = False
    """Whether S − R Rᵀ is known to be positive semidefinite."""

    def __post_init__(self) -> None:
        for name in ("plus", "minus"):
            if getattr(self, name).shape[0] != self.size:
                object.__setattr__(self, name, np.zeros((self.size, 0)))

    @property
    def size(self) -> int:
        return int(self.sparse.shape[0])

    def __matmul__(self, w: FloatArray) -> FloatArray:
        low_rank = self.plus @ (self.plus.T @ w) - self.minus @ (self.minus.T @ w)
        return np.asarray(self.sparse @ w + low_rank)

    def __mul__(self, factor: float) -> SparseHessian:
        """Times a number that is not negative."""
        root = float(np.sqrt(factor))
        parts = (self.sparse * factor, self.plus * root, self.minus * root)
        return SparseHessian(*parts, convex=self.convex)

    def scaled(self, scale: FloatArray) -> SparseHessian:
        """diag(scale) H diag(scale)."""
        column = scale[:, None]
        parts = (congruent(self.sparse, scale), self.plus * column, self.minus * column)
        return SparseHessian(*parts, convex=self.convex)

    def shifted(self, amount: FloatArray | float) -> SparseHessian:
        """H plus a diagonal."""
        return replace(self, sparse=with_diagonal(self.sparse, amount))

    def diagonal(self) -> FloatArray:
        squares = np.sum(self.plus**2, axis=1) - np.sum(self.minus**2, axis=1)
        return np.asarray(self.sparse.diagonal() + squares)

    def toarray(self) -> FloatArray:
        return np.asarray(
            self.sparse.toarray() + self.plus @ self.plus.T - self.minus @ self.minus.T
        )


Hessian: TypeAlias = "FloatArray | SparseHessian"


def congruent(matrix: scipy.sparse.csr_array, scale: FloatArray) -> scipy.sparse.csr_array:
    """diag(scale) M diag(scale), with the pattern of M."""
    rows = np.repeat(scale, np.diff(matrix.indptr))
    entries = matrix.data * rows * scale[matrix.indices]
    return scipy.sparse.csr_array((entries, matrix.indices, matrix.indptr), shape=matrix.shape)


def with_diagonal(
    matrix: scipy.sparse.csr_array, amount: FloatArray | float
) -> scipy.sparse.csr_array:
    """M plus a diagonal; its pattern stays where it has all of the diagonal."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    held = np.flatnonzero(rows == matrix.indices)
    amounts = np.broadcast_to(amount, matrix.shape[:1])
    if held.size < matrix.shape[0]:
        return scipy.sparse.csr_array(matrix + scipy.sparse.diags_array(amounts))
    entries = matrix.data.astype(float)
    entries[held] += amounts
    return scipy.sparse.csr_array((entries, matrix.indices, matrix.indptr), shape=matrix.shape)


def as_dense(hessian: Any) -> FloatArray:
    """An array, whatever the structure was."""
    if not isinstance(hessian, np.ndarray):
        rows = hessian.size if isinstance(hessian, SparseHessian) else hessian.shape[0]
        check_dense("the Hessian", rows, rows)
        return np.asarray(hessian.toarray())
    return hessian


def is_finite(hessian: Hessian) -> bool:
    if isinstance(hessian, SparseHessian):
        parts = (hessian.sparse.data, hessian.plus, hessian.minus)
        return all(bool(np.isfinite(part).all()) for part in parts)
    return bool(np.isfinite(hessian).all())


def largest_entry(hessian: Hessian) -> float:
    """The size of the largest entry; of the diagonal's where H is semidefinite and structured."""
    entries = hessian.diagonal() if isinstance(hessian, SparseHessian) else hessian
    return float(np.max(np.abs(entries), initial=0.0))


def with_squares(matrix: Any, squares: Sequence[tuple[FloatArray, Any]]) -> Hessian:
    """matrix + Σ weight_i · g_i g_iᵀ, from pairs of weights and rows g.

    A sparse matrix takes in the short rows; the long ones stay columns of their own.
    """
    if not is_sparse(matrix):
        if not squares:
            return np.asarray(matrix)
        total = np.zeros(matrix.shape)
        for weights, rows in squares:
            if is_sparse(rows) and rows.nnz <= RULES.sparse_share * math.prod(rows.shape):
                scaled = rows.T @ scipy.sparse.diags_array(weights)
                total += (scipy.sparse.csr_array(scaled) @ rows).toarray()
                continue
            dense = rows.toarray() if is_sparse(rows) else np.asarray(rows)
            total += dense.T @ (weights[:, None] * dense)
        return np.asarray(matrix + total)
    plus: list[FloatArray] = []
    minus: list[FloatArray] = []
    limit = max(RULES.wide, RULES.wide_share * matrix.shape[0])
    for weights, rows in squares:
        gradients = scipy.sparse.csr_array(rows)
        wide = np.diff(gradients.indptr) > limit
        short = gradients[np.flatnonzero(~wide)]
        matrix = matrix + short.T @ scipy.sparse.diags_array(weights[~wide]) @ short
        for number in np.flatnonzero(wide & (weights != 0)):
            column = np.sqrt(abs(weights[number])) * gradients[[number]].toarray()[0]
            (plus if weights[number] > 0 else minus).append(column)
    return SparseHessian(
        scipy.sparse.csr_array(matrix),
        np.array(plus).T if plus else _none(),
        np.array(minus).T if minus else _none(),
    )


def convexified(hessian: Hessian) -> Hessian:
    """A positive semidefinite matrix near by, where rounding or the model asks for it.

    The nearest one while that is cheap; of a large sparse matrix one with a larger diagonal.
    """
    if isinstance(hessian, SparseHessian):
        return _convexified_sparse(hessian)
    if hessian.size == 0:
        return hessian
    if not np.isfinite(hessian).all():  # at a point without second derivatives
        return np.zeros_like(hessian)
    if not _is_definite(hessian):
        values, vectors = np.linalg.eigh(hessian)
        if values[0] < 0:
            return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
    return hessian


def has_negative(hessian: Hessian, share: float, size: float = 0.0) -> bool:
    """Whether an eigenvalue is below minus a share of the largest, or of `size`; also where undefined."""
    if not is_finite(hessian):
        return True
    if isinstance(hessian, SparseHessian):
        if hessian.size > RULES.largest_dense:
            least, largest = _extreme_eigenvalues(hessian)
            return least < -share * max(largest, size)
        hessian = hessian.toarray()
    values = np.linalg.eigvalsh(hessian) if hessian.size else np.zeros(1)
    return bool(values[0] < -share * max(float(np.max(np.abs(values))), size))


def _is_definite(matrix: FloatArray) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _convexified_sparse(hessian: SparseHessian) -> Hessian:
    if hessian.convex:
        return hessian
    if not is_finite(hessian):
        return SparseHessian(scipy.sparse.csr_array((hessian.size, hessian.size)))
    core = replace(hessian, plus=np.zeros((hessian.size, 0)))
    size = max(float(np.max(np.abs(core.sparse.data), initial=0.0)), TINY)
    if hessian.size <= RULES.largest_dense:
        dense = core.toarray()
        dense[np.diag_indices_from(dense)] += EIGENVALUE_ROUNDING * size
        # With V Vᵀ it may be definite where it is not without: then the array is the one to keep.
        return hessian if _is_definite(dense) else convexified(hessian.toarray())
    least, largest = _extreme_eigenvalues(core)
    return (
        hessian
        if least >= -EIGENVALUE_ROUNDING * largest
        else hessian.shifted(-RULES.margin * least)
    )


def _extreme_eigenvalues(hessian: SparseHessian) -> tuple[float, float]:
    """The least and the largest of Lanczos' approximations after a fixed number of steps.

    They lie inside the spectrum, a little, so that what rests on them needs a margin.
    """
    steps = min(RULES.lanczos_steps, hessian.size)
    basis = np.zeros((steps, hessian.size))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    vector = np.random.default_rng(0).standard_normal(hessian.size)
    for step in range(steps):
        length = float(np.linalg.norm(vector))
        beside[step] = length if step else 0.0
        if length <= PRODUCT_ROUNDING * max(1.0, float(np.max(np.abs(diagonal)))):
            steps = step  # the vectors so far span all that the start reaches
            break
        basis[step] = vector / length
        vector = hessian @ basis[step]
        diagonal[step] = float(basis[step] @ vector)
        known = basis[: step + 1]
        for _ in range(2):  # once is not enough to stay orthogonal
            vector = vector - known.T @ (known @ vector)
    values = scipy.linalg.eigvalsh_tridiagonal(diagonal[:steps], beside[1:steps])
    return float(values[0]), float(np.max(np.abs(values)))
