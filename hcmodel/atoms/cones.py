"""Cone forms of atoms: bounds of a result, by rows in cones, from bounds of the arguments.

A cone form is a function of one `Use` of the atom: the builder (`ConeRows` of the reduction `Cone`,
which the reduction to a cone program hands in), affine bounds of the arguments, the facts about the
arguments, and the static parameters. It returns an affine bound of the result, from above where the
atom is convex and from below where it is concave, or None where it does not apply. Atoms import no
solver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Arguments
from hcmodel.records import dataclass


@dataclass(frozen=True, eq=False)
class Use:
    """An atom applied to arguments that are known by bounds.

    `bounds` has for each argument a bound of its value, or of its logarithm, on the side that the
    atom's monotonicity asks for; it is the value itself where the atom is not monotone.
    """

    cone: Any
    bounds: tuple[Any, ...]
    facts: Arguments
    params: dict[str, Any]

    @property
    def axis(self) -> Any:
        return self.params["axis"]


ConeForm = Callable[[Use], Any]


@dataclass(frozen=True, eq=False)
class ConeForms:
    """One form for each way in which arguments and result are seen, as the four curvatures of an atom.

    `plain`: both as they are; `log`: both through their logarithms; `log_to_plain`: arguments through
    their logarithms; `plain_to_log`: the result through its logarithm.
    """

    plain: ConeForm | None = None
    log: ConeForm | None = None
    log_to_plain: ConeForm | None = None
    plain_to_log: ConeForm | None = None


def first(use: Use) -> Any:
    """The bound of the argument itself."""
    return use.bounds[0]


# ---- functions of one number


def _log(use: Use) -> Any:
    return use.cone.log(use.bounds[0])


def _log_of_one_plus(use: Use) -> Any:
    return use.cone.log(use.bounds[0] + 1.0)


def _soft_plus(use: Use) -> Any:
    """log(1 + exp(a))."""
    a = use.bounds[0]
    return use.cone.log_sum_exp_of([a, a.scaled(0.0)])


def _log_sigmoid(use: Use) -> Any:
    """-log(1 + exp(-a))."""
    a = use.bounds[0]
    return -use.cone.log_sum_exp_of([-a, a.scaled(0.0)])


def _absolute(use: Use) -> Any:
    a, sign = use.bounds[0], use.facts[0].sign
    if sign.is_nonnegative:
        return a
    return -a if sign.is_nonpositive else use.cone.largest_of([a, -a])


def _huber(use: Use) -> Any:
    """The least n² + 2M |a - n|.

    The size of a - n is at least 0 by a row of its own, without which no range is found for it.
    """
    a, width = use.bounds[0], use.params["M"]
    middle = use.cone.unknown(a.shape)
    rest = use.cone.largest_of([a - middle, middle - a])
    use.cone.nonnegative(rest)
    return use.cone.square(middle) + rest.scaled(2.0 * width)


EXP = ConeForms(plain=lambda use: use.cone.exp(use.bounds[0]), plain_to_log=first)
LOG = ConeForms(plain=_log, log_to_plain=first)
LOG_OF_ONE_PLUS = ConeForms(plain=_log_of_one_plus, log_to_plain=_soft_plus)
SQUARE = ConeForms(plain=lambda use: use.cone.square(use.bounds[0]))
SQRT = ConeForms(plain=lambda use: use.cone.power_of(use.bounds[0], 0.5))
INVERSE = ConeForms(plain=lambda use: use.cone.power_of(use.bounds[0], -1.0))
SOFT_PLUS = ConeForms(plain=_soft_plus)
SIGMOID = ConeForms(plain_to_log=_log_sigmoid)
ABSOLUTE = ConeForms(plain=_absolute, log=first)
HUBER = ConeForms(plain=_huber)


# ---- powers and quotients


def _power(use: Use) -> Any:
    """a^p with constant exponents, or k^a with a constant base."""
    base, exponent = use.bounds
    if base.is_constant:
        return use.cone.exp(exponent.scaled(np.log(base.value)))
    if not exponent.is_constant:
        return None
    exponents = exponent.value
    whole = np.all(exponents == np.rint(exponents))
    odd = whole and np.all(exponents % 2 == 1)
    if whole and use.facts[0].sign.is_nonpositive:
        size = use.cone.power_of(-base, exponents)
        if odd:
            return -size
        return size if np.all(exponents % 2 == 0) else None
    if not use.facts[0].sign.is_nonnegative:
        use.cone.in_domain_of_power(base, exponents)
    return use.cone.power_of(base, exponents)


def broken_powers(exponents: Any) -> NDArray[np.bool_]:
    """Which powers above 1 are of numbers >= 0 only, though the cone for them bounds |a|^p."""
    numbers = np.asarray(exponents, dtype=float)
    return np.asarray((numbers > 1) & (numbers != np.rint(numbers)))


def _power_in_log(use: Use) -> Any:
    """log k^a = a log k."""
    base, exponent = use.bounds
    return exponent.scaled(np.log(base.value)) if base.is_constant else None


def _quotient(use: Use) -> Any:
    """k / b."""
    above, below = use.bounds
    if not above.is_constant:
        return None
    sign = -1.0 if use.facts[1].sign.is_nonpositive else 1.0
    return use.cone.power_of(below.scaled(sign), -1.0).scaled(sign * above.value)


POWER = ConeForms(plain=_power, plain_to_log=_power_in_log)
QUOTIENT = ConeForms(plain=_quotient)


def _difference(use: Use) -> Any:
    """a - b, which is positive."""
    a, b = use.bounds
    use.cone.nonnegative(a - b)
    return a - b


def _difference_in_log(use: Use) -> Any:
    """t with exp(t - log a) + exp(log b - log a) <= 1."""
    a, b = use.bounds
    return use.cone.log_difference(a, b)


DIFFERENCE = ConeForms(plain=_difference, log=_difference_in_log)


# ---- probability


def _entropy_in_log(use: Use) -> Any:
    """log(-a log a) = log a + log(-log a)."""
    a = use.bounds[0]
    return a + use.cone.log(-a)


def _divergence(use: Use) -> Any:
    """a log(a/b) - a + b."""
    a, b = use.bounds
    return use.cone.relative_entropy(a, b) - a + b


def _relative_entropy_in_log(use: Use) -> Any:
    """log(a log(a/b)) = log a + log(log a - log b)."""
    a, b = use.bounds
    return a + use.cone.log(a - b)


def _soft_max_in_log(use: Use) -> Any:
    """a - logsumexp(a), the latter repeated along the axis."""
    a = use.bounds[0]
    total = use.cone.log_sum_exp_along(a, use.axis)
    return a - use.cone.repeated_along(total, a.shape, use.axis)


ENTROPY = ConeForms(plain=lambda use: use.cone.entropy(use.bounds[0]), log=_entropy_in_log)
DIVERGENCE = ConeForms(plain=_divergence)
RELATIVE_ENTROPY = ConeForms(
    plain=lambda use: use.cone.relative_entropy(*use.bounds), log=_relative_entropy_in_log
)
LOG_SUM_EXP = ConeForms(plain=lambda use: use.cone.log_sum_exp_along(use.bounds[0], use.axis))
SOFT_MAX = ConeForms(plain_to_log=_soft_max_in_log)


# ---- reductions


def _geometric_mean(use: Use) -> Any:
    return use.cone.geometric_mean(use.bounds[0], use.axis, use.params["p"])


def _weighted_logarithms(use: Use) -> Any:
    return use.cone.weighted_along(use.bounds[0], use.axis, use.params["p"])


def _norm(use: Use) -> Any:
    p, a = use.params["p"], use.bounds[0]
    if p == 1.0:
        return use.cone.summed(_absolute(use), use.axis)
    if p == np.inf:
        return use.cone.largest_along(_absolute(use), use.axis) if a.size else None
    if p in (2.0, "fro"):
        return use.cone.norm_along(a, use.axis)
    return use.cone.power_norm_along(a, use.axis, p)


def _norm_in_log(use: Use) -> Any:
    """log‖a‖ = log Σ exp(p log a) / p."""
    p, a = use.params["p"], use.bounds[0]
    if p == np.inf:
        return use.cone.largest_along(a, use.axis) if a.size else None
    exponent = 2.0 if p == "fro" else p
    return use.cone.log_sum_exp_along(a.scaled(exponent), use.axis).scaled(1.0 / exponent)


def _largest(use: Use) -> Any:
    return use.cone.largest_along(use.bounds[0], use.axis)


def _smallest(use: Use) -> Any:
    return -use.cone.largest_along(-use.bounds[0], use.axis)


def _largest_of(use: Use) -> Any:
    return use.cone.largest_of(use.bounds)


def _smallest_of(use: Use) -> Any:
    return -use.cone.largest_of([-each for each in use.bounds])


def _sum_of_largest(use: Use) -> Any:
    return use.cone.sum_of_largest(use.bounds[0], use.params["k"], use.axis)


def _sum_of_largest_in_log(use: Use) -> Any:
    return use.cone.log_sum_of_largest(use.bounds[0], use.params["k"], use.axis)


PRODUCT = ConeForms(
    # Affine where there is one factor in each product.
    plain=lambda use: use.cone.summed(use.bounds[0], use.axis),
    log=lambda use: use.cone.summed(use.bounds[0], use.axis),
)
GEO_MEAN = ConeForms(plain=_geometric_mean, log=_weighted_logarithms)
NORM = ConeForms(plain=_norm, log=_norm_in_log)
LARGEST = ConeForms(plain=_largest, log=_largest)
SMALLEST = ConeForms(plain=_smallest, log=_smallest)
MAXIMUM = ConeForms(plain=_largest_of, log=_largest_of)
MINIMUM = ConeForms(plain=_smallest_of, log=_smallest_of)
SUM_LARGEST = ConeForms(plain=_sum_of_largest, log=_sum_of_largest_in_log)


# ---- quadratic functions and matrices


def _quadratic_form(use: Use) -> Any:
    """x'Px: linear in P where x is constant, else by a root of a constant P."""
    x, matrix = use.bounds
    if x.is_constant:
        return use.cone.inner(matrix, np.outer(x.value, x.value))
    if not matrix.is_constant:
        return None
    root, sign = semidefinite_root(matrix.value)
    terms = x.mapped(root.T, (root.shape[1],))
    return use.cone.sum_of_squares(terms).scaled(sign)


