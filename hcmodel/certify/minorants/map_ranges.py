"""What is known of the values that each part of a declared map can take.

A part that is a variable has that variable's domain. Of others the interval is proven from the atoms'
facts; a matrix product of two bounded factors is bounded by the product of their sizes. A part whose
entries are a nonnegative variable's entry times something, as occupancies are, is nonnegative where that
weight is, which is asked of samples and said in the conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.code_map import map_of
from hcmodel.atoms.rules import Dependence
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.facts.node_facts import Facts
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain

# What an entry is: anything, a nonnegative variable's entry, such an entry times something.
OTHER, SHARE, WEIGHTED = 0, 1, 2
Kinds = NDArray[np.int64]


@dataclass(frozen=True)
class Range:
    """The set that one part of a map takes its values in.

    `selection` picks the coordinates from the part's entries: all of them, or one triangle of a
    symmetric variable. `nonnegative` is the smaller set that holds if the weights are nonnegative.
    """

    selection: scipy.sparse.csr_array
    domain: Domain
    nonnegative: Domain | None = None


def map_ranges(parts: Sequence[Expression]) -> list[Range]:
    """One range for each part, for the parameters' values of now."""
    facts = Facts()
    kinds = _kinds(parts)
    return [_range(part, facts, kinds[id(part)]) for part in parts]


def _range(part: Expression, facts: Facts, kinds: Kinds) -> Range:
    if isinstance(part, Variable):
        return Range(part.set.storing(), part.set.domain())
    whole = scipy.sparse.csr_array(scipy.sparse.eye_array(part.size))
    code = map_of(part)
    if code is not None:
        return Range(whole, Box(*code.bounds(part.size)))
    low, high = _interval(part, facts)
    box = Box(low, high)
    weighted = np.ravel(kinds) == WEIGHTED
    if not (weighted & (low < 0)).any():
        return Range(whole, box)
    return Range(whole, box, replace(box, lower=np.where(weighted, np.maximum(low, 0.0), low)))


def _interval(part: Expression, facts: Facts) -> tuple[np.ndarray, np.ndarray]:
    low, high = (np.broadcast_to(end, part.shape) for end in facts[part].interval)
    if isinstance(part, Apply) and _is_product(part) and np.isinf([low, high]).any():
        sizes = []
        for factor in part.args:
            below, above = facts[factor].interval
            sizes.append(np.broadcast_to(np.maximum(np.abs(below), np.abs(above)), factor.shape))
        if all(np.isfinite(size).all() for size in sizes):
            product = part.atom.function(np, *sizes, **dict(part.params))
            largest = product * (1 + DATA_ROUNDING)
            low, high = np.maximum(low, -largest), np.minimum(high, largest)
    return np.array(np.ravel(low)), np.array(np.ravel(high))


def _is_product(node: Apply) -> bool:
    """Whether the node is a product of two factors, or a sum of such products of their entries."""
    shapes = [argument.shape for argument in node.args]
    return len(shapes) == 2 and node.atom.adds_products(shapes, dict(node.params))


def _acts_entrywise(node: Apply) -> bool:
    shapes = [argument.shape for argument in node.args]
    return node.atom.dependence(shapes, dict(node.params)) is Dependence.ELEMENTWISE


def _kinds(parts: Sequence[Expression]) -> dict[int, Kinds]:
    known: dict[int, Kinds] = {}
    for node in topological_order(parts):
        kinds = np.full(node.shape, OTHER)
        if isinstance(node, Variable):
            if np.all(node.set.interval[0] >= 0):
                kinds = np.full(node.shape, SHARE)
        elif isinstance(node, Apply):
            arguments = [known[id(argument)] for argument in node.args]
            if _is_product(node) and _acts_entrywise(node):
                paired = np.broadcast_arrays(*arguments)
                kinds = np.where((paired[0] == SHARE) | (paired[1] == SHARE), WEIGHTED, OTHER)
            elif node.atom.moves_entries:
                moved = node.atom.function(np, *arguments, **dict(node.params))
                kinds = np.asarray(moved, dtype=int)
        known[id(node)] = kinds
    return known
