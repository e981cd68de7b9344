"""The least value that an objective can have, by its interval over the variables' sets.

It needs no convexity: a sum of squares is nowhere below 0, so that a point at which all residuals of
equations vanish is a global minimum of it, whatever the equations are.
"""

from __future__ import annotations

import numpy as np

from hcmodel.certify.lower_bound import LowerBound
from hcmodel.expressions.model import Model
from hcmodel.facts.node_facts import Facts
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.oracle import Evaluation

ENCLOSURE = "enclosure"


def least_value(model: Model, evaluation: Evaluation) -> LowerBound | None:
    """A bound of a minimised objective; None where its interval has no lower end."""
    if any(parameter.value is None for parameter in model.parameters):
        return None
    low = float(np.min(Facts()[model.objective.expression].interval[0]))
    if not np.isfinite(low):
        return None
    return LowerBound(
        low - DATA_ROUNDING * abs(low),
        ("by an enclosure of all values that the objective can have",),
        0,
        evaluation.point,
        np.zeros(evaluation.rows.size),
        kind=ENCLOSURE,
    )
