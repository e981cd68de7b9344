"""A product of several functions that is maximised: a variable for each of them.

The product of concave functions that are positive has a concave logarithm, as in Nash's problem,

    maximise (x − a)·(y − b)   subject to   x + y <= c,  x >= a,  y >= b,

but multiplied out it has none that is seen. With u_i for each factor f_i it reads: maximise the product
of the u_i subject to 0 < u_i <= f_i(x). At the maximum u_i is f_i(x).

No factor may be negative together with another one, which bounds and affine rows have to show for all
factors but one. Where a factor is 0, or that one is negative, the product is at most 0: these points are
not better than any others, and have no image (see `positive`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from hcmodel.atoms import cones
from hcmodel.atoms.rules import Argument
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.sparse_data import dense
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import expanded_with
from hcmodel.facts.polynomials import Sums, stacked
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.ranges import sign_of
from hcmodel.maps.algebra.variables_in import variables_in
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums, text_of
from hcmodel.records import replace

Powers = list[tuple[Expression, float]]


class Factors(Map):
    """u_i <= f_i(x) for the factors of an objective; see the module."""

    name = "factors"
    summary = "u <= f(x) for each factor f of a product that is maximised"
    literature = "Nash 1950; Boyd, Vandenberghe 2004, section 3.5"
    example = """
    # Nash's bargaining problem.
    var x, y in [0, 10]

    maximize (x - 1)*(y - 2)

    subject to
        feasible: x^2 + y^2 <= 40
        first: x >= 1
        second: y >= 2
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if model.written is None:
            return
        found: Powers = []
        product, sign, shift = _without_constants(model.written)
        weight = sign * _collect(product, 1.0, found)
        if len(found) < 2 or any(power <= 0 for _, power in found):
            return
        meaning = {
            v: symbol_sums(model.symbols, model.symbols.of_variable(v)) for v in model.variables
        }
        factors = [
            (expanded_with(model.symbols, each, meaning).reshaped(()), power)
            for each, power in found
        ]
        if not all(each.key.size == 1 for each, _ in factors):
            yield _substituted(model, weight, factors, shift)


def _without_constants(node: Expression) -> tuple[Expression, float, float]:
    """What is left of a sum without its constants, the sign that it has, and their sum."""
    sign, shift = 1.0, 0.0
    while isinstance(node, Apply) and node.atom.summed:
        signs = node.atom.signs(len(node.args))
        varying = [place for place, each in enumerate(node.args) if each.variables()]
        rest = [place for place in range(len(node.args)) if place not in varying]
        values = [dense(node.args[place].value) for place in rest]
        if len(varying) != 1 or any(each is None for each in values):
            break
        pairs = zip(rest, values, strict=True)
        shift += sign * sum(signs[place] * float(np.sum(value)) for place, value in pairs)
        sign, node = sign * signs[varying[0]], node.args[varying[0]]
    return node, sign, shift


def _collect(node: Expression, power: float, found: Powers) -> float:
    """The factors of a scalar with their powers; what it returns is the product of the constants."""
    if not node.variables():
        value = dense(node.value)
        with np.errstate(all="ignore"):
            return np.nan if value is None else float(np.sum(value) ** power)
    if isinstance(node, Apply) and node.atom.cone_form is cones.PRODUCT and node.size == 1:
        inside = node.args[0]
        entries = [inside[place] for place in np.ndindex(inside.shape)]
        return float(np.prod([_collect(each, power, found) for each in entries]))
    if isinstance(node, Apply) and node.size == 1 and all(each.size == 1 for each in node.args):
        if node.atom is ATOMS["neg"] and power == 1:
            return -_collect(node.args[0], power, found)
        facts = [
            Argument(each.shape) if each.variables() else Argument.from_value(each.value)
            for each in node.args
        ]
        exponents = node.atom.exponents(facts, dict(node.params))
        if exponents is not None and not any(each is None for each in exponents):
            powers = [float(np.asarray(each, dtype=float).sum()) * power for each in exponents]
            parts = zip(node.args, powers, strict=False)
            return float(np.prod([_collect(each, own, found) for each, own in parts]))
    found.append((node, power))
    return 1.0


def _substituted(
    model: Expanded, weight: float, factors: list[tuple[Sums, float]], shift: float
) -> Step | Obstacle:
    """The product of new variables; `shift` + `weight` times the product of the factors is minimised."""
    symbols, signed, unknown = model.symbols, [], 0
    for sums, power in factors:
        sign = sign_of(model, sums)
        if not sign:
            unknown += 1
            if unknown > 1 or power != 1:
                word = text_of(symbols, sums)
                return Obstacle("factors", f"the sign of the factor {word} is not known")
        if sign < 0:
            if power != round(power):
                return Obstacle("factors", f"the factor {text_of(symbols, sums)} is negative")
            weight *= (-1.0) ** power
        signed.append((sums if sign >= 0 else -sums, power))
    if not weight < 0:
        return Obstacle("factors", "the product is minimised")
    rows, parts = [], []
    new: dict[Variable, Sums] = {}
    for sums, power in signed:
        u = Variable((), name=fresh_name(model, "u"), pos=True)
        own = symbol_sums(symbols, symbols.of_variable(u))
        new[u] = sums
        rows.append(Row(own - sums, "<=", None))
        if power == round(power):
            parts += [own] * int(power)
        else:
            parts.append(symbol_sums(symbols, np.array(symbols.of_power(own, power))))
    product = _product(symbols, parts).scaled(weight)
    after = replace(
        model,
        objective=product + Sums.constant(shift, symbols.coding),
        rows=(*model.rows, *rows),
        variables=(*model.variables, *new),
        is_original=False,
        written=None,
    )
    return _Factors(new, after, shift, bool(unknown))


def _product(symbols: Symbols, parts: Sequence[Sums]) -> Sums:
    """The product of symbols; of two functions, each of one half, where they are too many for a term."""
    if len(parts) > symbols.coding.most:
        middle, prod = len(parts) // 2, ATOMS["prod"]
        halves = [stacked(each, symbols.coding) for each in (parts[:middle], parts[middle:])]
        functions = [symbols.of_function(prod, {"axis": None}, (each,), ()) for each in halves]
        parts = [symbol_sums(symbols, np.array(each)) for each in functions]
    return functools.reduce(Sums.times, parts)


class _Factors(Step):
    """Variables for the factors."""

    name = "factors"
    gone = ()

    def __init__(
        self, new: dict[Variable, Sums], after: Expanded, shift: float, unknown: bool
    ) -> None:
        self._shift = shift
        self.ceiling, self.late = shift if unknown else None, unknown
        self.new, self.after, self._factors = tuple(new), after, new
        inside = set().union(*(variables_in(after.symbols, sums) for sums in new.values()))
        self.outside = tuple(sorted(variable.name for variable in inside))

    def forward(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        for variable, sums in self._factors.items():
            value = evaluation.of(sums)
            point[variable] = np.where(value > 0, value, np.nan)

    def back(self, point: Points) -> None:
        """Nothing is gone."""

    def value_back(self, value: float) -> float:
        """At points without an image the product is no better than 0, at those with one no worse."""
        return min(value, self._shift)

    def tangent_back(self, point: Points, moves: Points) -> None:
        """Nothing is gone."""
