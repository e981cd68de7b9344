"""A first look at a model: whether it can be convex as written at all, or maps should be tried first.

It decides nothing but the order. A model that fails the look is written out for the maps at once; where
none of them proves it, the proof as written is tried all the same.
"""

from __future__ import annotations

from hcmodel.expressions.leaves import Apply, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.curvature import can_be_log


def needs_a_map(model: Model) -> bool:
    """Whether an equality multiplies variables that cannot be in logarithms, or a policy is solved for.

    Equalities have to be affine in the coordinates, and the solution of a linear system whose matrix
    holds distributions, as of the visits of a decision process, is convex in none of theirs. Nor is that
    of one whose matrix holds an array of any sign which is not symmetric, as a closed loop does.
    """
    plain, policies, products = set[int](), set[int](), set[int]()
    turning = set[int]()
    for node in model.nodes:
        if isinstance(node, Variable):
            if not can_be_log(node):
                plain.add(id(node))
                if not node.set.is_symmetric:
                    turning.add(id(node))
            if node.set.is_distribution:
                policies.add(id(node))
        elif isinstance(node, Apply):
            arguments = [id(argument) for argument in node.args]
            solved = node.atom.equation is not None
            if solved and (arguments[0] in policies or arguments[0] in turning):
                return True
            inside = [each in plain for each in arguments]
            if any(inside):
                plain.add(id(node))
                multiplies = node.atom.is_multilinear and sum(inside) > 1
                if multiplies or not products.isdisjoint(arguments):
                    products.add(id(node))
            if not policies.isdisjoint(arguments):
                policies.add(id(node))
            if not turning.isdisjoint(arguments):
                turning.add(id(node))
    equalities = (row for row in model.constraints if row.sense == "==")
    return any(id(side) in products for row in equalities for side in (row.lhs, row.rhs))
