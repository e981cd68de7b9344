"""Smooth convex programs in structured form, the input of the interior-point method.

    minimise f_0(u)   s.t.   f_i(u) <= 0 (i = 1 … m),   A u = b,   lower <= u <= upper

Every function is a sum of parts, each kept in the form in which it was written:

    f_r(u) = C_r u + c_r                                               affine
           + Σ_{groups g of row r} log Σ_{k in g} exp(E_k u + b_k)     logarithms of posynomials in exp(u)
           + Σ_k W_rk exp(E_k u + b_k),  W >= 0                        posynomials; rows may share terms
           + smooth parts with value, Jacobian and Hessian             anything else that is convex

Row 0 is the objective. Matrices are arrays or scipy.sparse; sparse ones stay sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.numerics import INFINITE

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Matrix = Any  # an array, or a matrix of scipy.sparse


@dataclass(frozen=True)
class LogSums:
    """log Σ_{k in g} exp(E_k u + b_k) for groups g = 0 … G − 1, each added to the row `rows[g]`."""

    exponents: Matrix  # E, one row per term
    offsets: FloatArray  # b, the logarithms of the coefficients
    groups: IndexArray  # the group of each term, in ascending order
    rows: IndexArray  # the row of each group

    def __post_init__(self) -> None:
        count, groups = len(self.offsets), len(self.rows)
        if self.exponents.shape[0] != count or len(self.groups) != count:
            raise ValueError("exponents, offsets and groups do not have the same length")
        present = np.zeros(groups, dtype=bool)
        present[self.groups] = True
        if np.any(np.diff(self.groups) < 0) or not present.all():
            raise ValueError("groups have to be 0 … G − 1 in ascending order, and none empty")


@dataclass(frozen=True)
class Sums:
    """Σ_k W_rk exp(E_k u + b_k), added to row r; W has one row per function, the objective first."""

    exponents: Matrix
    offsets: FloatArray
    weights: Matrix  # W >= 0, (m + 1) × K

    def __post_init__(self) -> None:
        count = len(self.offsets)
        if self.exponents.shape[0] != count or self.weights.shape[1] != count:
            raise ValueError("exponents, offsets and weights do not have the same length")
        entries = self.weights.data if hasattr(self.weights, "tocsr") else self.weights
        if np.min(entries, initial=0.0) < 0:
            raise ValueError("the weights of exponentials have to be nonnegative")


class SmoothFunctions(Protocol):
    """Convex functions with two derivatives, added to the rows `rows` (one entry per function).

    `values` may return infinities outside the domain of the functions; steps then become shorter.
    """

    @property
    def rows(self) -> IndexArray: ...

    def values(self, u: FloatArray) -> FloatArray: ...

    def jacobian(self, u: FloatArray) -> Matrix:
        """One row per function."""
        ...

    def hessian(self, u: FloatArray, weights: FloatArray) -> Matrix:
        """The Hessian of Σ weights_i f_i, symmetric and whole."""
        ...


@dataclass(frozen=True)
class SmoothConvexProgram:
    """`affine` is C and `constants` is c, with m + 1 rows; parts that are absent are None or empty.

    `logarithms` marks the unknowns that are logarithms of a variable; None stands for all of them. Only
    of these is anything known where they have no bounds: that their exponential is a double.
    """

    affine: Matrix
    constants: FloatArray
    lower: FloatArray
    upper: FloatArray
    log_sums: LogSums | None = None
    sums: Sums | None = None
    smooth: Sequence[SmoothFunctions] = field(default=())
    equality: Matrix | None = None
    equality_bound: FloatArray | None = None
    logarithms: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        rows, size = self.affine.shape
        if len(self.constants) != rows or rows < 1:
            raise ValueError("`affine` and `constants` need one row per function, objective first")
        if len(self.lower) != size or len(self.upper) != size:
            raise ValueError(f"`lower` and `upper` need {size} entries, one per variable")
        if self.logarithms is not None and len(self.logarithms) != size:
            raise ValueError(f"`logarithms` needs {size} entries, one per variable")
        if (self.equality is None) != (self.equality_bound is None):
            raise ValueError("equalities need both a matrix and a right-hand side")
        for part in (self.log_sums, self.sums):
            if part is not None and part.exponents.shape[1] != size:
                raise ValueError(f"exponents need {size} columns, one per variable")
        if self.sums is not None and self.sums.weights.shape[0] != rows:
            raise ValueError(f"the weights of exponentials need {rows} rows, objective first")
        if self.equality is not None and self.equality.shape[1] != size:
            raise ValueError(f"equalities need {size} columns, one per variable")

    @property
    def is_linear(self) -> bool:
        return self.log_sums is None and self.sums is None and not self.smooth

    @property
    def density(self) -> float:
        """The share of entries that are not 0 in the affine rows and the equalities."""
        parts = [part for part in (self.affine, self.equality) if part is not None]
        cells = sum(part.shape[0] * part.shape[1] for part in parts)
        return float(sum(map(_count_of_nonzeros, parts)) / max(cells, 1))

    @property
    def all_bounded(self) -> bool:
        """Whether each variable has a bound."""
        return bool(np.all((self.lower > -INFINITE) | (self.upper < INFINITE)))

    @property
    def dimension(self) -> int:
        return int(self.affine.shape[1])

    @property
    def row_count(self) -> int:
        """m, the number of inequality rows without the objective and the bounds."""
        return int(self.affine.shape[0]) - 1

    def values(self, u: FloatArray) -> FloatArray:
        """f_0 … f_m."""
        total = np.asarray(self.affine @ u + self.constants, dtype=float)
        if self.log_sums is not None:
            logs, _ = log_sums(self.log_sums, u)
            np.add.at(total, self.log_sums.rows, logs)
        if self.sums is not None:
            with np.errstate(over="ignore"):
                terms = np.exp(self.sums.exponents @ u + self.sums.offsets)
                total += self.sums.weights @ terms
        for part in self.smooth:
            np.add.at(total, part.rows, part.values(u))
        return total

    def jacobian(self, u: FloatArray) -> sparse.csr_array:
        """The gradients of f_0 … f_m as rows."""
        total = sparse.csr_array(self.affine, dtype=float)
        if self.log_sums is not None:
            part = self.log_sums
            _, shares = log_sums(part, u)
            places = (np.asarray(part.rows)[part.groups], np.arange(shares.size))
            weights = sparse.csr_array((shares, places), shape=(total.shape[0], shares.size))
            total = total + weights @ sparse.csr_array(part.exponents)
        if self.sums is not None:
            terms = np.exp(self.sums.exponents @ u + self.sums.offsets)
            scaled = sparse.diags_array(terms) @ sparse.csr_array(self.sums.exponents)
            total = total + sparse.csr_array(self.sums.weights) @ scaled
        for other in self.smooth:
            places = (np.asarray(other.rows), np.arange(len(other.rows)))
            ones = sparse.csr_array(
                (np.ones(len(other.rows)), places), shape=(total.shape[0], len(other.rows))
            )
            total = total + ones @ sparse.csr_array(other.jacobian(u))
        return sparse.csr_array(total)

    def gradient(self, u: FloatArray, *weights: FloatArray) -> FloatArray:
        """The gradient of Σ_r weights_r f_r, the objective's weight first; several as columns."""
        by = np.column_stack(weights) if len(weights) > 1 else weights[0]
        affine, logs, sums, row_weights = self._transposed
        total = np.asarray(affine @ by, dtype=float)
        if self.log_sums is not None:
            part = self.log_sums
            _, shares = log_sums(part, u)
            total += logs @ _scaled(shares, by[part.rows][part.groups])
        if self.sums is not None:
            terms = np.exp(self.sums.exponents @ u + self.sums.offsets)
            total += sums @ _scaled(terms, row_weights @ by)
        for other in self.smooth:
            total += other.jacobian(u).T @ by[other.rows]
        return total

    @cached_property
    def _transposed(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """The transposes of C, of both matrices E, and of W."""
        return (
            self.affine.T,
            None if self.log_sums is None else self.log_sums.exponents.T,
            None if self.sums is None else self.sums.exponents.T,
            None if self.sums is None else self.sums.weights.T,
        )


def _scaled(factors: FloatArray, by: FloatArray) -> FloatArray:
    """A vector, or each column of a matrix, times factors."""
    return factors * by if by.ndim == 1 else factors[:, None] * by


def log_sums(part: LogSums, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log Σ exp for each group, and each term's share of its group's sum."""
    return Groups(part.groups, len(part.rows)).log_sums(part.exponents @ u + part.offsets)


# Columns up to which a table is added up column by column.
WIDEST_TABLE = 8


class Groups:
    """Consecutive entries of a vector that belong together."""

    def __init__(self, groups: IndexArray, count: int) -> None:
        self.of = groups
        self.count = count
        self.starts = np.searchsorted(groups, np.arange(count))
        # Groups of one size are rows of a table, whose sums are ten times faster. The first group, which
        # is often the objective's, may have another size.
        self._first = int(self.starts[1]) if count > 1 else len(groups)
        sizes = np.diff(self.starts[1:], append=len(groups))
        even = sizes.size > 0 and 0 < sizes[0] <= WIDEST_TABLE and bool((sizes == sizes[0]).all())
        self._size = int(sizes[0]) if even else 0

    def sums(self, entries: FloatArray) -> FloatArray:
        return self._reduced(np.add, entries)

    def largest(self, entries: FloatArray) -> FloatArray:
        return self._reduced(np.maximum, entries)

    def _reduced(self, operation: np.ufunc, entries: FloatArray) -> FloatArray:
        if not self.count:
            return np.zeros(0)
        if not self._size:
            return np.asarray(operation.reduceat(entries, self.starts))
        found = np.empty(self.count)
        found[0] = operation.reduce(entries[: self._first])
        table, rest = entries[self._first :].reshape(-1, self._size), found[1:]
        rest[:] = table[:, 0]
        for column in range(1, self._size):
            operation(rest, table[:, column], out=rest)
        return found

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Each group's value for each of its entries."""
        if not self._size:
            return np.asarray(values[self.of])
        found = np.empty(self.of.size, dtype=values.dtype)
        found[: self._first] = values[0]
        found[self._first :].reshape(-1, self._size)[:] = values[1:, None]
        return found

    def log_sums(self, exponents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log Σ exp of each group, and each term's share of its group's sum."""
        top = self.largest(exponents)
        terms = np.exp(exponents - self.spread(top))
        sums = self.sums(terms)
        return top + np.log(sums), terms / self.spread(sums)


def _count_of_nonzeros(matrix: Matrix) -> int:
    return int(np.count_nonzero(matrix) if isinstance(matrix, np.ndarray) else matrix.nnz)
