"""Which equalities are between symmetric matrices, so that the rows of one triangle say everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Constraint, Parameter
from hcmodel.expressions.model import Model
from hcmodel.records import replace
from hcmodel.reductions.reduction import Duals, ModelReduction
from hcmodel.solvers.algebra.symmetric import upper_entries

FloatArray = NDArray[np.float64]


def has_symmetric_value(parameter: Parameter) -> bool:
    """Whether the parameter's current data are a symmetric matrix, to rounding."""
    from hcmodel.facts.noncommutative import is_symmetric_value  # of models with matrices

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
    from hcmodel.facts.noncommutative import difference_is_symmetric

    return difference_is_symmetric(constraint.lhs, constraint.rhs, constraint.shape)


def _may_be_symmetric(constraint: Constraint) -> bool:
    shape = constraint.shape
    if constraint.sense != "==" or not _is_square(shape):
        return False
    return all(side.shape in ((), shape) for side in (constraint.lhs, constraint.rhs))


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1


class Triangle(ModelReduction):
    """Equalities between symmetric matrices keep the rows of the upper triangle.

    A row that stands for two entries has the sum of their multipliers; on the way back each entry gets
    half of it, so that the inner product with lhs − rhs is the same.
    """

    duals_at_points = False

    def __init__(self, before: Model, after: Model) -> None:
        super().__init__(before, after)
        deciding = [p for each in before.constraints for p in square_parameters(each)]
        self._symmetric = [(each, has_symmetric_value(each)) for each in dict.fromkeys(deciding)]

    @staticmethod
    def of(model: Model) -> Triangle:
        constraints = tuple(_upper(constraint) for constraint in model.constraints)
        changed = any(
            new is not old for new, old in zip(constraints, model.constraints, strict=True)
        )
        return Triangle(model, replace(model, constraints=constraints) if changed else model)

    def refresh(self) -> bool:
        """Rows are left out because data are symmetric."""
        return all(has_symmetric_value(parameter) == was for parameter, was in self._symmetric)

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        return self._mapped(duals, lambda dual: np.triu(dual + dual.T - np.diag(np.diag(dual))))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        return self._mapped(duals, lambda dual: 0.5 * (dual + dual.T))

    def _mapped(self, duals: Duals, change: Callable[[FloatArray], FloatArray]) -> Duals:
        if self.after is self.before:
            return duals
        pairs = zip(duals.rows, self.after.constraints, self.before.constraints, strict=True)
        rows = tuple(
            dual if dual is None or new is old else change(dual) for dual, new, old in pairs
        )
        return replace(duals, rows=rows)


def _upper(constraint: Constraint) -> Constraint:
    if constraint.entries is not None or not equates_symmetric(constraint):
        return constraint  # a map has kept a triangle already
    return constraint.like(entries=upper_entries(constraint.shape[0]))
