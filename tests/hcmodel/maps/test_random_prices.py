"""Random models of prices and demands: what is claimed agrees with a grid, whatever the map."""

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms
from tests.extent import first

GRID = np.stack(np.meshgrid(*[np.linspace(0.1, 4.0, 241)] * 2, indexing="ij"), axis=-1)


def terms(xp, price, slope):
    """What random sums are made of: `price` has two entries on its last axis."""
    p, q = price[..., 0], price[..., 1]
    d, e = xp.exp(-slope[0] * p), xp.exp(-slope[1] * q)
    total = 1 + d + e
    return [p * d, q * e, d, e, p, d * e, d**2, p * d / total, q * e / total, d / total, p * e]


# Signs that make each term convex in demands or in shares; 0: neither sign does, 2: both do.
BY_DEMAND = {0: -1, 1: -1, 2: 2, 3: 2, 4: 1, 6: 1}
BY_SHARES = {7: -1, 8: -1, 9: 2}


def random_sum(generator, seed):
    """Two terms of one family, and at times a third one of any kind and sign, which may spoil it."""
    weights = np.zeros(11)
    family = BY_SHARES if seed % 2 else BY_DEMAND
    for place in generator.choice(list(family), size=2, replace=False):
        sign = family[place] if family[place] != 2 else generator.choice([-1, 1])
        weights[place] = sign * generator.choice([1.0, 2.0])
    if generator.uniform() < 0.3:
        weights[generator.integers(11)] += generator.choice([-1.0, 1.0])
    return weights


@pytest.mark.parametrize("seed", [*first(10, range(24)), 144])
def test_what_is_proven_agrees_with_a_grid(seed):
    generator = np.random.default_rng(seed)
    slope = generator.uniform(0.5, 1.5, size=2)
    objective, row = random_sum(generator, seed), random_sum(generator, seed)
    on_grid = terms(np, GRID, slope)
    values = sum(w * each for w, each in zip(objective, on_grid, strict=True) if w)
    left = sum(w * each for w, each in zip(row, on_grid, strict=True) if w)
    limit = float(np.quantile(left, 0.6))
    price = hc.Variable(2, name="price", bounds=(0.1, 4.0))
    written = terms(hc, price, slope)
    problem = hc.Problem(
        hc.Minimize(sum(float(w) * each for w, each in zip(objective, written, strict=True) if w)),
        [sum(float(w) * each for w, each in zip(row, written, strict=True) if w) <= limit],
    )
    if discover(Forms(problem.model).bounds.after).substitution is None:
        return
    problem.solve()
    best = float(values[left <= limit].min())
    assert problem.status == "optimal"
    assert problem.solution.certificate.lower_bound <= best + 1e-6
    assert problem.value <= best + 1e-6
    assert problem.value >= best - 0.1  # the grid has steps of 0.016
