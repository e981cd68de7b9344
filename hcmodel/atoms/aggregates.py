"""Sums, products, means, running sums: smooth reductions over one or more axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import cones
from hcmodel.atoms.atom import atom
from hcmodel.atoms.autodiff import define_pullback, detached, primitive
from hcmodel.atoms.rules import (
    Arguments,
    Curvature,
    Dependence,
    Domain,
    Monotonicity,
    Params,
    Sign,
    from_sign,
    magnitude_sign,
    same_sign,
)
from hcmodel.atoms.shape_rules import (
    line_length,
    lines,
    reduced,
    with_axes,
    with_axes_of_nonempty,
    with_one_axis,
)
from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape

AFFINE, CONVEX, UNKNOWN = Curvature.AFFINE, Curvature.CONVEX, Curvature.UNKNOWN
# Stands for 0 in logarithms; the smallest number with all its digits.
SMALLEST = float(np.finfo(float).tiny)


def _entries(arguments: Arguments, params: Params) -> int:
    """How many entries one result takes."""
    return line_length(arguments[0].shape, params["axis"])


def _log_sum(arguments: Arguments, params: Params) -> Curvature:
    """A log-sum-exp between logarithms, unless there is one term only."""
    return AFFINE if _entries(arguments, params) <= 1 else CONVEX


@atom(
    shape=reduced,
    prepare=with_axes,
    sign=same_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=AFFINE,
    log_curvature=_log_sum,
    dependence=Dependence.REDUCTION,
    linear_in=(0,),
)
def sum(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """The sum of all entries, or along `axis`."""
    return xp.sum(a, axis=axis)


@atom(
    shape=reduced,
    prepare=with_axes_of_nonempty,
    sign=same_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=AFFINE,
    log_curvature=_log_sum,
    dependence=Dependence.REDUCTION,
    linear_in=(0,),
)
def mean(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """The mean of all entries, or along `axis`."""
    return xp.mean(a, axis=axis)


def _running_shape(name: str, shapes: Any, params: dict[str, Any]) -> tuple[int, ...]:
    if params["axis"] is None:
        return (math.prod(shapes[0]),)
    return tuple(shapes[0])


@atom(
    shape=_running_shape,
    prepare=with_one_axis,
    sign=same_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=AFFINE,
    log_curvature=CONVEX,
    dependence=Dependence.REDUCTION,
    linear_in=(0,),
)
def cumsum(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """Running sums along `axis`, or over all entries in C order."""
    return xp.cumsum(a, axis=axis)


def _product_sign(arguments: Arguments, params: Params) -> Sign:
    """Products of entries >= 0 are so too; otherwise by the parity of their number."""
    sign, factors = arguments[0].sign, _entries(arguments, params)
    if factors == 0:
        return Sign.POSITIVE
    if sign.is_nonnegative or factors % 2 == 1:
        return sign
    return sign.negated if sign.is_nonpositive else Sign.UNKNOWN


def _product_monotonicity(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """By the sign of the product of the other factors."""
    sign, factors = arguments[0].sign, _entries(arguments, params)
    if factors <= 1 or sign.is_nonnegative:
        return (Monotonicity.INCREASING,)
    if not sign.is_nonpositive:
        return (Monotonicity.UNKNOWN,)
    return (from_sign(Sign.POSITIVE if factors % 2 == 1 else Sign.NEGATIVE),)


def _product_curvature(arguments: Arguments, params: Params) -> Curvature:
    """Affine with one factor only."""
    return AFFINE if _entries(arguments, params) <= 1 else UNKNOWN


@primitive
def _product(factors: Any) -> Any:
    """The product along the first axis, of factors that are not 0."""
    return np.prod(factors, axis=0)


def _product_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    (factors,) = args
    return lambda cotangent: [cotangent * answer / factors]


define_pullback(_product, _product_pullback)


@atom(
    shape=reduced,
    prepare=with_axes,
    sign=_product_sign,
    monotonicity=_product_monotonicity,
    curvature=_product_curvature,
    log_curvature=AFFINE,
    dependence=Dependence.REDUCTION,
    degree=_entries,
    magnitudes=True,
    cone_form=cones.PRODUCT,
)
def prod(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """The product of all entries, or along `axis`.

    With zeros among the factors they are multiplied in pairs, pairs of pairs and so on, which stays
    differentiable.
    """
    factors = lines(xp, a, axis)
    if np.all(detached(factors)):
        return _product(factors)
    while len(factors) > 1:
        half = len(factors) // 2
        pairs = factors[:half] * factors[half : 2 * half]
        if len(factors) % 2:
            pairs = xp.concatenate((pairs, factors[2 * half :]), axis=0)
        factors = pairs
    return factors[0]


def _prepare_geo_mean(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    """The weights `p` as a tuple that adds up to 1, one for each entry of a line."""
    params = with_axes_of_nonempty(name, shapes, params)
    length = line_length(shapes[0], params["axis"])
    if params["p"] is None:
        return params
    try:
        weights = np.asarray(params["p"], dtype=float)
    except (TypeError, ValueError, OverflowError):
        weights = np.zeros(0)
    if weights.shape != (length,) or not np.all(weights >= 0) or not 0 < weights.sum() < np.inf:
        raise ModelError(
            f"the weights p of '{name}' are {length} numbers >= 0, not all 0, one for each entry "
            f"that is taken together, not {params['p']!r}"
        )
    return {**params, "p": tuple((weights / weights.sum()).tolist())}


@atom(
    shape=reduced,
    prepare=_prepare_geo_mean,
    static=("p",),
    domain=Domain.NONNEGATIVE,
    sign=magnitude_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=Curvature.CONCAVE,
    log_curvature=AFFINE,
    dependence=Dependence.REDUCTION,
    homogeneous=True,
    infinite_slope=(0,),
    cone_form=cones.GEO_MEAN,
)
def geo_mean(xp: Any, a: Any, p: Any = None, *, axis: Any = None) -> Any:
    """The geometric mean of all entries, or along `axis`; with weights, the product of a[i]^p[i]."""
    factors = lines(xp, a, axis)
    count = len(np.shape(factors)) - 1
    weights = (
        np.full(np.shape(factors)[0], 1.0 / np.shape(factors)[0]) if p is None else np.array(p)
    )
    taken = np.flatnonzero(weights)
    factors, weights = factors[taken], weights[taken].reshape(-1, *(1,) * count)
    logarithms = xp.log(xp.where(factors > 0, factors, SMALLEST))
    inside = xp.where(np.all(detached(factors) >= 0, axis=0), 1.0, float("nan"))
    mean = inside * xp.exp(xp.sum(weights * logarithms, axis=0))
    # where a factor is 0 the mean is, and no tangent has a finite slope
    least = np.min(detached(factors), axis=0)
    edge = xp.sqrt(xp.min(xp.where(least == 0, factors, 1.0), axis=0))
    return xp.where(least == 0, edge, mean)
