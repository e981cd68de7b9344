"""Atoms with kinks: absolute value, maxima and minima, norms.

At a kink each picks one active piece, and its derivative is that piece's: `abs` takes the right
one, `max` and `min` the first active entry in C order, `maximum` and `minimum` the first active
argument, and the Euclidean norm has derivative 0 at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import cones, enclosures
from hcmodel.atoms.aggregates import sum as total
from hcmodel.atoms.algebra import Pieces, Row
from hcmodel.atoms.atom import atom, sparse_with_numbers
from hcmodel.atoms.autodiff import detached
from hcmodel.atoms.rules import (
    Arguments,
    Curvature,
    Dependence,
    Kind,
    Monotonicity,
    Params,
    Sign,
    all_nonnegative,
    as_argument_sign,
    magnitude_sign,
    same_sign,
)
from hcmodel.atoms.shape_rules import (
    elementwise,
    line_length,
    lines,
    reduced,
    spread,
    with_axes,
    with_axes_of_nonempty,
)
from hcmodel.atoms.structure import concatenate, reshape, transpose
from hcmodel.errors import ModelError
from hcmodel.expressions.node import Constant, Expression
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import is_sparse, positive_part

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE
INCREASING = Monotonicity.INCREASING


def _absolute_curvature(arguments: Arguments, params: Params) -> Curvature:
    """Affine where the sign is known."""
    sign = arguments[0].sign
    return AFFINE if sign.is_nonnegative or sign.is_nonpositive else CONVEX


def _both_signs(arguments: Sequence[Expression], t: Expression) -> list[Row]:
    """a <= t and -a <= t."""
    return [(arguments[0], t), (-arguments[0], t)]


def _absolute_pieces(arguments: Arguments, params: Params) -> Pieces:
    """The least t with a <= t and -a <= t."""
    return Pieces(above=True, rows=_both_signs, monotone=False)


@atom(
    shape=elementwise,
    sign=magnitude_sign,
    monotonicity=as_argument_sign,
    curvature=_absolute_curvature,
    log_curvature=AFFINE,
    kind=Kind.POLYHEDRAL,
    homogeneous=True,
    magnitudes=True,
    pieces=_absolute_pieces,
    dependence=Dependence.ELEMENTWISE,
    cone_form=cones.ABSOLUTE,
)
def abs(xp: Any, a: Any) -> Any:
    """The absolute value, entry by entry."""
    return xp.where(a >= 0, a, -a)


def _largest_sign(arguments: Arguments, params: Params) -> Sign:
    """The sign of the largest argument."""
    signs = {argument.sign for argument in arguments}
    if Sign.POSITIVE in signs:
        return Sign.POSITIVE
    if signs == {Sign.NEGATIVE}:
        return Sign.NEGATIVE
    if all(sign.is_nonpositive for sign in signs):
        return Sign.ZERO if Sign.ZERO in signs else Sign.NONPOSITIVE
    if any(sign.is_nonnegative for sign in signs):
        return Sign.NONNEGATIVE
    return Sign.UNKNOWN


def _smallest_sign(arguments: Arguments, params: Params) -> Sign:
    """The sign of the smallest argument."""
    negated = [type(a)(a.shape, a.sign.negated, a.constant) for a in arguments]
    return _largest_sign(negated, params).negated


def _alongside(t: Expression, arguments: Arguments, params: Params) -> Expression:
    """t in a shape that broadcasts against the array that is reduced along an axis."""
    axis = params.get("axis")
    if axis is None:
        return t
    shape = arguments[0].shape
    return reshape(t, tuple(1 if i in axis else length for i, length in enumerate(shape)))


def _largest_pieces(arguments: Arguments, params: Params) -> Pieces:
    """The least t that is not below any entry."""

    def rows(operands: Sequence[Expression], t: Expression) -> list[Row]:
        above = _alongside(t, arguments, params)
        return [(operand, above) for operand in operands]

    return Pieces(above=True, rows=rows, monotone=True)


def _smallest_pieces(arguments: Arguments, params: Params) -> Pieces:
    """The largest t that is not above any entry."""

    def rows(operands: Sequence[Expression], t: Expression) -> list[Row]:
        below = _alongside(t, arguments, params)
        return [(below, operand) for operand in operands]

    return Pieces(above=False, rows=rows, monotone=True)


def _cut_at_zero(values: Sequence[Any]) -> bool:
    """Whether the values are a sparse matrix and 0, so that the result is as sparse."""
    others = [value for value in values if not is_sparse(value)]
    return sparse_with_numbers(values) and len(others) == 1 and bool(others[0] == 0)


@atom(
    shape=elementwise,
    sign=_largest_sign,
    monotonicity=INCREASING,
    curvature=CONVEX,
    log_curvature=CONVEX,
    log_to_plain=CONVEX,
    kind=Kind.POLYHEDRAL,
    commutative=True,
    homogeneous=True,
    keeps_support=all_nonnegative,
    pieces=_largest_pieces,
    dependence=Dependence.ELEMENTWISE,
    takes_sparse=_cut_at_zero,
    cone_form=cones.MAXIMUM,
)
def maximum(xp: Any, *arrays: Any) -> Any:
    """The largest of several arrays, entry by entry."""
    if any(map(is_sparse, arrays)):
        return positive_part(next(array for array in arrays if is_sparse(array)))
    largest, *others = spread(arrays)
    for array in others:
        # a NaN on either side goes on
        largest = xp.where((largest >= array) | (largest != largest), largest, array)
    return largest


@atom(
    shape=elementwise,
    sign=_smallest_sign,
    monotonicity=INCREASING,
    curvature=CONCAVE,
    log_curvature=CONCAVE,
    plain_to_log=CONCAVE,
    kind=Kind.POLYHEDRAL,
    commutative=True,
    homogeneous=True,
    keeps_support=all_nonnegative,
    pieces=_smallest_pieces,
    dependence=Dependence.ELEMENTWISE,
    cone_form=cones.MINIMUM,
)
def minimum(xp: Any, *arrays: Any) -> Any:
    """The smallest of several arrays, entry by entry."""
    smallest, *others = spread(arrays)
    for array in others:
        smallest = xp.where((smallest <= array) | (smallest != smallest), smallest, array)
    return smallest


def _picked(entries: Any, places: np.ndarray) -> Any:
    """The entry of each line at its place."""
    rest = np.indices(places.shape, sparse=True)
    return entries[(places, *rest)]


@atom(
    shape=reduced,
    prepare=with_axes_of_nonempty,
    sign=same_sign,
    monotonicity=INCREASING,
    curvature=CONVEX,
    log_curvature=CONVEX,
    log_to_plain=CONVEX,
    kind=Kind.POLYHEDRAL,
    homogeneous=True,
    keeps_support=all_nonnegative,
    pieces=_largest_pieces,
    dependence=Dependence.REDUCTION,
    cone_form=cones.LARGEST,
)
def max(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """The largest entry, of all or along `axis`; for several arrays use maximum."""
    entries = lines(xp, a, axis)
    return _picked(entries, np.asarray(np.argmax(detached(entries), axis=0)))


@atom(
    shape=reduced,
    prepare=with_axes_of_nonempty,
    sign=same_sign,
    monotonicity=INCREASING,
    curvature=CONCAVE,
    log_curvature=CONCAVE,
    plain_to_log=CONCAVE,
    kind=Kind.POLYHEDRAL,
    homogeneous=True,
    keeps_support=all_nonnegative,
    pieces=_smallest_pieces,
    dependence=Dependence.REDUCTION,
    cone_form=cones.SMALLEST,
)
def min(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """The smallest entry, of all or along `axis`; for several arrays use minimum."""
    entries = lines(xp, a, axis)
    return _picked(entries, np.asarray(np.argmin(detached(entries), axis=0)))


def _prepare_largest(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    params = with_axes_of_nonempty(name, shapes, params)
    k, length = params["k"], line_length(shapes[0], params["axis"])
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 1 <= k <= length:
        raise ModelError(
            f"'{name}' adds the k largest of {length} entries; k is an integer from 1 to {length}, "
            f"not {k!r}"
        )
    return {**params, "k": int(k)}


def _largest_sum_pieces(arguments: Arguments, params: Params) -> Pieces:
    """The least k·q + Σ s with a <= q + s and s >= 0; q is the k-th largest entry."""
    shape, axis, k = arguments[0].shape, params["axis"], params["k"]
    axes = tuple(range(len(shape))) if axis is None else tuple(axis)
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    lengths = (line_length(shape, axis), *(shape[i] for i in kept))

    def entries(operand: Expression) -> Expression:
        return reshape(transpose(operand, axes=(*axes, *kept)), lengths)

    def bounded(operands: Sequence[Expression]) -> Expression:
        a = operands[0]
        level = sum_largest(a, k, axis=axis)
        if k > 1:
            level = level - sum_largest(a, k - 1, axis=axis)
        above = maximum(entries(a) - level, 0.0)
        return concatenate([reshape(level, (1, *lengths[1:])), above], axis=0)

    def rows(operands: Sequence[Expression], t: Expression) -> list[Row]:
        return [(entries(operands[0]), t[0] + t[1:]), (Constant(0.0), t[1:])]

    return Pieces(
        above=True,
        rows=rows,
        monotone=True,
        bounded=bounded,
        value=lambda t: k * t[0] + total(t[1:], axis=0),
    )


@atom(
    shape=reduced,
    prepare=_prepare_largest,
    static=("k",),
    sign=same_sign,
    monotonicity=INCREASING,
    curvature=CONVEX,
    log_curvature=CONVEX,
    kind=Kind.POLYHEDRAL,
    homogeneous=True,
    keeps_support=all_nonnegative,
    pieces=_largest_sum_pieces,
    dependence=Dependence.REDUCTION,
    cone_form=cones.SUM_LARGEST,
)
def sum_largest(xp: Any, a: Any, k: int, *, axis: Any = None) -> Any:
    """The sum of the k largest entries, of all or along `axis`."""
    entries = lines(xp, a, axis)
    order = np.argsort(-np.asarray(detached(entries)), axis=0, kind="stable")[:k]
    rest = np.indices(order.shape, sparse=True)[1:]
    return xp.sum(entries[(order, *rest)], axis=0)


def _prepare_norm(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    p, axis = params["p"], params["axis"]
    whole_matrix = axis is None and len(shapes[0]) == 2
    if p is None:
        p = "fro" if whole_matrix else 2
    if isinstance(p, str) and p == "inf":  # as CVXPY allows
        p = np.inf
    if not isinstance(p, (str, int, float, np.number)) or isinstance(p, complex):
        raise ModelError(f"norm takes p >= 1, inf, or 'fro' for matrices, not {p!r}")
    if (p == "fro") != whole_matrix:
        raise ModelError(
            f"norm with p={p!r} does not fit shape {shapes[0]} and axis={axis!r}: a whole matrix "
            "has p='fro', the Euclidean norm of its entries; for other p give axis=… or reshape to "
            "a vector"
        )
    if not whole_matrix:
        if isinstance(p, str) or not p >= 1:
            raise ModelError(f"norm takes p >= 1, inf, or 'fro' for matrices, not {p!r}")
        p = _finite_or_infinite(p)
    return {**with_axes(name, shapes, params), "p": p}


def _finite_or_infinite(p: Any) -> float:
    try:
        return float(p)
    except OverflowError:
        raise ModelError("the p of a norm is larger than any float; write np.inf") from None


def _norm_kind(arguments: Arguments, params: Params) -> Kind:
    """1 and inf are polyhedral; the others are smooth but for one point."""
    return Kind.POLYHEDRAL if params["p"] in (1.0, np.inf) else Kind.KINKED


def _norm_enclosure(ranges: enclosures.Ranges) -> enclosures.Interval:
    """By monotonicity where the signs are known, else up to the norm of the largest sizes."""
    if Monotonicity.UNKNOWN not in ranges.moves:
        return enclosures.derived(ranges)
    low, high = ranges.inside[0]
    largest = ranges.value(np.maximum(np.abs(low), np.abs(high)))
    return enclosures.outward(enclosures.ordered(np.zeros(()), largest))


def _norm_pieces(arguments: Arguments, params: Params) -> Pieces | None:
    """Of p = inf the least t above all |a[i]|, of p = 1 the sum of such bounds, one for each entry."""
    if params["p"] == 1.0:
        return Pieces(
            above=True,
            rows=_both_signs,
            monotone=False,
            bounded=lambda operands: abs(operands[0]),
            value=lambda t: total(t, axis=params["axis"]),
        )
    if params["p"] != np.inf:
        return None

    def rows(operands: Sequence[Expression], t: Expression) -> list[Row]:
        return _both_signs(operands, _alongside(t, arguments, params))

    return Pieces(above=True, rows=rows, monotone=False)


@atom(
    shape=reduced,
    prepare=_prepare_norm,
    static=("p",),
    sign=magnitude_sign,
    monotonicity=as_argument_sign,
    curvature=CONVEX,
    log_curvature=CONVEX,
    kind=_norm_kind,
    homogeneous=True,
    enclosure=_norm_enclosure,
    pieces=_norm_pieces,
    dependence=Dependence.REDUCTION,
    cone_form=cones.NORM,
)
def norm(xp: Any, a: Any, p: Any = None, *, axis: Any = None) -> Any:
    """The p-norm (1, 2, inf, any p >= 1, "fro"), of all entries or along `axis`; 2 by default."""
    if p in (2.0, "fro"):
        return _root(xp, xp.sum(a * a, axis=axis), 0.5)
    sizes = abs.function(xp, a)
    if p == 1.0:
        return xp.sum(sizes, axis=axis)
    if p == np.inf:
        return max.function(xp, sizes, axis=axis) if np.size(detached(a)) else 0.0
    return _root(xp, xp.sum(sizes**p, axis=axis), 1.0 / p)


def _root(xp: Any, total: Any, exponent: float) -> Any:
    """total ** exponent with derivative 0 where total is 0; NaN goes on."""
    nonzero = total != 0
    return xp.where(nonzero, xp.where(nonzero, total, 1.0) ** exponent, 0.0)
