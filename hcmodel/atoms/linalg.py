"""Products of matrices and vectors, and what is solved with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import cones
from hcmodel.atoms.algebra import EVERY_ARGUMENT, Exponents, Factor
from hcmodel.atoms.atom import always_sparse, atom
from hcmodel.atoms.autodiff import sparse_times
from hcmodel.atoms.rules import (
    Arguments,
    Contraction,
    Curvature,
    Dependence,
    Domain,
    MatrixKind,
    Monotonicity,
    Params,
    Sign,
    affine_if_constants_nonnegative,
    as_other_factors,
    convex_if_constants_nonnegative,
    from_sign,
    multilinear,
    product_sign,
    signs_product,
)
from hcmodel.atoms.shape_rules import need_square
from hcmodel.errors import ModelError
from hcmodel.expressions.node import Expression
from hcmodel.expressions.shapes import Shape, broadcast
from hcmodel.expressions.sparse_data import Numbers, any_nonzero, dense, is_sparse
from hcmodel.expressions.table import ATOMS
from hcmodel.solvers.algebra.definite import is_definite, is_semidefinite

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE
UNKNOWN = Curvature.UNKNOWN


def _matmul_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    left, right = shapes
    if not left or not right:
        raise ModelError(f"'@' needs vectors or matrices, not shapes {left} and {right}; use *")
    inner = right[0] if len(right) == 1 else right[-2]
    if left[-1] != inner:
        column = f"; as a column the vector needs the shape ({left[0]}, 1): use reshape"
        hint = column if len(left) == 1 else ""
        raise ModelError(
            f"shapes {left} and {right} do not fit in '@': {left[-1]} against {inner}{hint}"
        )
    batch = broadcast(name, (left[:-2], right[:-2]))
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _matmul_dependence(shapes: Sequence[Shape], params: dict[str, Any]) -> Dependence | Contraction:
    kinds = {(1, 1): "j,j->", (1, 2): "j,jk->k", (2, 1): "ij,j->i", (2, 2): "ij,jk->ik"}
    subscripts = kinds.get((len(shapes[0]), len(shapes[1])))
    return Contraction(subscripts) if subscripts else Dependence.DENSE


# By the numbers of axes; the product of a row and a matrix is a column again.
MATMUL_FACTORS = {
    (1, 1): (Factor(0, transposed=True), Factor(1)),
    (1, 2): (Factor(1, transposed=True), Factor(0)),
    (2, 1): (Factor(0), Factor(1)),
    (2, 2): (Factor(0), Factor(1)),
}


def _matmul_factors(arguments: Arguments, params: Params) -> tuple[Factor, ...]:
    """Both arguments; a vector on the left is a row."""
    left, right = arguments
    return MATMUL_FACTORS.get((len(left.shape), len(right.shape)), ())


def _matmul_sign(arguments: Arguments, params: Params) -> Sign:
    """The product of the signs; strict where each sum has a term that is not 0."""
    sign = signs_product(arguments, params)
    if sign not in (Sign.NONNEGATIVE, Sign.NONPOSITIVE):
        return sign
    for place, (constant, other) in enumerate((arguments, arguments[::-1])):
        if constant.value is not None and other.sign.is_strict:
            alone = not other.shape and np.size(constant.value) > 1  # a number times each entry
            if alone or not _in_every_sum(constant.value, place):
                return sign
            return Sign.POSITIVE if sign is Sign.NONNEGATIVE else Sign.NEGATIVE
    return sign


def _in_every_sum(matrix: Numbers, place: int) -> bool:
    """Whether each sum of a product with a matrix on the left (place 0), or right, has an entry of it."""
    if matrix.ndim > 2:
        return False
    if matrix.ndim < 2:
        return any_nonzero(matrix)
    if is_sparse(matrix):
        rows = np.diff(matrix.indptr) > 0  # zeros are not stored
        columns = np.bincount(matrix.indices, minlength=matrix.shape[1]) > 0
        return bool((columns if place else rows).all())
    return bool(np.any(matrix != 0, axis=0 if place else 1).all())


@atom(
    shape=_matmul_shape,
    sign=_matmul_sign,
    monotonicity=as_other_factors,
    curvature=multilinear,
    log_curvature=convex_if_constants_nonnegative,
    dependence=_matmul_dependence,
    linear_in=(0, 1),
    factors=_matmul_factors,
    superlinear=True,
    takes_sparse=always_sparse,
)
def matmul(xp: Any, a: Any, b: Any) -> Any:
    """The matrix product a @ b, as numpy's."""
    if is_sparse(a) or is_sparse(b):
        return _sparse_product(xp, a, b)
    return xp.matmul(a, b)


