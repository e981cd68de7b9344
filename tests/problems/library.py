"""Problems with known optima, as models. The data come from other people's suites (`source`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import hcmodel as hc

GEOMETRIC_PROGRAMS: dict[str, dict[str, Any]] = {
    data["name"]: data
    for data in json.loads((Path(__file__).parent / "geometric_programs.json").read_text())
}


def posynomial(x: hc.Variable, coefficients: Any, exponents: Any) -> hc.Expression:
    """Σ_k c_k Π_i x_i^a_ki"""
    terms = hc.prod(x ** np.array(exponents, dtype=float), axis=1)
    return hc.sum(np.array(coefficients, dtype=float) * terms)


def geometric_program(name: str) -> tuple[hc.Problem, float]:
    """The named problem, with its published start, and its optimal value."""
    data = GEOMETRIC_PROGRAMS[name]
    x = hc.Variable(
        len(data["lower"]), name="x", bounds=(data["lower"], data["upper"]), start=data["start"]
    )
    constraints = [
        (posynomial(x, row["coefficients"], row["exponents"]) <= 1).named(f"row{number}")
        for number, row in enumerate(data["inequalities"])
    ]
    constraints += [
        (posynomial(x, [row["coefficient"]], [row["exponents"]]) == 1).named(f"equal{number}")
        for number, row in enumerate(data["equalities"])
    ]
    objective = posynomial(x, **data["objective"])
    return hc.Problem(hc.Minimize(objective), constraints), float(data["optimal_value"])


def tank(**options: Any) -> tuple[hc.Problem, hc.Variable, hc.Constraint]:
    """Ex-CGP of Fatkhullin et al. (2025): optimum 5 at (2, 1/2), multiplier 1."""
    x = hc.Variable(2, name="x", bounds=(0.4, 3), **options)
    area = (x[0] * x[1] <= 1).named("area")
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area]), x, area
