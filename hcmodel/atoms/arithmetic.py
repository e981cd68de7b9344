"""The operators: sum, difference, product, quotient, power."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from hcmodel.atoms import cones, enclosures
from hcmodel.atoms.algebra import Inverse
from hcmodel.atoms.atom import always_sparse, atom, sparse_with_numbers
from hcmodel.atoms.autodiff import total
from hcmodel.atoms.rules import (
    Argument,
    Arguments,
    Curvature,
    Dependence,
    Domain,
    MatrixKind,
    Monotonicity,
    Params,
    Sign,
    affine_if_constants_nonnegative,
    as_other_factors,
    constant_exponents,
    convex_if_constants_nonnegative,
    from_sign,
    multilinear,
    product_sign,
    second_as_exponent,
    sign_of,
    signs_product,
    signs_sum,
    sum_sign,
)
from hcmodel.atoms.shape_rules import elementwise, spread

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE
UNKNOWN = Curvature.UNKNOWN
T = TypeVar("T")
INCREASING, DECREASING = Monotonicity.INCREASING, Monotonicity.DECREASING


def _unknown(arguments: Arguments) -> int | None:
    """The position of the one argument that is not constant, if the values of the others are known."""
    places = [i for i, argument in enumerate(arguments) if not argument.constant]
    others_known = all(argument.value is not None for argument in arguments if argument.constant)
    return places[0] if len(places) == 1 and others_known else None


def _nonzero(value: Any) -> bool:
    return bool(np.all(np.asarray(value) != 0))


def _other_terms(arguments: Arguments, params: Params) -> Inverse | None:
    """The result minus the other terms."""
    if _unknown(arguments) is None:
        return None
    others = [argument.value for argument in arguments if argument.value is not None]
    return lambda xp, result: result - sum(others)


def _sum_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """Semidefinite terms, one of them definite, make a definite sum."""
    if len({argument.shape for argument in arguments}) > 1:
        return MatrixKind.GENERAL
    kinds = [argument.matrix for argument in arguments]
    weakest = min(kinds)
    return max(kinds) if weakest >= MatrixKind.SEMIDEFINITE else weakest


def _symmetric_if_all(arguments: Arguments, params: Params) -> MatrixKind:
    """Symmetric if all arguments are."""
    return min(MatrixKind.SYMMETRIC, *(argument.matrix for argument in arguments))


@atom(
    shape=elementwise,
    sign=signs_sum,
    monotonicity=INCREASING,
    curvature=AFFINE,
    log_curvature=convex_if_constants_nonnegative,
    dependence=Dependence.ELEMENTWISE,
    summed=(1,),
    commutative=True,
    definiteness=_sum_definiteness,
    inverse=_other_terms,
)
def add(xp: Any, *terms: Any) -> Any:
    """a + b + …; the operator makes two terms, engines join chains of them into one sum."""
    return terms[0] + terms[1] if len(terms) == 2 else total(*spread(terms))


def _difference_sign(arguments: Arguments, params: Params) -> Sign:
    """As the sum of a and -b."""
    return sum_sign([arguments[0].sign, arguments[1].sign.negated])


def _log_difference(arguments: Arguments, params: Params) -> Curvature:
    """log(a - b) is concave in log a and log b, where b is subtracted and not added."""
    positive_first = not arguments[0].constant or arguments[0].sign is Sign.POSITIVE
    nonnegative_second = not arguments[1].constant or arguments[1].sign.is_nonnegative
    return CONCAVE if positive_first and nonnegative_second else UNKNOWN


def _difference_inverse(arguments: Arguments, params: Params) -> Inverse | None:
    """a = result + b, or b = a - result."""
    place = _unknown(arguments)
    if place is None:
        return None
    other = arguments[1 - place].value
    return lambda xp, result: result + other if place == 0 else other - result


@atom(
    shape=elementwise,
    sign=_difference_sign,
    monotonicity=(INCREASING, DECREASING),
    curvature=AFFINE,
    log_curvature=_log_difference,
    dependence=Dependence.ELEMENTWISE,
    summed=(1, -1),
    definiteness=_symmetric_if_all,
    inverse=_difference_inverse,
)
def sub(xp: Any, a: Any, b: Any) -> Any:
    """a - b."""
    return a - b


@atom(
    shape=elementwise,
    sign=Sign.POSITIVE,
    monotonicity=(INCREASING, DECREASING),
    # affine, but defined only where a > b: that is convex where a is concave and b convex
    curvature=CONCAVE,
    log_curvature=_log_difference,
    dependence=Dependence.ELEMENTWISE,
    cone_form=cones.DIFFERENCE,
)
def diff_pos(xp: Any, a: Any, b: Any) -> Any:
    """a - b where a > b, entry by entry; NaN elsewhere."""
    difference = a - b
    return xp.where(difference > 0, difference, float("nan"))


def _opposite_sign(arguments: Arguments, params: Params) -> Sign:
    """The opposite of the argument's sign."""
    return arguments[0].sign.negated