def _sparse_product(xp: Any, a: Any, b: Any) -> Any:
    """The product with a sparse constant; what multiplies it is dense, perhaps traced, or sparse."""
    if is_sparse(a) and is_sparse(b):
        return a @ b
    other = np.ndim(b if is_sparse(a) else a)
    if other == 0:
        return dense(a) * dense(b)
    if other > 2:  # a stack of matrices
        return xp.matmul(dense(a), dense(b))
    if is_sparse(a):
        return sparse_times(a, b)
    if np.ndim(a) == 1:
        return sparse_times(b.T, a)
    return xp.transpose(sparse_times(b.T, xp.transpose(a)))


def _dot_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    left, right = shapes
    if not left or not right:
        return left or right
    if len(left) > 2 or len(right) > 2:
        raise ModelError(f"'dot' takes vectors and matrices, not shapes {left} and {right}")
    return _matmul_shape(name, shapes, params)


def _dot_dependence(shapes: Sequence[Shape], params: dict[str, Any]) -> Dependence | Contraction:
    if not shapes[0] or not shapes[1]:
        return Dependence.ELEMENTWISE
    return _matmul_dependence(shapes, params)


def _dot_exponents(arguments: Arguments, params: Params) -> Exponents | None:
    """Of a product with a number."""
    return None if all(argument.shape for argument in arguments) else (1.0, 1.0)


@atom(
    shape=_dot_shape,
    sign=_matmul_sign,
    monotonicity=as_other_factors,
    curvature=multilinear,
    log_curvature=convex_if_constants_nonnegative,
    dependence=_dot_dependence,
    linear_in=(0, 1),
    exponents=_dot_exponents,
    factors=_matmul_factors,
    superlinear=True,
    takes_sparse=always_sparse,
)
def dot(xp: Any, a: Any, b: Any) -> Any:
    """The inner product of vectors, or the matrix product, as numpy's dot."""
    if is_sparse(a) or is_sparse(b):
        return _sparse_product(xp, a, b)
    return a * b if np.ndim(a) == 0 or np.ndim(b) == 0 else xp.matmul(a, b)


def _outer_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    if any(len(shape) > 1 for shape in shapes):
        raise ModelError(f"'outer' takes vectors, not shapes {shapes[0]} and {shapes[1]}")
    return tuple(math.prod(shape) for shape in shapes)


def _outer_dependence(shapes: Sequence[Shape], params: dict[str, Any]) -> Dependence | Contraction:
    return Contraction("i,j->ij") if all(len(s) == 1 for s in shapes) else Dependence.DENSE


def _outer_factors(arguments: Arguments, params: Params) -> tuple[Factor, ...]:
    """A column times a row."""
    vectors = all(len(argument.shape) == 1 for argument in arguments)
    return (Factor(0), Factor(1, transposed=True)) if vectors else ()


@atom(
    shape=_outer_shape,
    sign=signs_product,
    monotonicity=as_other_factors,
    curvature=multilinear,
    log_curvature=affine_if_constants_nonnegative,
    dependence=_outer_dependence,
    linear_in=(0, 1),
    factors=_outer_factors,
)
def outer(xp: Any, a: Any, b: Any) -> Any:
    """All products a[i] * b[j] of two vectors."""
    return xp.reshape(a, (-1, 1)) * xp.reshape(b, (1, -1))


def _kron_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    if any(len(shape) != 2 for shape in shapes):
        raise ModelError(f"'kron' takes two matrices, not shapes {shapes[0]} and {shapes[1]}")
    return (shapes[0][0] * shapes[1][0], shapes[0][1] * shapes[1][1])


def _kron_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """The weaker of the two kinds."""
    return min(argument.matrix for argument in arguments)


def _kron_entries(arguments: Sequence[Expression], params: Params) -> Expression:
    """Products of entries, in blocks."""
    (m, n), (p, q) = (each.shape for each in arguments)
    move = ATOMS["reshape"]
    blocks = move(arguments[0], (m, 1, n, 1)) * move(arguments[1], (1, p, 1, q))
    return move(blocks, (m * p, n * q))


