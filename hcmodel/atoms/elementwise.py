"""Smooth functions of one number, applied entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import cones
from hcmodel.atoms.algebra import Inverse
from hcmodel.atoms.atom import atom
from hcmodel.atoms.enclosures import within
from hcmodel.atoms.rules import (
    Arguments,
    Curvature,
    Dependence,
    Domain,
    Monotonicity,
    Params,
    Rule,
    Sign,
    as_argument_sign,
    bends_at_zero,
    magnitude_sign,
    same_sign,
)
from hcmodel.atoms.shape_rules import elementwise
from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE
INCREASING, DECREASING = Monotonicity.INCREASING, Monotonicity.DECREASING
ENTRYWISE = Dependence.ELEMENTWISE


def everywhere(inverse: Inverse) -> Rule[Inverse | None]:
    """The rule of an atom that has this inverse on its whole domain."""
    return lambda arguments, params: inverse


@atom(
    shape=elementwise,
    sign=Sign.POSITIVE,
    monotonicity=INCREASING,
    curvature=CONVEX,
    log_curvature=CONVEX,
    log_to_plain=CONVEX,
    plain_to_log=AFFINE,
    dependence=ENTRYWISE,
    inverse=everywhere(lambda xp, result: xp.log(result)),
    cone_form=cones.EXP,
)
def exp(xp: Any, a: Any) -> Any:
    """The exponential, entry by entry."""
    return xp.exp(a)


@atom(
    shape=elementwise,
    domain=Domain.POSITIVE,
    monotonicity=INCREASING,
    curvature=CONCAVE,
    log_curvature=CONCAVE,
    log_to_plain=AFFINE,
    plain_to_log=CONCAVE,
    dependence=ENTRYWISE,
    inverse=everywhere(lambda xp, result: xp.exp(result)),
    infinite_slope=(0,),
    cone_form=cones.LOG,
)
def log(xp: Any, a: Any) -> Any:
    """The natural logarithm, entry by entry."""
    return xp.log(a)


@atom(
    shape=elementwise,
    domain=Domain.ABOVE_MINUS_ONE,
    sign=same_sign,
    monotonicity=INCREASING,
    curvature=CONCAVE,
    log_curvature=CONCAVE,
    log_to_plain=CONVEX,
    plain_to_log=CONCAVE,
    dependence=ENTRYWISE,
    inverse=everywhere(lambda xp, result: xp.expm1(result)),
    cone_form=cones.LOG_OF_ONE_PLUS,
    definition=lambda arguments, params: ATOMS["log"](1.0 + arguments[0]),
)
def log1p(xp: Any, a: Any) -> Any:
    """log(1 + a), entry by entry, exact for small a."""
    return xp.log1p(a)


@atom(
    shape=elementwise,
    domain=Domain.NONNEGATIVE,
    sign=magnitude_sign,
    monotonicity=INCREASING,
    curvature=CONCAVE,
    log_curvature=AFFINE,
    log_to_plain=CONVEX,
    plain_to_log=CONCAVE,
    dependence=ENTRYWISE,
    exponents=(0.5,),
    inverse=everywhere(lambda xp, result: result * result),
    infinite_slope=(0,),
    cone_form=cones.SQRT,
)
def sqrt(xp: Any, a: Any) -> Any:
    """The square root, entry by entry."""
    return xp.sqrt(a)


def _concave_away_from_zero(arguments: Arguments, params: Params) -> Curvature:
    """log a² = 2 log |a| is concave on each side of 0."""
    return CONCAVE if arguments[0].sign.is_strict else Curvature.UNKNOWN


def _root_of_known_sign(arguments: Arguments, params: Params) -> Inverse | None:
    """The square root, with the sign of the argument."""
    if arguments[0].sign.is_nonnegative:
        return lambda xp, result: xp.sqrt(result)
    return (lambda xp, result: -xp.sqrt(result)) if arguments[0].sign.is_nonpositive else None


@atom(
    shape=elementwise,
    sign=magnitude_sign,
    monotonicity=as_argument_sign,
    curvature=CONVEX,
    log_curvature=AFFINE,
    log_to_plain=CONVEX,
    plain_to_log=_concave_away_from_zero,
    dependence=ENTRYWISE,
    exponents=(2.0,),
    inverse=_root_of_known_sign,
    cone_form=cones.SQUARE,
)
def square(xp: Any, a: Any) -> Any:
    """a², entry by entry."""
    return a * a


@atom(
    shape=elementwise,
    domain=Domain.POSITIVE,
    sign=Sign.POSITIVE,
    monotonicity=DECREASING,
    curvature=CONVEX,
    log_curvature=AFFINE,
    log_to_plain=CONVEX,
    plain_to_log=CONVEX,
    dependence=ENTRYWISE,
    exponents=(-1.0,),
    inverse=everywhere(lambda xp, result: 1.0 / result),
    infinite_slope=(0,),
    cone_form=cones.INVERSE,
)
def inv_pos(xp: Any, a: Any) -> Any:
    """1/a for positive a, entry by entry; NaN elsewhere."""
    return 1.0 / xp.where(a > 0, a, float("nan"))


@atom(shape=elementwise, dependence=ENTRYWISE, enclosure=within(-1.0, 1.0))
def sin(xp: Any, a: Any) -> Any:
    """The sine, entry by entry."""
    return xp.sin(a)


@atom(shape=elementwise, dependence=ENTRYWISE, enclosure=within(-1.0, 1.0))
def cos(xp: Any, a: Any) -> Any:
    """The cosine, entry by entry."""
    return xp.cos(a)


@atom(
    shape=elementwise,
    sign=same_sign,
    monotonicity=INCREASING,
    curvature=bends_at_zero,
    log_curvature=CONCAVE,
    plain_to_log=CONCAVE,
    dependence=ENTRYWISE,
    inverse=everywhere(lambda xp, result: xp.arctanh(result)),
)
def tanh(xp: Any, a: Any) -> Any:
    """The hyperbolic tangent, entry by entry."""
    return xp.tanh(a)


@atom(
    shape=elementwise,
    sign=Sign.POSITIVE,
    monotonicity=INCREASING,
    curvature=bends_at_zero,
    plain_to_log=CONCAVE,
    dependence=ENTRYWISE,
    inverse=everywhere(lambda xp, result: xp.log(result) - xp.log1p(-result)),
    cone_form=cones.SIGMOID,
    definition=lambda arguments, params: 1.0 / (1.0 + ATOMS["exp"](-arguments[0])),
)
def sigmoid(xp: Any, a: Any) -> Any:
    """1 / (1 + exp(-a)), entry by entry, without overflow."""
    return xp.exp(-xp.logaddexp(0.0, -a))


@atom(
    shape=elementwise,
    sign=Sign.POSITIVE,
    monotonicity=INCREASING,
    curvature=CONVEX,
    log_curvature=CONVEX,
    log_to_plain=CONVEX,
    plain_to_log=CONCAVE,
    dependence=ENTRYWISE,
    inverse=everywhere(lambda xp, result: result + xp.log(-xp.expm1(-result))),
    cone_form=cones.SOFT_PLUS,
)
def softplus(xp: Any, a: Any) -> Any:
    """log(1 + exp(a)), entry by entry, without overflow."""
    return xp.logaddexp(0.0, a)


def _prepare_huber(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    try:
        width = float(params["M"])
    except (TypeError, ValueError, OverflowError):
        width = np.nan
    if not 0 < width < np.inf:
        raise ModelError(f"the M of '{name}' is a positive number, not {params['M']!r}")
    return {**params, "M": width}


@atom(
    shape=elementwise,
    prepare=_prepare_huber,
    static=("M",),
    sign=magnitude_sign,
    monotonicity=as_argument_sign,
    curvature=CONVEX,
    log_curvature=CONCAVE,
    dependence=ENTRYWISE,
    cone_form=cones.HUBER,
)
def huber(xp: Any, a: Any, M: Any = 1.0) -> Any:
    """a² for |a| <= M and 2 M |a| - M² beyond, entry by entry."""
    size = xp.where(a >= 0, a, -a)
    return xp.where(size <= M, a * a, 2.0 * M * size - M * M)