@atom(
    shape=elementwise,
    sign=_opposite_sign,
    monotonicity=DECREASING,
    curvature=AFFINE,
    dependence=Dependence.ELEMENTWISE,
    summed=(-1,),
    linear_in=(0,),
    definiteness=_symmetric_if_all,
    inverse=lambda arguments, params: lambda xp, result: -result,
    takes_sparse=always_sparse,
)
def neg(xp: Any, a: Any) -> Any:
    """-a."""
    return -a


def _scaled(matrix: Argument, factor: Argument) -> MatrixKind:
    """What is known of a matrix times a number."""
    if factor.shape != ():
        return MatrixKind.GENERAL
    if factor.sign is Sign.POSITIVE:
        return matrix.matrix
    limit = MatrixKind.SEMIDEFINITE if factor.sign.is_nonnegative else MatrixKind.SYMMETRIC
    return min(limit, matrix.matrix)


def _product_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """A definite matrix times a positive number is definite."""
    first, second = arguments
    return _scaled(first, second) if second.shape == () else _scaled(second, first)


def _product_inverse(arguments: Arguments, params: Params) -> Inverse | None:
    """The result over the other factor, where that has no entry 0."""
    place = _unknown(arguments)
    if place is None:
        return None
    other = arguments[1 - place].value
    return (lambda xp, result: result / other) if _nonzero(other) else None


@atom(
    shape=elementwise,
    sign=signs_product,
    monotonicity=as_other_factors,
    curvature=multilinear,
    log_curvature=affine_if_constants_nonnegative,
    dependence=Dependence.ELEMENTWISE,
    linear_in=(0, 1),
    commutative=True,
    definiteness=_product_definiteness,
    exponents=(1.0, 1.0),
    inverse=_product_inverse,
    enclosure=enclosures.product,
    takes_sparse=sparse_with_numbers,
)
def mul(xp: Any, a: Any, b: Any) -> Any:
    """a * b, entry by entry."""
    return a * b


def _quotient_sign(arguments: Arguments, params: Params) -> Sign:
    """As the product; if the divisor may be 0, only its nonstrict sign is used."""
    numerator, divisor = arguments[0].sign, _as_divisor(arguments[1].sign)
    return product_sign([numerator, divisor])


def _as_divisor(sign: Sign) -> Sign:
    """A divisor is not 0 on its domain."""
    if sign is Sign.ZERO:
        return Sign.UNKNOWN
    if sign.is_nonnegative:
        return Sign.POSITIVE
    return Sign.NEGATIVE if sign.is_nonpositive else Sign.UNKNOWN


