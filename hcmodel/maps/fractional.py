"""Ratios with one denominator: t = 1/D(x) and y = t·x in place of x (Charnes and Cooper).

With t = 1/D(x) and y = t·x, a ratio M(x)/D(x) is t·M(y/t), the perspective of M: affine where M is, and
convex where M is. Rows are multiplied by t > 0, so that they become perspectives too, and the set X
becomes the cone of all t·x (`scaled_sets`). What ties t to y is

    D affine:                    t·D(y/t) == 1, an affine row;
    M >= 0 convex, D concave:    t·D(y/t) >= 1, as a larger t does not improve the objective t·M.

Every x with D(x) > 0 has its point (y, t) with the same value, and no point (y, t) has a lower value than
x = y/t. A solution with t = 0 is no point x: the infimum is not attained. What comes back is judged in x.

Rows with other denominators are multiplied by these first (`denominators`), where their sign is known.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import ONE, Sums
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.ranges import affine_range, is_affine, sign_of
from hcmodel.maps.algebra.rewriting import applied, without
from hcmodel.maps.algebra.scaled_sets import ScaledSet, scaled_set
from hcmodel.maps.algebra.scaling import Scaling
from hcmodel.maps.algebra.variables_in import linked_variables, variables_in
from hcmodel.maps.map import (
    Map,
    Obstacle,
    Points,
    Step,
    described,
    fresh_name,
    symbol_sums,
    text_of,
)
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Denominator:
    """A symbol that is sign/D with D > 0, or a power of it; `sums` is D."""

    sums: Sums
    sign: float
    powers: dict[int, int]
    """For each symbol the power of 1/D that it is, up to the sign."""


def denominators(symbols: Symbols, sums: Sums) -> list[tuple[Sums, dict[int, int]]]:
    """What the ratios in an array divide by, each with the symbols that are powers of 1/D."""
    found: dict[tuple[bytes, ...], tuple[Sums, dict[int, int]]] = {}
    for symbol in sums.symbols_used().tolist():
        base, power = symbols.power(symbol)
        if power >= 0:
            continue
        times = 1
        if power == round(power):
            times = int(-power)
        else:
            number = symbols.of_power(base, -power)
            base = symbol_sums(symbols, np.array(number))
        found.setdefault(base.content(), (base, {}))[1][symbol] = times
    return list(found.values())


class Fractional(Map):
    """t = 1/D, y = t·x; see the module."""

    name = "fractional"
    summary = "t = 1/D(x) and y = t x for a common denominator D; back: x = y/t"
    literature = "Charnes, Cooper 1962; Schaible 1974"
    example = "linear_fractional.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        below = common_denominator(model, self.name)
        if isinstance(below, Obstacle):
            yield below
        elif below is not None:
            if is_affine(model, below.sums):
                yield Ratio.of(model, below, "==", self.name)
            else:
                above = numerator(model, below, self.name)
                if isinstance(above, Obstacle):
                    yield above
                elif sign_of(model, above) > 0:
                    yield Ratio.of(model, below, ">=", self.name)


def common_denominator(model: Expanded, name: str) -> Denominator | Obstacle | None:
    """The one denominator of the objective; an obstacle where there are several or its sign is open."""
    below = denominators(model.symbols, model.objective) or _inside(model)
    if len(below) > 1:
        words = " and ".join(text_of(model.symbols, each) for each, _ in below[:2])
        return Obstacle(name, f"the objective has different denominators: {words}")
    for base, powers in below:
        owners = variables_in(model.symbols, base)
        if any(model.symbols.roles.get(each) == "reciprocal" for each in owners):
            continue  # 1/t for a t that is 1/D itself
        sign = sign_of(model, base)
        if not sign or may_vanish(model, base):
            word = text_of(model.symbols, base)
            return Obstacle(name, f"the sign of the denominator {word} is not known")
        return Denominator(base if sign > 0 else -base, float(sign), powers)
    return None


def may_vanish(model: Expanded, sums: Sums) -> bool:
    """Whether a nonnegative scalar is 0 at points of the model that count (`Expanded.closed`)."""
    if not model.closed or not model.closed & variables_in(model.symbols, sums):
        return False
    return not float(model.symbols.interval(sums)[0]) > 0


def _inside(model: Expanded) -> list[tuple[Sums, dict[int, int]]]:
    """Affine denominators inside of the functions of the objective, such as the largest of ratios."""
    found: dict[tuple[bytes, ...], tuple[Sums, dict[int, int]]] = {}
    for function in model.symbols.functions(model.objective.symbols_used()):
        for argument in function.arguments:
            for base, powers in denominators(model.symbols, argument):
                if is_affine(model, base):
                    found.setdefault(base.content(), (base, {}))[1].update(powers)
    return list(found.values())


def numerator(model: Expanded, below: Denominator, name: str) -> Sums | Obstacle:
    """M where the objective is M/D plus a constant, and nothing else has D."""
    objective = model.objective
    digits = np.array([symbol + 1 for symbol in below.powers])
    with_ratio = np.asarray(np.isin(objective.digits, digits).any(axis=1))
    if (objective.key[~with_ratio] != ONE).any():
        return Obstacle(name, "the objective has terms beside the ratio")
    if any(np.isin(row.sums.symbols_used() + 1, digits).any() for row in model.rows):
        return Obstacle(name, "rows have the denominator of the objective, which is not affine")
    if digits.size > 1 or set(below.powers.values()) != {1}:
        return Obstacle(name, "the denominator has several powers")
    return without(objective.chosen(with_ratio), int(digits[0])).scaled(below.sign)


class Ratio(Step):
    """y and t in place of x."""

    def __init__(
        self,
        name: str,
        below: Sums,
        t: Variable,
        sets: dict[Variable, ScaledSet],
        after: Expanded,
        alone: Variable | None,
    ) -> None:
        self.name = name
        self._below, self._t, self._sets, self._alone = below, t, sets, alone
        self.gone = (*sets, *(() if alone is None else (alone,)))
        slacks = [slack for each in sets.values() for slack, _ in each.slacks]
        self.new = (t, *(each.new for each in sets.values()), *slacks)
        self.divisors = (t,)
        self.after = after
        self.texts = {each.new: f"{t.name} * {old.name}" for old, each in sets.items()}
        word = text_of(after.symbols, below)
        self.texts[t] = f"1 / ({word})" if " " in word else f"1 / {word}"

    @staticmethod
    def of(
        model: Expanded,
        below: Denominator,
        relation: str,
        name: str,
        linked: set[Variable] | None = None,
    ) -> Step | Obstacle:
        """`relation` is that of t·D(y/t) to 1; `linked` are the variables x, found where not given."""
        symbols = model.symbols
        alone = _alone(model, below.sums)
        bounds = _bounds(model, below.sums, relation)
        t = Variable((), name=fresh_name(model, "t"), pos=True, bounds=bounds)
        number = int(symbols.of_variable(t))
        symbols.roles[t] = "reciprocal"
        own = symbol_sums(symbols, np.array(number))
        linked = _linked(model, below) if linked is None else linked
        sets: dict[Variable, ScaledSet] = {}
        products: dict[int, tuple[int, int]] = {}
        for variable in model.variables:
            if variable in linked and variable is not alone:
                sets[variable] = each = scaled_set(
                    model, variable, np.full(variable.shape, number, dtype=np.int64)
                )
                pairs = zip(
                    np.ravel(symbols.of_variable(variable)).tolist(),
                    np.ravel(symbols.of_variable(each.new)).tolist(),
                    strict=True,
                )
                products.update({x: (u, number) for x, u in pairs})
        values = {
            symbol: _power(own, power).scaled(below.sign**power)
            for symbol, power in below.powers.items()
        }
        gone = np.array([*products, *values], dtype=np.int64)
        rows = [row for each in sets.values() for row in each.rows]
        if alone is not None:
            gone = np.append(gone, symbols.of_variable(alone).reshape(-1))
            values[int(symbols.of_variable(alone).reshape(-1)[0])] = symbol_sums(
                symbols, np.array(symbols.of_power(own, -1.0))
            )
        rewriting = Scaling(symbols, products, {number: own}, gone, values)
        if alone is None:
            rows.append(_tie(model, rewriting, below.sums, own, relation))
        used = [*sets] if alone is None else [*sets, alone]
        new = [t, *(each.new for each in sets.values())]
        new += [slack for each in sets.values() for slack, _ in each.slacks]
        after = applied(model, rewriting, gone=used, new=new, rows=map(rewriting.row, rows))
        if isinstance(after, np.ndarray):
            word = described(symbols, int(after[0]))
            return Obstacle(name, f"{word} appears outside the ratio")
        return Ratio(name, below.sums, t, sets, after, alone)

    def forward(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        with np.errstate(all="ignore"):
            below = evaluation.of(self._below)
            t = np.where(below > 0, 1.0 / below, np.nan)
        point[self._t] = t
        for old, each in self._sets.items():
            point[each.new] = t * point[old]
            each.forward(Evaluation(self.after.symbols, point), point)

    def back(self, point: Points) -> None:
        # a t that stands in no row may be anything: all is homogeneous
        t = np.maximum(point.get(self._t, np.ones(())), TINY)
        for old, each in self._sets.items():
            if each.new in point:
                point[old] = point[each.new] / t
        if self._alone is not None:
            point[self._alone] = (1.0 / t).reshape(self._alone.shape)


def _power(sums: Sums, power: int) -> Sums:
    total = sums
    for _ in range(power - 1):
        total = total.times(sums)
    return total


def _alone(model: Expanded, below: Sums) -> Variable | None:
    """The scalar variable that a denominator is; its place is taken by t alone."""
    if below.key.size != 1 or below.weight[0] != 1 or below.degrees[0] != 1:
        return None
    source, _ = model.symbols.source(int(below.key[0]) - 1)
    return source if isinstance(source, Variable) and source.size == 1 else None


def _bounds(model: Expanded, below: Sums, relation: str) -> tuple[float, float]:
    """The bounds of t = 1/D; t may come near to 0 where it is at most 1/D."""
    low, high = (float(end) for end in model.symbols.interval(below))
    if low <= 0 and is_affine(model, below):
        low, high = affine_range(model, below)
    least = 0.0 if relation == "<=" or not high > 0 else 1.0 / high
    most = 1.0 / low if low > TINY else np.inf  # a positive variable may be arbitrarily small
    return (most, least) if least > most else (least, most)  # D is a number, but for rounding


def _tie(model: Expanded, rewriting: Scaling, below: Sums, t: Sums, relation: str) -> Row:
    """The row of t·D(y/t) and 1."""
    whole = rewriting(below.times(t)) - Sums.constant(1.0, model.symbols.coding)
    if relation == ">=":
        return Row(-whole, "<=", None)
    return Row(whole, relation, None)


def _linked(model: Expanded, below: Denominator) -> set[Variable]:
    """The variables of the ratio, and those that share rows with them."""
    digits = np.array([symbol + 1 for symbol in below.powers])
    with_ratio = np.asarray(np.isin(model.objective.digits, digits).any(axis=1))
    if not with_ratio.any():  # it is inside of functions
        with_ratio[:] = True
    return linked_variables(model, variables_in(model.symbols, model.objective.chosen(with_ratio)))
