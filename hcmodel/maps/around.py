"""An increasing function around the objective is left out, and put around its value.

The minimisers of φ(F) are those of F where φ increases, those of −F where it decreases: √trace(G P Gᵀ) is
least where the trace is, and exp(−F) where F is largest. The value and the bounds of the model are φ of
those that are found, and its multipliers are φ′ times theirs. A likelihood is exp of its logarithm, which
is a sum: det(S)^(−½)·exp(−½ trace(C S⁻¹)). A difference of logarithms is the logarithm of a ratio:
log μᵀx − ½ log xᵀSx. A determinant that is maximised, or a root of one, is exp of log det; where it is 0
it is no better than at any other point.

A ratio of squares is the square of a ratio of norms. With M = |L x|² and a square D² in the denominator,

    xᵀ S x / (μᵀ x)²  =  (|Lᵀ x| / μᵀ x)²,        (μᵀ x − r)² / xᵀ S x  =  ((μᵀ x − r) / |Lᵀ x|)²

where μᵀ x, or μᵀ x − r, has one sign by the bounds and the affine rows. What is left is a ratio that
other maps know (`fractional`, `homogeneous`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hcmodel.atoms import cones
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import ONE, Sums
from hcmodel.facts.symbols import Symbols, is_exponential, is_logarithm
from hcmodel.maps.algebra.expanded import Evaluation, Expanded
from hcmodel.maps.algebra.quadratics import combined, is_square_form, quadratic
from hcmodel.maps.algebra.ranges import sign_of
from hcmodel.maps.algebra.rewriting import without
from hcmodel.maps.fractional import denominators
from hcmodel.maps.map import (
    ROOT,
    Map,
    Obstacle,
    Points,
    SameVariables,
    Step,
    symbol_sums,
    text_of,
)
from hcmodel.records import dataclass, replace

Number = Callable[[float], float]


class Outer(Map):
    """F in place of φ(F); see the module."""

    name = "outer"
    summary = "F in place of an objective φ(F) with an increasing φ; the value is φ of that of F"
    literature = "Boyd, Vandenberghe 2004, section 4.1.3; Schaible 1974"
    example = """
    # The variance of a portfolio over the square of its return.
    param covariance[2,2] = [[0.04, 0.01], [0.01, 0.02]]
    param gain[2]         = [0.07, 0.03]
    var weight[2] in simplex

    minimize weight @ covariance @ weight / (gain @ weight)^2
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not model.is_original:
            return
        objective = model.objective
        rest = objective.chosen(objective.key != ONE)
        shift = float(objective.value)
        found: Found | Obstacle | None
        if rest.key.size == 1 and int(rest.degrees[0]) == 1:
            found = _function(model, rest, shift)
        elif rest.key.size == 2 and (rest.degrees == 1).all():
            found = _ratio_of_logarithms(model.symbols, rest, shift)
        else:
            found = _likelihood(model.symbols, rest, shift) or _ratio_of_squares(model, rest, shift)
        if isinstance(found, Obstacle):
            yield found
        elif found is not None:
            yield _Inner(*found, model)


@dataclass(frozen=True)
class Around:
    """φ, its inverse and its derivative; φ increases."""

    value: Number
    inverse: Number
    slope: Number
    outside: tuple[str, ...] = ()
    """The variables in which points differ at which φ is as bad as it can be, and F has no value."""


Found = tuple[Sums, Around, tuple[Sums, ...]]
"""The inner function, what is around it, and what must not be negative."""


