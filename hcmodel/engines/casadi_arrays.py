"""Arrays of any number of axes over casadi's matrices, and numpy's functions on them.

casadi has columns and matrices only. An `Array` is a column with the entries in C order and a shape.
`Namespace` offers the functions of numpy that the atoms use, so that an atom's own numeric function
builds its casadi graph. What asks for a number of a symbol (`bool`, `numpy.asarray`) is a `TypeError`.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import is_sparse

# LAPACK's dense factorisation, part of casadi's wheel: 3 µs for 16 unknowns, sparse ones take 5 to 12.
LINEAR_SOLVER = "lapacklu"
# As numpy's. The scaling of rows prints a line on standard error wherever a matrix has a row of zeros.
LINEAR_OPTIONS = {"equilibration": False}


@functools.cache
def casadi() -> Any:
    """The package, imported when the first stack is compiled."""
    return importlib.import_module("casadi")


def entries(shape: Shape) -> int:
    return math.prod(shape)


class Array:
    """Entries in C order, a column of casadi (MX), with a shape."""

    __slots__ = ("flat", "shape")
    __array_ufunc__ = None  # numpy leaves `array * Array` to __rmul__

    def __init__(self, flat: Any, shape: Shape) -> None:
        self.flat, self.shape = flat, tuple(shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return entries(self.shape)

    @property
    def T(self) -> Array:  # noqa: N802  (numpy's name)
        return transposed(self, None)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no truth value")

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        raise TypeError("a symbol is not a number")

    def __getitem__(self, key: Any) -> Array:
        places = np.arange(self.size).reshape(self.shape)[key]
        return gathered(self, np.asarray(places))

    def __neg__(self) -> Array:
        return Array(-self.flat, self.shape)

    def __add__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a + b, self, other)

    def __radd__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a + b, other, self)

    def __sub__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a - b, self, other)

    def __rsub__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a - b, other, self)

    def __mul__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a * b, self, other)

    def __rmul__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a * b, other, self)

    def __truediv__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a / b, self, other)

    def __rtruediv__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a / b, other, self)

    def __pow__(self, other: Any) -> Array:
        return power(self, other)

    def __rpow__(self, other: Any) -> Array:
        return power(other, self)

    def __gt__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a > b, self, other)

    def __ge__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a >= b, self, other)

    def __lt__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a < b, self, other)

    def __le__(self, other: Any) -> Array:
        return entrywise(lambda a, b: a <= b, self, other)

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return entrywise(lambda a, b: a == b, self, other)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return entrywise(lambda a, b: a != b, self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Array:
        return entrywise(casadi().logic_and, self, other)

    def __or__(self, other: Any) -> Array:
        return entrywise(casadi().logic_or, self, other)

    __rand__, __ror__ = __and__, __or__


def as_array(value: Any) -> Array:
    """A number, a numpy array or a sparse matrix as an `Array`; one of these stays what it is."""
    if isinstance(value, Array):
        return value
    array = np.asarray(value.toarray() if is_sparse(value) else value, dtype=float)
    column = casadi().DM(array.reshape(-1, 1))
    return Array(casadi().MX(column), array.shape)


def gathered(array: Array, places: np.ndarray) -> Array:
    """The entries at these places of the column, in the shape of `places`."""
    flat = places.reshape(-1)
    if flat.size == array.size and np.array_equal(flat, np.arange(flat.size)):
        return Array(array.flat, places.shape)
    if not flat.size:
        return Array(casadi().MX(0, 1), places.shape)
    if array.size == 1:  # casadi makes a row of several entries of a number
        return Array(casadi().repmat(array.flat, flat.size, 1), places.shape)
    return Array(array.flat[flat.tolist()], places.shape)


def spread(array: Array, shape: Shape) -> Array:
    """The array broadcast to a shape."""
    if array.shape == tuple(shape):
        return array
    places = np.arange(array.size).reshape(array.shape)
    return gathered(array, np.broadcast_to(places, shape))


def entrywise(operation: Callable[..., Any], *operands: Any) -> Array:
    """An operation of casadi on arrays of a common shape; numbers are not repeated."""
    arrays = [as_array(operand) for operand in operands]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    size = entries(shape)
    columns = [
        array.flat if array.size == 1 != size else spread(array, shape).flat for array in arrays
    ]
    found = operation(*columns)
    if found.size1() != size:  # all operands were numbers, or the result is empty
        found = casadi().repmat(found, size, 1) if size else casadi().MX(0, 1)
    return Array(dense(found), shape)


def dense(column: Any) -> Any:
    """Without structural zeros."""
    return column if column.is_dense() else casadi().densify(column)


def transposed(array: Array, axes: Sequence[int] | None) -> Array:
    places = np.arange(array.size).reshape(array.shape)
    return gathered(array, np.transpose(places, axes))


def power(base: Any, exponent: Any) -> Array:
    """base ** exponent. Known exponents 0 and 1 have second derivatives at 0 too."""
    known = None if isinstance(exponent, Array) else np.asarray(exponent, dtype=float)
    if known is None or isinstance(base, Array) is False:
        return entrywise(lambda a, b: a**b, base, exponent)
    if known.size and np.all(known == known.flat[0]):
        number = float(known.flat[0])
        shape = np.broadcast_shapes(base.shape, known.shape)
        return entrywise(lambda a: _powered(a, number), spread(base, shape))
    plain = np.isin(known, (0.0, 1.0))
    if not plain.any():
        return entrywise(lambda a, b: a**b, base, known)
    moved = entrywise(lambda a, b: a**b, base, np.where(plain, 2.0, known))
    first = where(np.broadcast_to(known == 1.0, moved.shape), spread(base, moved.shape), moved)
    return where(np.broadcast_to(known == 0.0, moved.shape), 1.0, first)


def _powered(column: Any, exponent: float) -> Any:
    if exponent == 0.0:
        return casadi().MX.ones(column.shape[0], 1)
    return column if exponent == 1.0 else column**exponent


def where(condition: Any, yes: Any, no: Any) -> Array:
    return entrywise(lambda c, a, b: casadi().if_else(c, a, b), condition, yes, no)


def matrix(array: Array) -> Any:
    """A matrix of casadi, whose columns are the rows of the array."""
    rows, columns = array.shape
    return casadi().reshape(array.flat, columns, rows)


def from_matrix(rows: Any, shape: Shape) -> Array:
    """The inverse of `matrix`."""
    return Array(dense(casadi().vec(rows)), shape)


def _transposed_matrix(value: Any) -> Any:
    """The transpose of a matrix as casadi's, sparse for a sparse constant."""
    if is_sparse(value):
        compressed = value.tocsr()
        pattern = casadi().Sparsity(
            compressed.shape[1],
            compressed.shape[0],
            compressed.indptr.tolist(),
            compressed.indices.tolist(),
        )
        return casadi().MX(casadi().DM(pattern, compressed.data.tolist()))
    if isinstance(value, np.ndarray):
        return casadi().MX(casadi().sparsify(casadi().DM(value.T)))
    return matrix(value)


