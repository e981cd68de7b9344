"""Products with a common positive factor: s and u = s·x in place of s and x.

Where variables x occur in products with one positive s, such as a size times rates, u = s·x makes the
products linear: s·x_i is u_i, and s·f(x) is the perspective s·f(u/s), convex where f is. A row without
the factor is multiplied by it; bounds l <= x <= h become l·s <= u <= h·s, straight. Each entry of x may
have an s of its own. The way back is x = u/s; where s = 0, bounds that are finite leave u = 0 only, and
any x will do. In general the objective may contain x only in products with s.

Where s may be 0, all points with s = 0 have the image u = 0, whatever x is. So the objective must have x
in products with s only, which are 0 there, and no other map may divide by u or s (`Expanded.closed`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.algebra.expanded import Evaluation, Expanded
from hcmodel.maps.algebra.rewriting import applied
from hcmodel.maps.algebra.scaled_sets import ScaledSet, scaled_set
from hcmodel.maps.algebra.scaling import Scaling
from hcmodel.maps.algebra.variables_in import linked_variables, variables_in
from hcmodel.maps.map import Map, Obstacle, Points, Step, described, symbol_sums
from hcmodel.records import replace
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Perspective(Map):
    """u = s·x; see the module."""

    name = "perspective"
    summary = "s > 0 and u = s x for the x that occur in products with s; back: x = u/s"
    literature = "Rockafellar 1970, section 5; Günlük, Linderoth 2010"
    example = """
    # A size and the rates at which it is used.
    var size in [1, 10]
    var rate[2] in [0, 3]

    maximize size*(2*rate[1] + rate[2] - rate[1]^2 - rate[2]^2) - 0.1*size^2

    subject to
        total: size*(rate[1] + rate[2]) <= 3
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        pairs = _products(model)
        for scale in model.variables:
            held = scale.set
            low = np.asarray(held.interval[0])
            if held.is_symmetric or not scale.size or (low < 0).any():
                continue
            partners = _partners(model, pairs, scale)
            roles = model.symbols.roles
            made = roles.get(scale) == "product" or any(each in roles for each in partners)
            if partners and not made:
                yield _substituted(model, scale, partners)