def semidefinite_root(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """L and a sign with ± L L' the symmetric part of a matrix that is semidefinite."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    sign = 1.0 if values.sum() >= 0 else -1.0
    kept = sign * values > 0
    return vectors[:, kept] * np.sqrt(np.abs(values[kept])), sign


def _quadratic_form_in_log(use: Use) -> Any:
    """The log-sum-exp of log x[i] + log x[j] + log P[i, j]."""
    x, matrix = use.bounds
    pairs = x.reshaped((x.size, 1)) + x.reshaped((1, x.size)) + matrix
    return use.cone.log_sum_exp_along(pairs, None)


def _square_over(use: Use) -> Any:
    x, y = use.bounds
    return use.cone.sum_of_squares(x.flat(), y)


def _square_over_in_log(use: Use) -> Any:
    x, y = use.bounds
    return use.cone.log_sum_exp_along(x.scaled(2.0), None) - y


def _constant_over_in_log(use: Use) -> Any:
    x, y = use.bounds
    return -use.cone.log(y) + float(np.log(np.sum(x.value**2))) if x.is_constant else None


def _log_determinant(use: Use) -> Any:
    return use.cone.log_determinant(use.bounds[0])


def _matrix_fraction(use: Use) -> Any:
    above, matrix = use.bounds
    return use.cone.matrix_fraction(above.reshaped((above.shape[0], -1)), matrix)


def _matrix_fraction_in_log(use: Use) -> Any:
    above, matrix = use.bounds
    if not above.is_constant:
        return None
    return use.cone.log_matrix_fraction(above.value.reshape(above.shape[0], -1), matrix)


def _largest_eigenvalue(use: Use) -> Any:
    return use.cone.largest_eigenvalue(use.bounds[0])


def _largest_eigenvalue_in_log(use: Use) -> Any:
    """The eigenvalue of Perron and Frobenius of the symmetric part."""
    matrix = use.bounds[0]
    turned = matrix.transposed()
    both = use.cone.log_sum_exp_of([matrix, turned]) + float(np.log(0.5))
    return use.cone.perron_eigenvalue(both)


QUAD_FORM = ConeForms(plain=_quadratic_form, log=_quadratic_form_in_log)
QUAD_OVER_LIN = ConeForms(
    plain=_square_over, log=_square_over_in_log, plain_to_log=_constant_over_in_log
)
LOG_DET = ConeForms(plain=_log_determinant)
DETERMINANT = ConeForms(plain_to_log=_log_determinant)
MATRIX_FRAC = ConeForms(plain=_matrix_fraction, plain_to_log=_matrix_fraction_in_log)
LARGEST_EIGENVALUE = ConeForms(plain=_largest_eigenvalue, log=_largest_eigenvalue_in_log)


# ---- positive matrices


def _perron_eigenvalue(use: Use) -> Any:
    return use.cone.perron_eigenvalue(use.bounds[0])


def eye_minus_inverse(use: Use) -> Any:
    return use.cone.eye_minus_inverse(use.bounds[0])


PERRON_EIGENVALUE = ConeForms(log=_perron_eigenvalue)
EYE_MINUS_INVERSE = ConeForms(log=eye_minus_inverse)