def product(left: Any, right: Any) -> Array:
    """left @ right, as numpy's matmul; constants may be sparse matrices of scipy."""
    if np.ndim(left) > 2 or np.ndim(right) > 2:
        return _stacked_product(as_array(left), as_array(right))
    first = left if np.ndim(left) == 2 else as_array(left)
    second = right if np.ndim(right) == 2 else as_array(right)
    if np.ndim(left) == 1:
        first = Array(first.flat, (1, first.size))
    if np.ndim(right) == 1:
        second = Array(second.flat, (second.size, 1))
    shape = (*np.shape(left)[:-1], *(np.shape(right)[1:]))
    # (left right)' = right' left': no transposes, since columns hold entries in C order
    return from_matrix(
        casadi().mtimes(_transposed_matrix(second), _transposed_matrix(first)), shape
    )


def _stacked_product(left: Array, right: Array) -> Array:
    """Products of stacks of matrices, as products of entries that are added."""
    first = Array(left.flat, (1, *left.shape)) if left.ndim == 1 else left
    second = Array(right.flat, (*right.shape, 1)) if right.ndim == 1 else right
    factors = Array(first.flat, (*first.shape, 1)) * Array(
        second.flat, (*second.shape[:-2], 1, *second.shape[-2:])
    )
    found = total(factors, (factors.ndim - 2,))
    shape = list(found.shape)
    if left.ndim == 1:
        del shape[-2]
    if right.ndim == 1:
        del shape[-1]
    return Array(found.flat, tuple(shape))