@atom(
    shape=_kron_shape,
    sign=signs_product,
    monotonicity=as_other_factors,
    curvature=multilinear,
    log_curvature=affine_if_constants_nonnegative,
    linear_in=(0, 1),
    transposes=True,
    definiteness=_kron_definiteness,
    definition=_kron_entries,
)
def kron(xp: Any, a: Any, b: Any) -> Any:
    """The Kronecker product of two matrices."""
    (m, n), (p, q) = np.shape(a), np.shape(b)
    blocks = xp.reshape(a, (m, 1, n, 1)) * xp.reshape(b, (1, p, 1, q))
    return xp.reshape(blocks, (m * p, n * q))


def _prepare_einsum(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    """Subscripts without blanks and with an explicit result, checked against the shapes."""
    written = params["subscripts"]
    if not isinstance(written, str) or "." in written:
        raise ModelError(f"einsum takes subscripts such as 'ij,jk->ik' (no ...), not {written!r}")
    inputs, arrow, output = written.replace(" ", "").partition("->")
    if not arrow:
        output = "".join(sorted({c for c in inputs if c.isalpha() and inputs.count(c) == 1}))
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ModelError(f"einsum '{written}' names {len(terms)} arrays and got {len(shapes)}")
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ModelError(f"einsum '{written}': '{term}' does not fit shape {shape}")
        if len(set(term)) < len(term):
            raise ModelError(f"einsum '{written}': '{term}' repeats a label; take hc.diag first")
        for label, length in zip(term, shape, strict=True):
            if lengths.setdefault(label, length) != length:
                raise ModelError(
                    f"einsum '{written}': label {label} has lengths {lengths[label]} and {length}"
                )
    if len(set(output)) < len(output) or not set(output) <= set(lengths):
        raise ModelError(
            f"einsum '{written}': '{output}' must name labels of the inputs, each once"
        )
    return {"subscripts": f"{inputs}->{output}"}


def _einsum_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    inputs, output = params["subscripts"].split("->")
    lengths: dict[str, int] = {}
    for term, shape in zip(inputs.split(","), shapes, strict=True):
        lengths.update(zip(term, shape, strict=True))
    return tuple(lengths[label] for label in output)


def _einsum_factors(arguments: Arguments, params: Params) -> tuple[Factor, ...]:
    """Two matrices whose product is written with labels."""
    inputs, output = params["subscripts"].split("->")
    terms = inputs.split(",")
    if len(terms) != 2 or len(output) != 2 or any(len(term) != 2 for term in terms):
        return ()
    # The rows of the result belong to one of the factors, its columns to the other.
    for left, right in ((0, 1), (1, 0)):
        shared = set(terms[0]) & set(terms[1]) - set(output)
        if len(shared) == 1 and output[0] in terms[left] and output[1] in terms[right]:
            return (
                Factor(left, transposed=terms[left][1] == output[0]),
                Factor(right, transposed=terms[right][0] == output[1]),
            )
    return ()


@atom(
    shape=_einsum_shape,
    prepare=_prepare_einsum,
    leading="subscripts",
    sign=signs_product,
    monotonicity=as_other_factors,
    curvature=multilinear,
    log_curvature=convex_if_constants_nonnegative,
    dependence=lambda shapes, params: Contraction(params["subscripts"]),
    linear_in=EVERY_ARGUMENT,
    factors=_einsum_factors,
    superlinear=True,
)
def einsum(xp: Any, *arrays: Any, subscripts: str) -> Any:
    """Sums of products along labelled axes, as numpy's: einsum("ij,jk->ik", a, b)."""
    return xp.einsum(subscripts, *arrays)


def _trace_sign(arguments: Arguments, params: Params) -> Sign:
    """That of the entries; positive for a definite matrix."""
    return Sign.POSITIVE if arguments[0].definite else arguments[0].sign


def _trace_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    need_square(name, shapes[0])
    return ()


@atom(
    shape=_trace_shape,
    sign=_trace_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=AFFINE,
    log_curvature=CONVEX,
    dependence=Contraction("ii->"),
    linear_in=(0,),
)
def trace(xp: Any, a: Any) -> Any:
    """The sum of the diagonal of a square matrix."""
    numbers = np.arange(np.shape(a)[0])
    return xp.sum(a[numbers, numbers])


def _quad_form_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    vector, matrix = shapes
    need_square(name, matrix)
    if vector != matrix[:1]:
        raise ModelError(
            f"'quad_form' takes x of shape ({matrix[0]},) with P of {matrix}, not {vector}"
        )
    return ()


def _definiteness(matrix: np.ndarray) -> Sign:
    """The sign of the quadratic form of a vector that is not 0, to rounding."""
    symmetric = (matrix + matrix.T) / 2
    if is_semidefinite(symmetric):
        return Sign.POSITIVE if is_definite(symmetric) else Sign.NONNEGATIVE
    if is_semidefinite(-symmetric):
        return Sign.NEGATIVE if is_definite(-symmetric) else Sign.NONPOSITIVE
    return Sign.UNKNOWN


def _quad_form_sign(arguments: Arguments, params: Params) -> Sign:
    """Entry by entry, or by definiteness."""
    vector, matrix = arguments
    found = product_sign([vector.sign, vector.sign, matrix.sign])
    if found.is_strict:
        return found
    known = Sign.POSITIVE if matrix.definite else Sign.UNKNOWN
    if matrix.value is not None and not matrix.definite:
        known = _definiteness(matrix.value)
    if known is Sign.UNKNOWN:
        return found
    if known.is_strict and not vector.sign.is_strict:
        return Sign.NONNEGATIVE if known is Sign.POSITIVE else Sign.NONPOSITIVE
    return known


def _quad_form_monotonicity(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """In x as the entries of P x; in P as the products x[i] x[j]."""
    vector, matrix = arguments
    same_sides = product_sign([vector.sign, vector.sign])
    return from_sign(product_sign([vector.sign, matrix.sign])), from_sign(same_sides)


def _quad_form_curvature(arguments: Arguments, params: Params) -> Curvature:
    """Linear in P; in x convex or concave as P is definite."""
    vector, matrix = arguments
    if vector.constant:
        return AFFINE
    if matrix.value is None:
        return UNKNOWN
    sign = _definiteness(matrix.value)
    if sign is Sign.UNKNOWN:
        return UNKNOWN
    return CONVEX if sign.is_nonnegative else CONCAVE


def _quad_form_degree(arguments: Arguments, params: Params) -> int:
    """Two in x, one in P."""
    return 2 * (not arguments[0].constant) + (not arguments[1].constant)


@atom(
    shape=_quad_form_shape,
    sign=_quad_form_sign,
    monotonicity=_quad_form_monotonicity,
    curvature=_quad_form_curvature,
    log_curvature=convex_if_constants_nonnegative,
    linear_in=(1,),
    degree=_quad_form_degree,
    factors=(Factor(0, transposed=True), Factor(1), Factor(0)),
    cone_form=cones.QUAD_FORM,
)
def quad_form(xp: Any, x: Any, P: Any) -> Any:
    """The quadratic form x.T @ P @ x."""
    return xp.dot(x, xp.dot(P, x))


def _over_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    """An array and a number in, a number out."""
    if shapes[1] != ():
        raise ModelError(f"'{name}' divides by one number, not by shape {shapes[1]}")
    return ()


def _square_sum_sign(arguments: Arguments, params: Params) -> Sign:
    """Positive where an entry of X is never 0, else not negative."""
    above = arguments[0]
    if above.sign is Sign.ZERO:
        return Sign.ZERO
    nonzero = above.sign.is_strict or (above.value is not None and any_nonzero(above.value))
    return Sign.POSITIVE if nonzero else Sign.NONNEGATIVE


def _over_monotonicity(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """In X rising for entries >= 0, falling for entries <= 0; falling in y."""
    return from_sign(arguments[0].sign), Monotonicity.DECREASING


def _over_in_log(arguments: Arguments, params: Params) -> Curvature:
    """log(k / y) = log k - log y is convex in y."""
    return CONVEX if arguments[0].constant else UNKNOWN


@atom(
    shape=_over_shape,
    domain=(Domain.REALS, Domain.POSITIVE),
    sign=_square_sum_sign,
    monotonicity=_over_monotonicity,
    curvature=CONVEX,
    log_curvature=CONVEX,
    plain_to_log=_over_in_log,
    homogeneous=True,
    infinite_slope=(1,),
    cone_form=cones.QUAD_OVER_LIN,
    definition=lambda arguments, params: ATOMS["sum"](arguments[0] * arguments[0]) / arguments[1],
)
def quad_over_lin(xp: Any, X: Any, y: Any) -> Any:
    """The sum of the squares of all entries of X, divided by a positive number y."""
    return xp.sum(X * X) / xp.where(y > 0, y, float("nan"))
