"""The same model written once and built twice, by hcmodel and by CVXPY.

A model is a function of a tool: it makes variables with `tool.variable`, takes atoms from the tool,
and returns an objective and constraints. Names are hcmodel's; where CVXPY has an atom for what
hcmodel writes with several, the adapter says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

import hcmodel as hc
from hcmodel.proof.prove import Proof, prove

THEIR_NAMES = {
    "softplus": "logistic",
    "logsumexp": "log_sum_exp",
    "logdet": "log_det",
    "difference": "diff_pos",
    "one_minus": "one_minus_pos",
    "mul": "multiply",
    "monomials": "gmatmul",
}
Model = Callable[[Any], tuple[Any, list[Any]]]


class Ours:
    """hcmodel as it is."""

    def __getattr__(self, name: str) -> Any:
        return getattr(hc, name)

    def variable(self, shape: Any = (), low: Any = None, high: Any = None, **kind: Any) -> Any:
        return hc.Variable(shape, bounds=(low, high), **kind)

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def quad_over_lin(self, x: Any, y: Any) -> Any:
        return hc.sum(hc.square(x)) / y

    def matrix_frac(self, x: Any, P: Any) -> Any:
        return hc.quad_form(x, hc.inv(P))

    def tr_inv(self, X: Any) -> Any:
        return hc.trace(hc.inv(X))

    def one_minus(self, x: Any) -> Any:
        return 1 - x

    def difference(self, x: Any, y: Any) -> Any:
        return x - y

    def geo_mean(self, x: Any) -> Any:
        return hc.prod(x) ** (1 / x.size)

    def monomials(self, exponents: Any, x: Any) -> Any:
        return hc.exp(exponents @ hc.log(x))

    def xexp(self, x: Any) -> Any:
        return x * hc.exp(x)


class Theirs:
    """CVXPY under hcmodel's names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(cp, THEIR_NAMES.get(name, name))

    def variable(self, shape: Any = (), low: Any = None, high: Any = None, **kind: Any) -> Any:
        if kind.pop("PSD", None) is not None:
            return cp.Variable(shape, PSD=True)
        positive = low is not None and np.all(np.asarray(low) > 0)
        if positive:
            return cp.Variable(shape, pos=True)
        return cp.Variable(shape, nonneg=low is not None and np.all(np.asarray(low) >= 0), **kind)


def ours(model: Model) -> Proof:
    objective, constraints = model(Ours())
    return prove(objective.expression, objective.sign, constraints)


def theirs(model: Model) -> cp.Problem:
    objective, constraints = model(Theirs())
    return cp.Problem(objective, constraints)