def lines(array: Array, axes: Sequence[int]) -> tuple[Any, Shape]:
    """A matrix of casadi with one column for each result of a reduction, and the shape of the results."""
    axes = tuple(axis % array.ndim for axis in axes)
    kept = tuple(axis for axis in range(array.ndim) if axis not in axes)
    shape = tuple(array.shape[axis] for axis in kept)
    length = math.prod(array.shape[axis] for axis in axes)
    ordered = transposed(array, (*kept, *axes))
    return casadi().reshape(ordered.flat, length, entries(shape)), shape


def _axes(array: Array, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(array.ndim))
    return (int(axis),) if isinstance(axis, (int, np.integer)) else tuple(axis)


def total(array: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The sum over axes."""
    array = as_array(array)
    axes = _axes(array, axis)
    columns, shape = lines(array, axes)
    found = from_matrix(casadi().sum1(columns), shape)
    if keepdims:
        numbers = {each % array.ndim for each in axes}
        kept = tuple(1 if i in numbers else n for i, n in enumerate(array.shape))
        found = Array(found.flat, kept)
    return found


def solved(left: Any, right: Any) -> Array:
    """The solution of left @ x == right, two matrices."""
    a, b = as_array(left), as_array(right)
    found = casadi().solve(matrix(a).T, matrix(b).T, LINEAR_SOLVER, LINEAR_OPTIONS)
    return from_matrix(found.T, b.shape)


def einsum(subscripts: str, *arrays: Any) -> Array:
    """Sums of products along labelled axes, pair by pair."""
    inputs, output = subscripts.split("->")
    terms = inputs.split(",")
    labels, found = terms[0], as_array(arrays[0])
    for number, (term, array) in enumerate(zip(terms[1:], arrays[1:], strict=True)):
        later = set(output).union(*terms[number + 2 :])
        labels, found = _pair(labels, found, term, as_array(array), later)
    surplus = tuple(i for i, label in enumerate(labels) if label not in output)
    if surplus:
        found = total(found, surplus)
        labels = "".join(label for label in labels if label in output)
    return transposed(found, [labels.index(label) for label in output])


def _pair(left: str, a: Array, right: str, b: Array, later: set[str]) -> tuple[str, Array]:
    """The contraction of two arrays over the labels that are not used later."""
    lengths = {**dict(zip(left, a.shape, strict=True)), **dict(zip(right, b.shape, strict=True))}
    shared = [label for label in left if label in right]
    summed = [label for label in shared if label not in later]
    if len(summed) == len(shared):  # one product of matrices
        own_left = [label for label in left if label not in shared]
        own_right = [label for label in right if label not in shared]
        rows = _ordered(a, left, own_left, summed, lengths)
        columns = _ordered(b, right, summed, own_right, lengths)
        joined = own_left + own_right
        flat = product(rows, columns)
        return "".join(joined), Array(flat.flat, tuple(lengths[label] for label in joined))
    joined = [*left, *(label for label in right if label not in left)]
    factors = [
        Array(
            transposed(array, [term.index(label) for label in joined if label in term]).flat,
            tuple(lengths[label] if label in term else 1 for label in joined),
        )
        for term, array in ((left, a), (right, b))
    ]
    places = tuple(i for i, label in enumerate(joined) if label in summed)
    found = factors[0] * factors[1]
    kept = "".join(label for label in joined if label not in summed)
    return kept, total(found, places) if places else found


def _ordered(
    array: Array, labels: str, first: list[str], second: list[str], lengths: dict[str, int]
) -> Array:
    """A matrix with the axes `first` as rows and `second` as columns."""
    moved = transposed(array, [labels.index(label) for label in (*first, *second)])
    sides = [math.prod(lengths[label] for label in side) for side in (first, second)]
    return Array(moved.flat, (sides[0], sides[1]))


def log_add_exp(a: Any, b: Any) -> Array:
    """log(exp(a) + exp(b)) without overflow, differentiable where both are equal."""
    a, b = as_array(a), as_array(b)
    largest = where(a >= b, a, b)
    return largest + Namespace.log1p(Namespace.exp(a + b - largest - largest))


def _unary(name: str) -> Callable[[Any], Array]:
    return lambda a: entrywise(getattr(casadi(), name), a)


class _LinearAlgebra:
    solve = staticmethod(solved)

    @staticmethod
    def inv(a: Any) -> Array:
        return solved(a, np.eye(a.shape[0]))


class Namespace:
    """numpy's functions on `Array`, as far as atoms use them."""

    linalg = _LinearAlgebra
    exp = staticmethod(_unary("exp"))
    log = staticmethod(_unary("log"))
    log1p = staticmethod(_unary("log1p"))
    expm1 = staticmethod(_unary("expm1"))
    sqrt = staticmethod(_unary("sqrt"))
    sin = staticmethod(_unary("sin"))
    cos = staticmethod(_unary("cos"))
    tanh = staticmethod(_unary("tanh"))
    logaddexp = staticmethod(log_add_exp)
    power = staticmethod(power)
    where = staticmethod(where)
    matmul = staticmethod(product)
    einsum = staticmethod(einsum)
    sum = staticmethod(total)
    zeros = staticmethod(np.zeros)

    @staticmethod
    def dot(a: Any, b: Any) -> Array:
        return a * b if np.ndim(a) == 0 or np.ndim(b) == 0 else product(a, b)

    @staticmethod
    def mean(a: Array, axis: Any = None) -> Array:
        found = total(a, axis)
        return found * (found.size / a.size)

    @staticmethod
    def cumsum(a: Array, axis: Any = None) -> Array:
        if axis is None:
            return Array(casadi().cumsum(a.flat), (a.size,))
        columns, _ = lines(a, _axes(a, axis))
        number = _axes(a, axis)[0] % a.ndim
        moved = (*(n for i, n in enumerate(a.shape) if i != number), a.shape[number])
        found = from_matrix(casadi().cumsum(columns, 0), moved)
        order = list(range(a.ndim - 1))
        order.insert(number, a.ndim - 1)
        return transposed(found, order)

    @staticmethod
    def reshape(a: Any, shape: Any) -> Array:
        array = as_array(a)
        wanted = np.broadcast_to(np.zeros(()), array.shape).reshape(shape).shape
        return Array(array.flat, wanted)

    @staticmethod
    def transpose(a: Any, axes: Any = None) -> Array:
        return transposed(as_array(a), axes)

    @staticmethod
    def concatenate(arrays: Sequence[Any], axis: int = 0) -> Array:
        parts = [as_array(array) for array in arrays]
        starts = np.cumsum([0, *(part.size for part in parts)])
        places = [
            start + np.arange(part.size).reshape(part.shape)
            for start, part in zip(starts, parts, strict=False)
        ]
        whole = Array(casadi().vertcat(*(part.flat for part in parts)), (int(starts[-1]),))
        return gathered(whole, np.concatenate(places, axis=axis))

    @staticmethod
    def kron(a: Any, b: Any) -> Array:
        a, b = as_array(a), as_array(b)
        (m, n), (p, q) = a.shape, b.shape
        blocks = Array(a.flat, (m, 1, n, 1)) * Array(b.flat, (1, p, 1, q))
        return Array(blocks.flat, (m * p, n * q))
