"""Cone forms of atoms: bounds of a result, by rows in cones, from bounds of the arguments.

A cone form is a function of a builder (`hcmodel.reductions.cone_rows.ConeRows`, which the reduction to
a cone program hands in), of affine bounds of the arguments, and of the static parameters. It returns an
affine bound of the result, or None where it does not apply. Atoms import no solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ConeForm = Callable[[Any, Sequence[Any], dict[str, Any]], Any]


@dataclass(frozen=True)
class ConeForms:
    """One form for each way in which arguments and result are seen, as the four curvatures of an atom.

    `plain`: both as they are; `log`: both through their logarithms; `log_to_plain`: arguments through
    their logarithms; `plain_to_log`: the result through its logarithm.
    """

    plain: ConeForm | None = None
    log: ConeForm | None = None
    log_to_plain: ConeForm | None = None
    plain_to_log: ConeForm | None = None


def first(cone: Any, arguments: Sequence[Any], params: dict[str, Any]) -> Any:
    """The bound of the argument itself."""
    return arguments[0]


EXP = ConeForms(plain=lambda cone, a, params: cone.exp(a[0]), plain_to_log=first)
LOG = ConeForms(plain=lambda cone, a, params: cone.log(a[0]), log_to_plain=first)
SQUARE = ConeForms(plain=lambda cone, a, params: cone.square(a[0]))
SQRT = ConeForms(plain=lambda cone, a, params: cone.power_of(a[0], 0.5))
INVERSE = ConeForms(plain=lambda cone, a, params: cone.power_of(a[0], -1.0))
ENTROPY = ConeForms(plain=lambda cone, a, params: cone.entropy(a[0]))
PRODUCT = ConeForms(log=lambda cone, a, params: cone.summed(a[0], params["axis"]))


def divergence(cone: Any, arguments: Sequence[Any], params: dict[str, Any]) -> Any:
    """a·log(a/b) − a + b."""
    a, b = arguments
    return cone.relative_entropy(a, b) - a + b


def softplus(cone: Any, arguments: Sequence[Any], params: dict[str, Any]) -> Any:
    """log(1 + exp(a))."""
    return cone.log_sum_exp_of([arguments[0], arguments[0].scaled(0.0)])


def log_sum_exp(cone: Any, arguments: Sequence[Any], params: dict[str, Any]) -> Any:
    return cone.log_sum_exp_along(arguments[0], params["axis"])


def euclidean_norm(cone: Any, arguments: Sequence[Any], params: dict[str, Any]) -> Any:
    if params["p"] != 2.0:
        return None
    return cone.norm_along(arguments[0], params["axis"])


def power(cone: Any, arguments: Sequence[Any], params: dict[str, Any]) -> Any:
    """a^p with one constant exponent for all entries, for a >= 0 (any sign where p is 2)."""
    base, exponent = arguments
    if not exponent.is_constant or np.unique(exponent.offset).size != 1:
        return None
    p = float(exponent.offset[0])
    if p == 2.0:
        return cone.square(base)
    if p in (0.0, 1.0):
        return None
    return cone.power_of(base, p)


DIVERGENCE = ConeForms(plain=divergence)
SOFTPLUS = ConeForms(plain=softplus)
LOG_SUM_EXP = ConeForms(plain=log_sum_exp)
NORM = ConeForms(plain=euclidean_norm)
POWER = ConeForms(plain=power)