def _products(model: Expanded) -> Numbers:
    """All pairs of symbols that stand in a product, those inside of functions among them."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for sums in model.everywhere():
        digits = sums.digits
        several = digits[(digits > 0).sum(axis=1) > 1]
        for column in range(1, digits.shape[1]):
            for other in range(column):
                pair = several[:, [other, column]]
                found.append(pair[(pair > 0).all(axis=1)] - 1)
    return np.unique(np.concatenate(found), axis=0)


def _partners(model: Expanded, pairs: Numbers, scale: Variable) -> dict[Variable, Numbers]:
    """The variables that one variable multiplies, with the symbol of s for each entry, −1 for none."""
    symbols = model.symbols
    own = np.ravel(symbols.of_variable(scale))
    found: dict[Variable, Numbers] = {}
    hits = np.isin(pairs, own)
    chosen = hits.sum(axis=1) == 1
    ours = np.where(hits[chosen, 0], pairs[chosen, 0], pairs[chosen, 1])
    others = np.where(hits[chosen, 0], pairs[chosen, 1], pairs[chosen, 0])
    touched: set[Variable] = set()
    for symbol in np.unique(others).tolist():
        touched |= variables_in(symbols, symbol_sums(symbols, np.array(symbol)))
    touched.discard(scale)
    if scale.size == 1:
        every = linked_variables(model, touched, without=scale)
        return {v: np.full(v.shape, own[0], dtype=np.int64) for v in model.variables if v in every}
    for variable in model.variables:
        if variable not in touched or variable.set.is_symmetric or variable.set.is_distribution:
            continue
        numbers = symbols.of_variable(variable)
        scales = np.full(variable.size, -1, dtype=np.int64)
        for place, symbol in enumerate(np.ravel(numbers).tolist()):
            partners = np.unique(ours[others == symbol])
            if partners.size > 1:
                return {}  # two different factors
            if partners.size:
                scales[place] = partners[0]
        if (scales >= 0).any():
            found[variable] = scales.reshape(variable.shape)
    return found


def _substituted(
    model: Expanded, scale: Variable, partners: dict[Variable, Numbers]
) -> Step | Obstacle:
    symbols = model.symbols
    positive = bool(scale.set.positive or scale.pos or (np.asarray(scale.lower) > 0).all())
    if not positive and (alone := _alone(model, scale, partners)):
        reason = f"{alone} appears in the objective without {scale.name}, which may be 0"
        return Obstacle("perspective", reason)
    sets: dict[Variable, ScaledSet] = {}
    products: dict[int, tuple[int, int]] = {}
    for variable, scales in partners.items():
        sets[variable] = each = scaled_set(model, variable, scales, positive=positive)
        triples = zip(
            np.ravel(symbols.of_variable(variable)).tolist(),
            np.ravel(symbols.of_variable(each.new)).tolist(),
            np.ravel(scales).tolist(),
            strict=True,
        )
        products.update({x: (u, s) for x, u, s in triples})
    own = np.ravel(symbols.of_variable(scale)).tolist()
    factors: dict[int, Sums] = {s: symbol_sums(symbols, np.array(s)) for s in own}
    rewriting = Scaling(symbols, products, factors, np.array([*products], dtype=np.int64))
    rows = [row for each in sets.values() for row in each.rows]
    new = [each.new for each in sets.values()]
    new += [slack for each in sets.values() for slack, _ in each.slacks]
    after = applied(model, rewriting, gone=[*sets], new=new, rows=map(rewriting.row, rows))
    if isinstance(after, np.ndarray):
        word = described(symbols, int(after[0]))
        return Obstacle("perspective", f"{word} appears without the factor {scale.name}")
    if not positive:
        vanishing = {scale, *(each.new for each in sets.values())}
        after = replace(after, closed=after.closed | vanishing)
    return _Scaled(scale, partners, sets, after)


def _alone(model: Expanded, scale: Variable, partners: dict[Variable, Numbers]) -> str:
    """A variable that the objective has in a term without the factor; empty where there is none."""
    symbols, objective = model.symbols, model.objective
    without = objective.chosen(~objective.holding(symbols.of_variable(scale)))
    found = variables_in(symbols, without) & set(partners)
    return min((each.name for each in found), default="")


class _Scaled(Step):
    """u in place of x."""

    name = "perspective"

    def __init__(
        self,
        scale: Variable,
        scales: dict[Variable, Numbers],
        sets: dict[Variable, ScaledSet],
        after: Expanded,
    ) -> None:
        self._scale, self._sets, self.after = scale, sets, after
        self.gone = tuple(sets)
        slacks = [slack for each in sets.values() for slack, _ in each.slacks]
        self.new = (*(each.new for each in sets.values()), *slacks)
        self.texts = {each.new: f"{scale.name} * {old.name}" for old, each in sets.items()}
        numbers = np.ravel(after.symbols.of_variable(scale))
        self._places = {old: np.where(own < 0, -1, own - numbers[0]) for old, own in scales.items()}

    def _factors(self, old: Variable, point: Points) -> FloatArray:
        """The s of each entry of x."""
        values, places = np.ravel(point[self._scale]), self._places[old]
        return np.where(places < 0, 1.0, values[np.maximum(places, 0)])

    def forward(self, point: Points) -> None:
        for old, each in self._sets.items():
            point[each.new] = self._factors(old, point) * point[old]
            each.forward(Evaluation(self.after.symbols, point), point)

    def back(self, point: Points) -> None:
        for old, each in self._sets.items():
            if each.new not in point or self._scale not in point:
                continue  # it stands in no row
            factors = self._factors(old, point)
            middle = np.asarray(old.set.expand(np, old.set.domain().middle()), dtype=float)
            used = factors > TINY
            share = point[each.new] / np.where(used, factors, 1.0)
            point[old] = np.where(used, share, middle)
