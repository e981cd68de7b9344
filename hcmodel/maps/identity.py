"""The variables themselves, after the model was multiplied out.

Some models are convex as they are, and no rule sees it because of how they are written: revenue
p @ (a − B p) is a concave quadratic where B + Bᵀ ⪰ 0, n·log(n / Σ n) a relative entropy, and
log(1 − 1/(1 + exp(−z))) is −z − log(1 + exp(−z)). Multiplied out and gathered again (`gather`) they are
sums of functions that the proof knows.

Products of two variables can only be convex next to the squares of both, and never in an equality; models
that have others are not tried. An exception is the objective: 7 − 2·x·y·z is least where the logarithm of
the product is largest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums
from hcmodel.facts.symbols import Opaque
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.inverse_entries import is_inverse
from hcmodel.maps.algebra.inverse_terms import is_semidefinite_by_sets
from hcmodel.maps.map import Map, Obstacle, SameVariables, Step


class Identity(Map):
    """The model multiplied out; see the module."""

    name = "identity"
    summary = "the variables themselves; the model is multiplied out and gathered again"
    literature = "Boyd, Vandenberghe 2004, section 3.2"
    example = "linear_demand.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not model.is_original:
            return
        product = maximised_product(model.objective)
        if _may_be_convex(model) or (product is not None and is_positive(model, product)):
            yield _MultipliedOut(model)


def maximised_product(objective: Sums) -> Sums | None:
    """The product −w·x·y·… with w > 0 that is minimised beside a constant; None for other objectives."""
    product = maximised_term(objective)
    return None if product is None or product.degrees[0] < 2 else product


def maximised_term(objective: Sums) -> Sums | None:
    """The same for a product of any number of factors, one among them."""
    product = objective.chosen(objective.key != ONE)
    return None if product.key.size != 1 or product.weight[0] > 0 else product


def is_positive(model: Expanded, product: Sums) -> bool:
    """Whether all factors of a product are positive."""
    return all(model.symbols.lower_of(each) > 0 for each in product.symbols_used().tolist())


def _may_be_convex(model: Expanded) -> bool:
    """Whether something can be gathered, and no product is in the way."""
    equations = [each for each in model.functions() if each.atom.equation is not None]
    if not all(_is_inverse_times(model, each) for each in equations):
        return False
    if any(row.sense == "==" and (row.sums.degrees > 1).any() for row in model.rows):
        return False
    products = [sums for sums in model.arrays if (sums.degrees > 1).any()]
    gathered = bool(products) or model.symbols.logs_rewritten
    gathered = gathered or any(map(is_inverse, model.functions()))
    return gathered and all(_beside_squares(model, sums) for sums in products)


def _is_inverse_times(model: Expanded, function: Opaque) -> bool:
    """Whether it is solve(P, B) for a semidefinite P, so that it has entries of the inverse of P."""
    matrix = function.arguments[0]
    return function.atom is ATOMS["solve"] and is_semidefinite_by_sets(model.symbols, matrix)


def _beside_squares(model: Expanded, sums: Sums) -> bool:
    """Whether each product of two variables stands in a sum with the squares of both."""
    digits, entry = sums.digits, sums.entry
    owned = np.zeros(model.symbols.count + 1, dtype=bool)
    for source, _, symbols in model.symbols.grouped(sums.symbols_used()):
        owned[symbols + 1] = isinstance(source, Variable)
    both = (sums.degrees == 2) & (owned[digits].sum(axis=1) == 2)
    pairs = np.sort(digits[both], axis=1)[:, -2:]
    places = entry[both][:, None] * (model.symbols.count + 1) + pairs
    squared = places[pairs[:, 0] == pairs[:, 1]]
    return bool(np.isin(places, squared).all())


class _MultipliedOut(SameVariables):
    """The model as it was multiplied out."""

    name = "identity"

    def __init__(self, model: Expanded) -> None:
        self.after = model