def _function(model: Expanded, rest: Sums, shift: float) -> Found | None:
    """The function that the objective is, times a weight and beside a constant."""
    symbols, symbol, weight = model.symbols, int(rest.key[0]) - 1, float(rest.weight[0])
    function = symbols.function(symbol)
    if function is None:
        return None
    base, power = symbols.power(symbol)
    determinant = _determinant(symbols, base, weight * power < 0)
    if determinant is not None:
        return _of_logarithm(*determinant, weight, power, shift)
    # the sign s for which φ(s·g) increases in g
    if power != 1:
        if power == round(power) and float(symbols.interval(base)[0]) < 0:
            return None  # other powers are defined where the base is not negative
        sign = 1.0 if weight * power > 0 else -1.0
        return (
            base.scaled(sign),
            Around(
                lambda v: shift + weight * _raised(sign * v, power),
                lambda v: sign * _raised(max((v - shift) / weight, 0.0), 1.0 / power),
                lambda v: abs(weight * power) * _raised(sign * v, power - 1.0),
            ),
            (),
        )
    sign = 1.0 if weight > 0 else -1.0
    if is_logarithm(function.atom):
        return (
            function.arguments[0].scaled(sign),
            Around(
                lambda v: shift + weight * _log(sign * v),
                lambda v: sign * _exp((v - shift) / weight),
                lambda v: weight / v if v else np.inf,
            ),
            (),
        )
    if is_exponential(function.atom):
        return (
            function.arguments[0].scaled(sign),
            Around(
                lambda v: shift + weight * _exp(sign * v),
                lambda v: sign * _log((v - shift) / weight),
                lambda v: abs(weight) * _exp(sign * v),
            ),
            (),
        )
    return None


def _determinant(symbols: Symbols, base: Sums, raised: bool) -> tuple[Sums, tuple[str, ...]] | None:
    """The logarithm of a determinant, and the variable that may be singular if it is `raised`."""
    function = symbols.function(int(base.key[0]) - 1) if base.key.size == 1 else None
    if function is None or function.atom.cone_form is not cones.DETERMINANT or base.degrees[0] > 1:
        return None
    source = symbols.source(int(function.arguments[0].key[0]) - 1)[0]
    logarithm = function_of(symbols, ATOMS["log"], {}, [base], ())
    own = symbols.functions(logarithm.symbols_used())
    if not isinstance(source, Variable) or any(is_logarithm(each.atom) for each in own):
        return None
    definite = source.eigenvalue_bounds is not None and source.eigenvalue_bounds[0] > 0
    return (logarithm, () if definite else (source.name,)) if definite or raised else None


def _of_logarithm(
    logarithm: Sums, outside: tuple[str, ...], weight: float, power: float, shift: float
) -> Found:
    """shift + weight · exp(power · logarithm), which increases in the logarithm or in its negative."""
    sign = 1.0 if weight * power > 0 else -1.0
    return (
        logarithm.scaled(sign),
        Around(
            lambda v: shift + weight * _exp(power * sign * v),
            lambda v: sign * _log((v - shift) / weight) / power,
            lambda v: abs(weight * power) * _exp(power * sign * v),
            outside,
        ),
        (),
    )


def _likelihood(symbols: Symbols, rest: Sums, shift: float) -> Found | None:
    """shift − w · exp(log p) for a product p of powers of determinants and of positive factors."""
    if rest.key.size != 1 or rest.weight[0] >= 0:
        return None
    weight = float(rest.weight[0])
    outside = list[str]()
    for symbol in rest.symbols_used().tolist():
        determinant = _determinant(symbols, symbols.power(symbol)[0], True)
        if determinant is not None:
            outside += determinant[1]
        elif not symbols.lower_of(symbol) > 0:
            return None
    logarithm = function_of(symbols, ATOMS["log"], {}, [rest.scaled(1.0 / weight)], ())
    own = symbols.functions(logarithm.symbols_used())
    if not any(each.atom.cone_form is cones.LOG_DET for each in own):
        return None  # other products have a logarithm that the proof takes
    return (
        -logarithm,
        Around(
            lambda v: shift + weight * _exp(-v),
            lambda v: -_log((v - shift) / weight),
            lambda v: -weight * _exp(-v),
            tuple(outside),
        ),
        (),
    )


def _raised(base: float, power: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(max(base, 0.0), power))


def _log(value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.log(max(value, 0.0)))


def _exp(value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.exp(value))


