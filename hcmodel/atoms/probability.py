"""Atoms from probability and information: soft maxima, entropy, relative entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import cones
from hcmodel.atoms.atom import atom
from hcmodel.atoms.autodiff import detached
from hcmodel.atoms.enclosures import within
from hcmodel.atoms.rules import (
    Arguments,
    Curvature,
    Dependence,
    Domain,
    Monotonicity,
    Params,
    Sign,
)
from hcmodel.atoms.shape_rules import (
    elementwise,
    reduced,
    same,
    spread,
    with_axes,
    with_axes_of_nonempty,
)
from hcmodel.expressions.node import Expression
from hcmodel.expressions.table import ATOMS


def _shift(a: Any, axis: Any) -> Any:
    """The largest entries, as plain numbers: they cancel, so no derivative passes through."""
    largest = np.max(detached(a), axis=axis, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


def _logsumexp_sign(arguments: Arguments, params: Params) -> Sign:
    """Not below the largest entry."""
    sign = arguments[0].sign
    return sign if sign.is_nonnegative and sign is not Sign.ZERO else Sign.UNKNOWN


# The smallest normal double, about: at 0, where a log a is 0 and log a is not a number, this takes the
# place of a inside of the logarithm.
SMALLEST = 2.2e-308


def _divergence(a: Expression, b: Expression) -> Expression:
    """a log(a/b), by logarithms."""
    return a * (ATOMS["log"](a) - ATOMS["log"](b))


def _quotient_of_exponentials(
    arguments: Sequence[Expression], params: dict[str, Any]
) -> Expression:
    """exp(a) over its sum along an axis."""
    weights, axis = ATOMS["exp"](arguments[0]), params["axis"]
    kept = np.sum(np.zeros(weights.shape), axis=axis, keepdims=True).shape
    return weights / ATOMS["reshape"](ATOMS["sum"](weights, axis=axis), kept)


def _logarithm_of_exponentials(
    arguments: Sequence[Expression], params: dict[str, Any]
) -> Expression:
    """The logarithm of the sum of exp(a) along an axis."""
    return ATOMS["log"](ATOMS["sum"](ATOMS["exp"](arguments[0]), axis=params["axis"]))


@atom(
    shape=reduced,
    prepare=with_axes_of_nonempty,
    sign=_logsumexp_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=Curvature.CONVEX,
    log_to_plain=Curvature.CONVEX,
    dependence=Dependence.REDUCTION,
    cone_form=cones.LOG_SUM_EXP,
    definition=_logarithm_of_exponentials,
)
def logsumexp(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """log of the sum of exponentials, of all entries or along `axis`, without overflow."""
    shift = _shift(a, axis)
    return xp.log(xp.sum(xp.exp(a - shift), axis=axis)) + np.squeeze(shift, axis=axis)


@atom(
    shape=same,
    prepare=with_axes,
    sign=Sign.POSITIVE,
    plain_to_log=Curvature.CONCAVE,
    dependence=Dependence.REDUCTION,
    enclosure=within(0.0, 1.0),
    cone_form=cones.SOFT_MAX,
    definition=_quotient_of_exponentials,
)
def softmax(xp: Any, a: Any, *, axis: Any = None) -> Any:
    """exp(a) over its sum, over all entries or along `axis`, without overflow."""
    weights = xp.exp(a - _shift(a, axis))
    return weights / xp.sum(weights, axis=axis, keepdims=True)


@atom(
    shape=elementwise,
    domain=Domain.NONNEGATIVE,
    curvature=Curvature.CONCAVE,
    log_curvature=Curvature.CONCAVE,
    plain_to_log=Curvature.CONCAVE,
    dependence=Dependence.ELEMENTWISE,
    infinite_slope=(0,),
    cone_form=cones.ENTROPY,
    definition=lambda arguments, params: -arguments[0] * ATOMS["log"](arguments[0]),
)
def entr(xp: Any, a: Any) -> Any:
    """The entropy term -a log a, entry by entry; 0 at 0."""
    # At 0 the slope is infinite; that of the smallest number there is, 708, still points the right way.
    positive = xp.where(a > SMALLEST, a, SMALLEST)
    return -xp.where(a >= 0, a, float("nan")) * xp.log(positive)


def _steep(xp: Any, a: Any, b: Any) -> Any:
    """0 everywhere, with an infinite slope by a where a = b = 0: there is no tangent there."""
    corner = (a == 0) & (b == 0)
    return xp.where(corner, xp.sqrt(xp.where(corner, a, 1.0)), 0.0)


@atom(
    shape=elementwise,
    domain=(Domain.NONNEGATIVE, Domain.POSITIVE),
    sign=Sign.NONNEGATIVE,
    curvature=Curvature.CONVEX,
    dependence=Dependence.ELEMENTWISE,
    infinite_slope=(0, 1),
    cone_form=cones.DIVERGENCE,
    definition=lambda arguments, params: _divergence(*arguments) - arguments[0] + arguments[1],
)
def kl_div(xp: Any, a: Any, b: Any) -> Any:
    """The relative entropy a log(a/b) - a + b, entry by entry; infinite outside a >= 0, b > 0."""
    a, b = spread((a, b))
    both = (a >= 0) & (b > 0)
    positive = xp.where(both & (a > SMALLEST), a, SMALLEST)  # as in entr
    inside = a * (xp.log(positive) - xp.log(xp.where(both, b, 1.0))) - a + b
    edge = xp.where((a == 0) & (b >= 0), b + _steep(xp, a, b), float("inf"))
    outside = xp.where((a != a) | (b != b), float("nan"), edge)
    return xp.where(both, inside, outside)


@atom(
    shape=elementwise,
    domain=(Domain.NONNEGATIVE, Domain.POSITIVE),
    monotonicity=(Monotonicity.UNKNOWN, Monotonicity.DECREASING),
    curvature=Curvature.CONVEX,
    log_curvature=Curvature.CONCAVE,
    dependence=Dependence.ELEMENTWISE,
    homogeneous=True,
    infinite_slope=(0, 1),
    cone_form=cones.RELATIVE_ENTROPY,
    definition=lambda arguments, params: _divergence(*arguments),
)
def rel_entr(xp: Any, a: Any, b: Any) -> Any:
    """a log(a/b), entry by entry; infinite outside a >= 0, b > 0."""
    a, b = spread((a, b))
    both = (a >= 0) & (b > 0)
    positive = xp.where(both & (a > SMALLEST), a, SMALLEST)  # as in entr
    inside = a * (xp.log(positive) - xp.log(xp.where(both, b, 1.0)))
    edge = xp.where((a == 0) & (b >= 0), _steep(xp, a, b), float("inf"))
    outside = xp.where((a != a) | (b != b), float("nan"), edge)
    return xp.where(both, inside, outside)
