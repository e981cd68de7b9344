"""Which equalities are between symmetric matrices, so that the rows of one triangle say everything."""

from __future__ import annotations

from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Constraint, Parameter
from hcmodel.facts.noncommutative import difference_is_symmetric, is_symmetric_value


def has_symmetric_value(parameter: Parameter) -> bool:
    """Whether the parameter's current data are a symmetric matrix, to rounding."""
    return parameter.value is not None and is_symmetric_value(parameter.value)


def square_parameters(constraint: Constraint) -> tuple[Parameter, ...]:
    """The parameters whose values may decide whether the two sides are symmetric."""
    if not _may_be_symmetric(constraint):
        return ()
    return tuple(
        node
        for node in topological_order((constraint.lhs, constraint.rhs))
        if isinstance(node, Parameter) and _is_square(node.shape)
    )


def equates_symmetric(constraint: Constraint) -> bool:
    """Whether this is an equality with symmetric lhs − rhs, at the parameters' current values."""
    if not _may_be_symmetric(constraint):
        return False
    return difference_is_symmetric(constraint.lhs, constraint.rhs, constraint.shape)


def _may_be_symmetric(constraint: Constraint) -> bool:
    shape = constraint.shape
    fitting = all(side.shape in ((), shape) for side in (constraint.lhs, constraint.rhs))
    return constraint.sense == "==" and _is_square(shape) and fitting


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1
