"""Sparse matrices of scipy as data: kept as compressed rows, and made dense only where it is affordable.

Constants and parameters hold either a numpy array or a `scipy.sparse.csr_array`. Functions that work on
both stand here, so that the rest of the package asks no one about storage. scipy's operators do not
know expressions; `defer_to` makes them leave `F @ x` and its like to the expression, as CVXPY does.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
import scipy

from hcmodel.errors import DataError, ModelError
from hcmodel.solvers.algebra.marks import every, none_is_0
from hcmodel.solvers.algebra.storage import is_sparse as is_sparse  # for those who have data

SparseArray: TypeAlias = Any  # scipy.sparse.csr_array, which has no types
Numbers: TypeAlias = Any  # np.ndarray or SparseArray

# Entries up to which a sparse matrix is made dense where an operation needs that: 800 MB of doubles.
MOST_DENSE_ENTRIES = 100_000_000


def dense(value: Any, what: str = "a sparse matrix") -> Any:
    """The numpy array of a sparse matrix; anything else comes back as it is."""
    if not is_sparse(value):
        return value
    size = math.prod(value.shape)
    if size > MOST_DENSE_ENTRIES:
        shape = "×".join(str(length) for length in value.shape)
        raise DataError(
            f"{what} of {shape} entries would have to be stored densely here, which takes "
            f"{8e-9 * size:.3g} GB; sparse matrices stay sparse in products F @ x and x @ F, in F.T, -F "
            "and 2 * F: write the model with these"
        )
    return value.toarray()


def as_compressed(value: SparseArray, what: str) -> Numbers:
    """A fresh float matrix in compressed rows, without stored zeros; dense where it has not two axes."""
    if value.dtype.kind not in "fiub":
        raise DataError(f"{what} must have real numbers as entries, not {value.dtype}")
    if value.ndim != 2:
        return dense(value, what).astype(float)
    if type(value) is scipy.sparse.csr_array:  # of small models the checks of a new one are a part
        matrix = copy.copy(value)  # that one notices
        matrix.data, matrix.indices = value.data.astype(float), value.indices.copy()
        matrix.indptr = value.indptr.copy()
    else:
        matrix = scipy.sparse.csr_array(value, dtype=float, copy=True)
    matrix.sum_duplicates()
    finite = np.isfinite(matrix.data)
    if not every(finite):
        place = int((~finite).nonzero()[0][0])
        row = int(matrix.indptr.searchsorted(place, side="right")) - 1
        kind = "a NaN" if np.isnan(matrix.data[place]) else "an infinite number"
        raise DataError(f"{what} has {kind} at entry ({row}, {int(matrix.indices[place])})")
    if not none_is_0(matrix.data):
        matrix.eliminate_zeros()
    return matrix


def frozen(value: Numbers) -> Numbers:
    """The same numbers, which can no longer be written to."""
    parts = (value.data, value.indices, value.indptr) if is_sparse(value) else (value,)
    for part in parts:
        part.flags.writeable = False
    return value


def fingerprint(value: Numbers) -> Hashable:
    """Equal for equal numbers in equal storage."""
    parts = (value.data, value.indices, value.indptr) if is_sparse(value) else (value,)
    return tuple(part.tobytes() for part in parts)


def extremes(value: Numbers) -> tuple[float, float]:
    """The smallest and the largest entry of an array that is not empty."""
    return float(value.min()), float(value.max())


def any_nonzero(value: Numbers) -> bool:
    """Whether an entry is not 0."""
    return bool(np.any(value.data if is_sparse(value) else value))


def count_nonzero(value: Numbers) -> int:
    return int(value.count_nonzero() if is_sparse(value) else np.count_nonzero(value))


def all_finite(value: Numbers) -> bool:
    return bool(np.isfinite(value.data if is_sparse(value) else value).all())


def positive_part(value: Numbers) -> Numbers:
    """The entries that are positive, and 0 in place of the others."""
    return value.maximum(0.0).tocsr() if is_sparse(value) else np.maximum(value, 0.0)


def equal(one: Numbers, other: Numbers) -> bool:
    """Whether two arrays have the same shape and entries."""
    if one.shape != other.shape:
        return False
    if not is_sparse(one) or not is_sparse(other):
        return bool(np.array_equal(dense(one), dense(other)))
    return bool((one != other).nnz == 0)


def nonzero_places(value: Numbers) -> tuple[np.ndarray, ...]:
    """The positions of the entries that are not 0, one array for each axis; a number has no axis."""
    if not is_sparse(value):
        return np.nonzero(value) if np.ndim(value) else ()
    rows = np.arange(value.shape[0]).repeat(np.diff(value.indptr))
    return rows, value.indices.astype(rows.dtype)


# scipy's operators

OPERATORS = (
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__"),
    *("__matmul__", "__rmatmul__", "__pow__", "__le__", "__ge__", "__lt__", "__gt__"),
    *("__eq__", "__ne__"),
)
PRODUCTS = ("__mul__", "__rmul__")
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def defer_to(expression: type) -> None:
    """Let the operators of scipy's sparse matrices leave operands of this class to that class."""
    names = [f"{form}_{kind}" for form in FORMATS for kind in ("array", "matrix")]
    classes = {
        base
        for name in names
        for base in getattr(scipy.sparse, name).__mro__
        if base.__module__.startswith("scipy.sparse")
    }
    for each in classes:
        for name in OPERATORS:
            if name in vars(each):
                setattr(each, name, _deferring(vars(each)[name], name, expression))


def _deferring(method: Any, name: str, expression: type) -> Any:
    @functools.wraps(method)
    def operator(self: Any, *others: Any) -> Any:
        if others and isinstance(others[0], expression):
            if name in PRODUCTS:
                check_product(self, others[0])
            return NotImplemented
        return method(self, *others)

    return operator


def check_product(matrix: Any, other: Any) -> None:
    """Refuse `*` for scipy's old matrix classes, where it means the product of matrices."""
    if isinstance(matrix, scipy.sparse.spmatrix) and other.shape != ():
        name = type(matrix).__name__
        raise ModelError(
            f"'*' with a {name} is ambiguous: scipy reads it as the product of matrices, expressions "
            "entry by entry; write F @ x for the product of matrices, or "
            f"scipy.sparse.{name.replace('matrix', 'array')}(F) * x for that of the entries"
        )