def _ratio_of_logarithms(symbols: Symbols, rest: Sums, shift: float) -> Found | None:
    """k·log a − k·log b, or with a half of one of them: k·log of their ratio, or of that with a root."""
    bases = [symbols.logarithm(int(key) - 1) for key in rest.key]
    above, below = int(rest.weight.argmax()), int(rest.weight.argmin())
    most = float(np.abs(rest.weight).max())
    powers = np.abs(rest.weight) / most
    if rest.weight[above] <= 0 or rest.weight[below] >= 0 or powers.min() not in (1.0, ROOT):
        return None
    factors = []
    for base, power in zip(bases, powers.tolist(), strict=True):
        if base is None:
            return None
        whole = power == 1.0
        factors.append(
            base if whole else symbol_sums(symbols, np.array(symbols.of_power(base, ROOT)))
        )
    around = Around(
        lambda v: shift + most * _log(v),
        lambda v: _exp((v - shift) / most),
        lambda v: most / v if v else np.inf,
    )
    return factors[above].times(_reciprocal(symbols, factors[below])), around, ()


# ---- squares


def _ratio_of_squares(model: Expanded, rest: Sums, shift: float) -> Found | Obstacle | None:
    """±M/D or ±M/d² with squares M and D."""
    below = denominators(model.symbols, rest)
    if len(below) != 1 or len(below[0][1]) != 1:
        return None
    base, powers = below[0]
    ((symbol, times),) = powers.items()
    digits = rest.digits == symbol + 1
    if times > 2 or model.symbols.power(symbol)[1] != -times or (digits.sum(axis=1) != 1).any():
        return None
    above, sign = without(rest, symbol + 1), 1.0
    if not is_square_form(above):
        above, sign = -above, -1.0
    if not is_square_form(above) or (times == 1 and not is_square_form(base)):
        return None
    numerator = _root(model, above)
    denominator = _root(model, base) if times == 1 else _signed(model, base)
    for part in (numerator, denominator):
        if isinstance(part, Obstacle):
            return part
    assert isinstance(numerator, Sums)
    assert isinstance(denominator, Sums)
    whole = numerator.times(_reciprocal(model.symbols, denominator)).scaled(sign)
    around = Around(
        lambda v: shift + sign * _raised(sign * v, 2.0),
        lambda v: sign * _raised(sign * (v - shift), ROOT),
        lambda v: 2.0 * abs(v),
    )
    return whole, around, (numerator, denominator)


def _root(model: Expanded, square: Sums) -> Sums | Obstacle:
    """The root of a quadratic function that is nowhere negative: affine for one square, else a norm."""
    _, factor, used = quadratic(square)
    assert factor is not None
    if factor.shape[0] == 1:
        return _signed(model, combined(factor, used, square.coding).reshaped(()))
    return symbol_sums(model.symbols, np.array(model.symbols.of_power(square, ROOT)))


def _signed(model: Expanded, affine: Sums) -> Sums | Obstacle:
    """The size of something that has one sign."""
    sign = sign_of(model, affine)
    if not sign:
        word = text_of(model.symbols, affine)
        return Obstacle("outer", f"the sign of {word}, which is squared, is not known")
    return affine.scaled(float(sign))


def _reciprocal(symbols: Symbols, sums: Sums) -> Sums:
    """1/F; of a root the root of 1/F."""
    alone = int(sums.key[0]) - 1 if sums.key.size == 1 and sums.degrees[0] == 1 else None
    base, power = (sums, 1.0) if alone is None else symbols.power(alone)
    size = float(np.abs(base.weight[0]))
    number = symbols.of_power(base.scaled(1.0 / size), -power)
    return symbol_sums(symbols, np.array(number)).scaled(size**-power)


class _Inner(SameVariables):
    """The inner function as the objective."""

    name = "outer"

    def __init__(
        self, inner: Sums, around: Around, signed: tuple[Sums, ...], model: Expanded
    ) -> None:
        self.after = replace(model, objective=inner, is_original=False, written=None)
        self.around, self._signed, self.outside = around, signed, around.outside

    def fits(self, point: Points) -> bool:
        evaluation = Evaluation(self.after.symbols, point)
        return all(bool((evaluation.of(each) >= 0).all()) for each in self._signed)

    def value(self, value: float) -> float:
        return self.around.inverse(value)

    def value_back(self, value: float) -> float:
        return self.around.value(value)

    def slope(self, value: float) -> float:
        return self.around.slope(value)