def _quotient_monotonicity(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """In the numerator as the divisor's sign; in a divisor of one sign against the numerator's."""
    divisor = _as_divisor(arguments[1].sign)
    in_divisor = from_sign(arguments[0].sign.negated)
    return (
        from_sign(divisor),
        in_divisor if divisor is not Sign.UNKNOWN else Monotonicity.UNKNOWN,
    )


def _quotient_curvature(arguments: Arguments, params: Params) -> Curvature:
    """Affine over a constant; k / b is convex where k/b > 0, concave where k/b < 0."""
    if arguments[1].constant:
        return AFFINE
    sign = _quotient_sign(arguments, params)
    if not arguments[0].constant or sign is Sign.UNKNOWN:
        return UNKNOWN
    if sign is Sign.ZERO:
        return AFFINE
    return CONVEX if sign.is_nonnegative else CONCAVE


def _quotient_in_log(arguments: Arguments, params: Params) -> Curvature:
    """log(k / b) = log k - log b is convex in b > 0."""
    constant_over_positive = arguments[0].constant and arguments[1].sign.is_nonnegative
    return CONVEX if constant_over_positive and not arguments[1].constant else UNKNOWN


def _quotient_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """A definite matrix over a positive number is definite."""
    return _scaled(*arguments)


def _quotient_inverse(arguments: Arguments, params: Params) -> Inverse | None:
    """a = result * b, or b = a / result where a has no entry 0."""
    place = _unknown(arguments)
    if place is None or not _nonzero(arguments[1 - place].value):
        return None
    other = arguments[1 - place].value
    return lambda xp, result: result * other if place == 0 else other / result


@atom(
    shape=elementwise,
    domain=(Domain.REALS, Domain.NONZERO),
    sign=_quotient_sign,
    monotonicity=_quotient_monotonicity,
    curvature=_quotient_curvature,
    log_curvature=affine_if_constants_nonnegative,
    plain_to_log=_quotient_in_log,
    dependence=Dependence.ELEMENTWISE,
    linear_in=(0,),
    exponents=(1.0, -1.0),
    definiteness=_quotient_definiteness,
    inverse=_quotient_inverse,
    infinite_slope=(1,),
    enclosure=enclosures.quotient,
    cone_form=cones.QUOTIENT,
)
def div(xp: Any, a: Any, b: Any) -> Any:
    """a / b, entry by entry."""
    return a / b


def _kinds(exponents: np.ndarray) -> list[float]:
    """One exponent of each kind that occurs: by sign, parity, and the side of 1."""
    integer = exponents == np.rint(exponents)
    even = integer & (exponents % 2 == 0)
    side = np.sign(exponents) + np.sign(exponents - 1)
    kinds = 10 * even + 5 * integer + side
    return [float(exponents[kinds == kind].flat[0]) for kind in np.unique(kinds)]


def _shared(answers: list[T], unknown: T) -> T:
    """The one answer that all exponents agree on."""
    return answers[0] if answers and all(answer is answers[0] for answer in answers) else unknown


def _is_integer(exponent: float) -> bool:
    return float(exponent).is_integer()


def _is_even(exponent: float) -> bool:
    return _is_integer(exponent) and exponent % 2 == 0


def _base_sign(base: Argument, exponent: float) -> Sign:
    """The base's sign on the domain: fractional powers need a base >= 0, negative ones not 0."""
    sign = base.sign
    if not _is_integer(exponent):
        sign = sign if sign.is_nonnegative else Sign.NONNEGATIVE
    return _as_divisor(sign) if exponent < 0 else sign


def _power_sign(arguments: Arguments, params: Params) -> Sign:
    """From the base's sign and the parity of the exponent."""
    base = arguments[0]
    exponents = constant_exponents(arguments)
    if base.sign is Sign.POSITIVE or exponents is None:
        return Sign.POSITIVE if base.sign is Sign.POSITIVE else Sign.UNKNOWN
    return _shared([_one_power_sign(base, p) for p in _kinds(exponents)], Sign.UNKNOWN)


def _one_power_sign(base: Argument, exponent: float) -> Sign:
    sign = _base_sign(base, exponent)
    if exponent == 0:
        return Sign.POSITIVE
    if _is_even(exponent):
        if sign is Sign.ZERO:
            return Sign.ZERO
        return Sign.POSITIVE if sign.is_strict or exponent < 0 else Sign.NONNEGATIVE
    return sign


def _power_monotonicity(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """In the base by its sign and the exponent's parity; in the exponent by the side of 1."""
    base, exponent = arguments
    exponents = constant_exponents(arguments)
    in_base = in_exponent = Monotonicity.UNKNOWN
    if exponents is not None:
        answers = [_one_power_monotonicity(base, p) for p in _kinds(exponents)]
        in_base = _shared(answers, Monotonicity.UNKNOWN)
    elif base.sign is Sign.POSITIVE and exponent.sign is not Sign.UNKNOWN:
        in_base = from_sign(exponent.sign)
    if base.constant and base.value is not None and base.sign is Sign.POSITIVE:
        in_exponent = from_sign(sign_of(np.log(base.value)))
    return in_base, in_exponent


def _one_power_monotonicity(base: Argument, exponent: float) -> Monotonicity:
    sign = _base_sign(base, exponent)
    if exponent == 0:
        return Monotonicity.CONSTANT
    if _is_even(exponent):
        slope = sign
    elif sign is Sign.UNKNOWN and exponent < 0:
        slope = Sign.UNKNOWN
    else:
        slope = Sign.POSITIVE
    return from_sign(slope if exponent > 0 else slope.negated)


def _power_curvature(arguments: Arguments, params: Params) -> Curvature:
    """The table of powers for a constant exponent; k**a = exp(a log k) is convex."""
    base = arguments[0]
    exponents = constant_exponents(arguments)
    if exponents is not None:
        return _shared([_one_power_curvature(base, p) for p in _kinds(exponents)], UNKNOWN)
    return CONVEX if base.constant and base.sign is Sign.POSITIVE else UNKNOWN


def _one_power_curvature(base: Argument, exponent: float) -> Curvature:
    sign = _base_sign(base, exponent)
    if exponent in (0.0, 1.0):
        return AFFINE
    if exponent > 0 and _is_even(exponent):
        return CONVEX
    if sign.is_nonnegative:
        return CONCAVE if 0 < exponent < 1 else CONVEX
    if sign.is_nonpositive:
        return CONVEX if _is_even(exponent) else CONCAVE
    return UNKNOWN


def _power_log_curvature(arguments: Arguments, params: Params) -> Curvature:
    """log a**p = p log a is affine in log a."""
    return AFFINE if arguments[1].constant else UNKNOWN


def _power_in_log(arguments: Arguments, params: Params) -> Curvature:
    """log k**a is affine in a; log a**p = p log a is convex in a > 0 for p <= 0."""
    base, exponent = arguments
    if base.constant:
        return AFFINE if base.sign is Sign.POSITIVE else UNKNOWN
    if not exponent.constant or not base.sign.is_nonnegative:
        return UNKNOWN
    if exponent.sign.is_nonpositive:
        return CONVEX
    return CONCAVE if exponent.sign.is_nonnegative else UNKNOWN


def _power_domain(arguments: Arguments, params: Params) -> tuple[Domain, ...]:
    """All bases for natural exponents, not 0 for negative ones, >= 0 or > 0 for fractions."""
    exponents = constant_exponents(arguments)
    if exponents is None:
        return Domain.POSITIVE, Domain.REALS
    integer = bool(np.all(exponents == np.rint(exponents)))
    if np.all(exponents >= 0):
        return (Domain.REALS if integer else Domain.NONNEGATIVE), Domain.REALS
    return (Domain.NONZERO if integer else Domain.POSITIVE), Domain.REALS


def _power_inverse(arguments: Arguments, params: Params) -> Inverse | None:
    """The root of a base >= 0, or the logarithm to a constant base."""
    place, base = _unknown(arguments), arguments[0]
    other = None if place is None else arguments[1 - place].value
    if other is None or not _nonzero(other):
        return None
    if place == 1:
        invertible = base.sign is Sign.POSITIVE and _nonzero(other - 1)
        return (lambda xp, result: xp.log(result) / np.log(other)) if invertible else None
    return (lambda xp, result: result ** (1.0 / other)) if base.sign.is_nonnegative else None


def _power_enclosure(ranges: enclosures.Ranges) -> enclosures.Interval:
    """The values at the ends of a base >= 0, else by monotonicity or curvature."""
    inside = list(ranges.inside)
    if ranges.known[1]:
        exponents = ranges.intervals[1][0]
        integer = exponents == np.rint(exponents)
        if np.any(integer) and not np.all(integer):
            # an array of exponents has one domain, but integer ones take negative bases as well
            inside[0] = enclosures.spread(ranges.intervals[0], ranges.shapes[0])
        low, high = inside[0]
        if np.all(low >= 0):
            corners = ranges.value(low, inside[1][0]), ranges.value(high, inside[1][0])
            ends = enclosures.ordered(np.minimum(*corners), np.maximum(*corners))
            return enclosures.outward(ends)
    return enclosures.by_shape(ranges, inside)


def _fractional_or_negative(arguments: Arguments, params: Params) -> tuple[int, ...]:
    """The base, of exponents below 1; of an array of them one such is enough."""
    exponents = arguments[1].value
    return () if exponents is None or not np.any(exponents < 1) else (0,)


@atom(
    shape=elementwise,
    domain=_power_domain,
    sign=_power_sign,
    monotonicity=_power_monotonicity,
    curvature=_power_curvature,
    log_curvature=_power_log_curvature,
    plain_to_log=_power_in_log,
    dependence=Dependence.ELEMENTWISE,
    exponents=second_as_exponent,
    inverse=_power_inverse,
    infinite_slope=_fractional_or_negative,
    enclosure=_power_enclosure,
    cone_form=cones.POWER,
)
def power(xp: Any, a: Any, p: Any) -> Any:
    """a ** p, entry by entry; NaN for fractional powers of negative numbers."""
    return xp.power(a, p)
