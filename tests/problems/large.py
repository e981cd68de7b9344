"""Large models with sparse derivatives."""

from __future__ import annotations

import numpy as np

import hcmodel as hc


def chained_program(size: int, seed: int = 0) -> tuple[hc.Problem, hc.Variable]:
    """A geometric program whose terms and rows have three neighbouring variables each."""
    rng = np.random.default_rng(seed)
    x = hc.Variable(size, name="x", bounds=(0.1, 10))

    def terms(powers: np.ndarray, coefficients: np.ndarray) -> hc.Expression:
        logs = sum(powers[:, i] * hc.log(x[i : size - 2 + i]) for i in range(3))
        return coefficients * hc.exp(logs)

    count = size - 2
    cost = terms(rng.uniform(-2, 2, (count, 3)), rng.uniform(0.5, 2, count))
    row = terms(rng.uniform(0, 2, (count, 3)), rng.uniform(0.5, 2, count))
    return hc.Problem(hc.Minimize(hc.sum(cost)), [row <= 2.0]), x
