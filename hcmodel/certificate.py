"""Certified lower bounds of the minimum, from linear minorants in hidden coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcmodel.forms import Form
from hcmodel.solvers.domain import Domain
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.theory import Constants

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LowerBound:
    """A number that the objective, to be minimised, cannot fall below."""

    value: float
    conditions: tuple[str, ...]
    points: int
    reference: FloatArray


def lower_bound(
    form: Form, evaluation: Evaluation, multipliers: FloatArray, *, target: float | None = None
) -> LowerBound | None:
    return None


def infeasibility(
    form: Form, evaluation: Evaluation, weights: FloatArray | None
) -> LowerBound | None:
    return None


def gradient_domination(
    evaluation: Evaluation, domain: Domain, multipliers: FloatArray, constants: Constants
) -> float | None:
    return None
