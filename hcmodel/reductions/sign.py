"""A maximisation as the minimisation of the negative. Nothing after it knows of the user's sign."""

from __future__ import annotations

from hcmodel.expressions.model import Maximize, Minimize, Model
from hcmodel.expressions.node import Apply, Expression
from hcmodel.expressions.table import ATOMS
from hcmodel.records import replace
from hcmodel.reductions.reduction import ModelReduction


class Sign(ModelReduction):
    """maximize F becomes minimize −F; the multipliers are those of the minimisation, as in CVXPY."""

    @staticmethod
    def of(model: Model) -> Sign:
        if isinstance(model.objective, Maximize):
            negative = Minimize(ATOMS["neg"].apply((model.objective.expression,)))
            return Sign(model, replace(model, objective=negative))
        return Sign(model, model)

    def value(self, value: float) -> float:
        return self.before.sign * value

    def value_back(self, value: float) -> float:
        return self.before.sign * value


def signed_objective(model: Model) -> tuple[Expression, float]:
    """The objective of a minimisation as sign times an expression, without a minus sign."""
    return signed(model.objective.expression, model.sign)


def signed(expression: Expression, sign: float = 1.0) -> tuple[Expression, float]:
    """An expression, which is sign times what is minimised, with without a minus sign."""
    if isinstance(expression, Apply) and expression.atom is ATOMS["neg"]:
        return expression.args[0], -sign
    return expression, sign
