"""Random models near the maps of the catalogue: what is claimed of them against many local searches.

    python -m tests.benchmarks catalogue [COUNT] [SEED]

Each family draws members of one map and, by one more term or row, models that look alike and are no
members. SLSQP runs from random points. Nothing that it finds may be below a certified bound or better
than a value called optimal. Where it ends at two different values, the model has several minima or SLSQP
has stopped too early; how many of these are proven is counted.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import hcmodel as hc
from hcmodel.expressions.variable_sets import SimplexSet
from hcmodel.solvers.oracle import Evaluation, Oracle

FloatArray = NDArray[np.float64]
Generator = np.random.Generator
Family = Callable[[Generator], hc.Problem]

STARTS = 8
# A point counts as feasible, and a value as lower, by this much relatively.
FEASIBLE = 1e-8
LOWER = 1e-5
# Two minima are different from this relative distance of their values on.
APART = 1e-2


def ratios(rng: Generator) -> hc.Problem:
    """One affine denominator; else a second one, a product, or a concave numerator."""
    x = hc.Variable(3, name="x", bounds=(0.2, 3))
    bottom = rng.uniform(0.2, 1, 3) @ x + 1
    top = rng.normal(size=3) @ x + rng.uniform(0, 1) * hc.sum(hc.square(x)) + 2
    other = rng.uniform(0.2, 1, 3) @ x + 0.5
    more: list[Any] = [
        0.0,
        (rng.normal(size=3) @ x) / other,
        x[0] * x[1],
        -hc.sum(hc.square(x)) / bottom,
        x[2] / bottom,
    ]
    rows = [rng.uniform(0, 1, 3) @ x <= 4, hc.sum(x) / bottom >= 0.3]
    extra = more[rng.integers(len(more))]
    return hc.Problem(hc.Minimize(top / bottom + extra), rows[: rng.integers(3)])


def prices(rng: Generator) -> hc.Problem:
    """Revenue of demands that fall in their own price; else cross terms and bent caps."""
    p = hc.Variable(2, name="p", bounds=(0.1, 6))
    demand = hc.exp(-p * rng.uniform(0.3, 1, 2))
    revenue = hc.sum(p * demand) if rng.uniform() < 0.5 else hc.sum(p * (8 - p))
    more: list[Any] = [0.0, p[0] * p[1], hc.sin(3 * p[0]), -demand[0] * demand[1], hc.sum(demand)]
    rows = [hc.sum(demand) <= 1.2, p[0] * p[1] >= 0.5, p[0] - p[1] <= 1]
    chosen = rows[rng.integers(3)]
    factor = rng.uniform(-1, 1)
    return hc.Problem(hc.Maximize(revenue + factor * more[rng.integers(len(more))]), [chosen])


def shares(rng: Generator) -> hc.Problem:
    """Logit revenues with a cap on a share; else costs of prices themselves."""
    p = hc.Variable(2, name="p", bounds=(0.1, 10))
    weights = hc.exp(rng.uniform(0, 2, 2) - p)
    share = weights / (1 + hc.sum(weights))
    more: list[Any] = [
        0.0,
        hc.sum(share * rng.normal(size=2)),
        hc.square(p[0] - 2),
        p[0] * share[1],
    ]
    rows = [share[0] <= 0.4, p[0] <= p[1] + 1]
    objective = hc.sum(p * share) - rng.uniform(0, 2) * more[rng.integers(len(more))]
    return hc.Problem(hc.Maximize(objective), rows[: rng.integers(3)])


def policies(rng: Generator) -> hc.Problem:
    """Discounted processes linear in visits; else costs of the policy itself."""
    states, actions, discount = 3, 2, 0.9
    moves = rng.dirichlet(np.ones(states), size=(states, actions))
    pi = hc.Variable((states, actions), name="pi", simplex=True)
    step = hc.einsum("sa,sat->st", pi, moves)
    visits = hc.solve(np.eye(states) - discount * step.T, np.ones(states) / states)
    both = hc.reshape(visits, (states, 1)) * pi
    more: list[Any] = [
        0.0,
        hc.sum(pi * rng.normal(size=(states, actions))),
        -hc.sum(hc.square(both)),
        hc.sum(hc.square(both)),
        visits[0] * visits[1],
    ]
    cost = hc.sum(both * rng.uniform(size=(states, actions)))
    rows = [
        hc.sum(both * rng.uniform(size=(states, actions))) <= 6,
        pi[0, 0] <= 0.5 * pi[1, 0] + 0.4,
    ]
    extra = rng.uniform(0.5, 3) * more[rng.integers(len(more))]
    return hc.Problem(hc.Minimize(cost + extra), rows[: rng.integers(3)])


def gains(rng: Generator) -> hc.Problem:
    """Regulators as functions of the gain; else rows and costs of the gain itself."""
    plant = rng.normal(size=(2, 2)) - 1.5 * np.eye(2)
    inputs = rng.normal(size=(2, 1))
    K = hc.Variable((1, 2), name="K", bounds=(-6, 6), start=np.zeros((1, 2)))
    closed = plant + inputs @ K
    P = hc.lyap(closed, np.eye(2))
    cost = hc.trace((np.eye(2) + K.T @ K) @ P)
    more: list[Any] = [
        0.0,
        -hc.sum(hc.square(K)),
        hc.trace(P),
        hc.sum(hc.sin(3 * K)),
        K[0, 0] * K[0, 1],
    ]
    rows = [K[0, 0] <= 0.3, hc.trace(P) <= 4]
    return hc.Problem(hc.Minimize(cost + more[rng.integers(len(more))]), rows[: rng.integers(3)])


def chains(rng: Generator) -> hc.Problem:
    """Squares of residuals y - g(x); else a second curve, a wave, or a saddle."""
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    a, b = rng.uniform(0.5, 2, 2)
    value = hc.square(x[0] - rng.normal()) + a * hc.square(x[1] - b * hc.square(x[0]))
    more: list[Any] = [0.0, hc.square(x[0] - hc.square(x[1])), hc.sin(4 * x[1]), x[0] * x[1], x[1]]
    return hc.Problem(hc.Minimize(value + rng.uniform(-2, 2) * more[rng.integers(len(more))]))


def products(rng: Generator) -> hc.Problem:
    """Posynomials; else a term with the wrong sign, or a wave."""
    x = hc.Variable(3, name="x", bounds=(0.3, 4))
    exponents = rng.normal(size=(4, 3)).round(1)
    terms = hc.exp(exponents @ hc.log(x)) * rng.uniform(0.2, 2, 4)
    more: list[Any] = [0.0, -x[0] * x[1], hc.sin(3 * x[2]), x[0] / x[1], -hc.sqrt(x[2] * x[0])]
    rows = [x[0] * x[1] <= 2, x[0] + x[1] >= 1, x[1] * x[2] + x[0] <= 5]
    extra = rng.uniform(0.2, 2) * more[rng.integers(len(more))]
    return hc.Problem(hc.Minimize(hc.sum(terms) + extra), rows[: rng.integers(4)])


def inverses(rng: Generator) -> hc.Problem:
    """Diagonals and one product through an inverse; else entries whose signs are turned."""
    x = hc.Variable(3, name="x", bounds=(0.4, 3))
    matrix = hc.diag(x) + 0.3 * np.ones((3, 3))
    inverse = hc.inv(matrix)
    more: list[Any] = [0.0, hc.sum(x), -hc.logdet(matrix), -hc.trace(inverse), hc.sum(hc.square(x))]
    value = hc.trace(inverse @ np.diag(rng.uniform(0.5, 2, 3)))
    return hc.Problem(hc.Minimize(value + rng.uniform(0, 2) * more[rng.integers(len(more))]))


def possible_zeros(rng: Generator) -> hc.Problem:
    """Geometric programs that exclude 0 by a row or a function; else nothing does, or a term bends."""
    x = hc.Variable(3, name="x", bounds=(0, 4))
    a = rng.uniform(0.3, 2, 3)
    more: list[Any] = [1 / x[0], x[2] ** 0.5, -x[2], x[0] * x[2], -hc.log(x[1] + 0.1), 0.0]
    rows = [
        x[0] * x[1] >= rng.uniform(0.5, 3),
        x[0] ** 2 * x[2] <= 2,
        x[2] * (x[0] - 0.2) >= 0,
        x[1] * x[2] >= 0.3,
    ]
    chosen = [row for row in rows if rng.uniform() < 0.5]
    objective = a[0] * x[0] * x[1] + a[1] * x[2] + a[2] * more[rng.integers(len(more))]
    return hc.Problem(hc.Minimize(objective), chosen)


def outsides(rng: Generator) -> hc.Problem:
    """Rising functions around convex ones, and squared ratios; else around others, or two of them."""
    x = hc.Variable(3, name="x", bounds=(0.1, 2))
    half = rng.normal(size=(3, 3))
    inner = hc.quad_form(x, half @ half.T + 0.1 * np.eye(3)) + rng.uniform(0, 1, 3) @ x + 0.1
    top = rng.uniform(0.2, 1, 3) @ x
    others: list[Any] = [
        hc.sqrt(inner),
        hc.log(inner),
        inner / hc.square(top),
        -hc.square(top) / inner,
        hc.sqrt(inner) + hc.log(top),
        inner / hc.square(top) + x[0] * x[1],
        hc.sqrt(x[0] * x[1] + inner),
    ]
    rows = [hc.sum(x) <= 3, x[0] * x[1] >= 0.2, top >= 0.5]
    objective = others[rng.integers(len(others))]
    return hc.Problem(hc.Minimize(objective), rows[: rng.integers(4)])


def gains_of_many(rng: Generator) -> hc.Problem:
    """Products of concave functions that are maximised; else one factor is convex or may be negative."""
    x = hc.Variable(3, name="x", bounds=(0, 3))
    factors: list[Any] = [
        x[0],
        rng.uniform(0, 1, 3) @ x + 0.1,
        6 - hc.sum(x),
        hc.sqrt(x[1] + 0.1),
        hc.square(x[2]) + 0.1,
        x[0] - x[1],
        4 - hc.square(x[0]),
    ]
    chosen = rng.choice(len(factors), size=rng.integers(2, 4), replace=False)
    product: Any = 1.0
    for number in chosen:
        product = product * factors[number]
    rows = [hc.sum(x) <= 4, x[0] * x[2] <= 1, x[1] >= 0.5]
    return hc.Problem(hc.Maximize(product), rows[: rng.integers(4)])


def comparisons(rng: Generator) -> hc.Problem:
    """Likelihoods and rows of ratios with a normalisation; else terms or rows that depend on sizes."""
    kinds: list[dict[str, Any]] = [{"bounds": (0.01, 1)}, {"bounds": (0, 1)}, {"simplex": True}]
    w = hc.Variable(3, name="w", **kinds[rng.integers(3)])
    value: Any = 0.0
    for i, j in ((0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)):
        value = value + rng.integers(1, 5) * (hc.log(w[i]) - hc.log(w[i] + w[j]))
    more: list[Any] = [
        0.0,
        -hc.square(hc.log(w[0]) - hc.log(w[1])),
        hc.log(w[0] + 2 * w[1]) - hc.log(w[2]),
        w[0] * w[1] / w[2],
        2 * hc.sin(6 * w[0]),
        -hc.abs(hc.log(w[1]) - hc.log(w[2])),
        2 * hc.log(w[2]),
    ]
    rows = [w[0] >= 2 * w[1], w[2] >= 0.2, w[1] <= 0.3, w[0] * w[1] <= 0.1 * w[2]]
    norms = [hc.sum(w) == 1, hc.sum(w) == 1, hc.sum_squares(w) == 0.5, w[0] + 2 * w[1] + w[2] == 1]
    chosen = [row for row in rows if rng.uniform() < 0.3]
    if not w.set.is_distribution:
        chosen.append(norms[rng.integers(4)])
    return hc.Problem(hc.Maximize(value + more[rng.integers(len(more))]), chosen)


def horizons(rng: Generator) -> hc.Problem:
    """Two or three stages multiplied out; else a policy for two of them, or costs of a policy alone."""
    moves = rng.dirichlet(np.ones(2), (2, 2)) * (rng.uniform(size=(2, 2, 1)) < 0.8)
    several = [hc.Variable((2, 2), name=f"pi{stage}", simplex=True) for stage in range(3)]
    if rng.uniform() < 0.2:
        several[2] = several[rng.integers(2)]
    often: Any = rng.dirichlet(np.ones(2))
    cost: Any = 0.0
    used: Any = 0.0
    for policy in several[: rng.integers(2, 4)]:
        both = hc.reshape(often, (2, 1)) * policy
        cost = cost + hc.sum(both * rng.normal(size=(2, 2)).round(1))
        used = used + hc.sum(both * np.array([[0.0, 1.0], [0.5, 0.0]]))
        often = hc.einsum("sa,saz->z", both, moves)
    more: list[Any] = [
        0.0,
        hc.sum_squares(often),
        several[1][0, 0] * several[0][1, 0],
        hc.square(several[1][0, 0]),
        -hc.square(often[0]),
        often[0] - often[1],
    ]
    rows = [used <= rng.uniform(0.5, 2), often[0] >= 0.2, several[1][1, 0] >= 0.3]
    chosen = [row for row in rows if rng.uniform() < 0.3]
    return hc.Problem(hc.Minimize(cost + more[rng.integers(len(more))]), chosen)


def nested_choices(rng: Generator) -> hc.Problem:
    """Profits of nested logit; else slopes that differ much, lower bounds, or costs of the prices."""
    low = rng.choice([0.0, 0.0, 2.0, 4.0])
    price = hc.Variable(3, name="price", bounds=(low, low + rng.uniform(1, 8)))
    slopes = np.full(3, rng.uniform(0.5, 2))
    if rng.uniform() < 0.4:
        slopes[1] *= rng.uniform(0.2, 3)
    gamma = rng.uniform(0.2, 1.5) if rng.uniform() < 0.3 else rng.uniform(0.3, 0.9)
    value = hc.exp(rng.uniform(0, 3, 3) - slopes * price)
    nest = value[0] + value[1]
    below = 1 + nest**gamma + value[2]
    share = hc.hstack([value[0] * nest ** (gamma - 1), value[1] * nest ** (gamma - 1), value[2]])
    more: list[Any] = [
        0.0,
        0.0,
        -hc.square(share[0] / below),
        -0.1 * hc.sum_squares(price),
        share[0] * share[2] / hc.square(below),
    ]
    profit = hc.sum((price - rng.uniform(0, 1, 3)) * share) / below
    rows = [share[0] / below <= 0.15, nest**gamma / below <= 0.3, price[0] + price[1] <= 6]
    chosen = [row for row in rows if rng.uniform() < 0.3]
    return hc.Problem(hc.Maximize(profit + more[rng.integers(len(more))]), chosen)


def matrix_squares(rng: Generator) -> hc.Problem:
    """Squares and fractions below a matrix; else one that is taken off, above it, or of low sign."""
    Y = hc.Variable((2, 2), name="Y", bounds=(-3, 3))
    Z = hc.Variable((2, 2), name="Z", PSD=(0.0, 20.0))
    P = hc.Variable((2, 2), name="P", PSD=(0.2, 5.0))
    A, B, C = rng.normal(size=(3, 2, 2))
    weight = A @ A.T if rng.uniform() < 0.7 else A + A.T
    terms: list[Any] = [
        Y.T @ weight @ Y,
        (A @ Y + B).T @ hc.inv(P) @ (A @ Y + B),
        hc.inv(P),
        Y.T @ P @ Y,
        -Y.T @ Y,
        P @ weight @ P,
    ]
    chosen = rng.choice(len(terms), size=rng.integers(1, 3), replace=False)
    total: Any = C.T @ Y + Y.T @ C
    for number in chosen:
        total = total + terms[number]
    rows = [total << Z if rng.uniform() < 0.8 else total >> Z, hc.sum(Y) >= 1, hc.trace(P) <= 3]
    cost = hc.trace(Z) + hc.trace(C @ C.T @ P) + hc.sum(B * Y)
    return hc.Problem(hc.Minimize(cost), rows[: rng.integers(1, 4)])


def riccati_inequalities(rng: Generator) -> hc.Problem:
    """Bounds of the cost of a loop; else weights that pay, states without weight, rows of the gain."""
    A, B = rng.normal(size=(2, 2)), rng.normal(size=(2, 1))
    least = [0.0, 0.1, 0.5][rng.integers(3)]
    X = hc.Variable((2, 2), name="X", PSD=(least, 50.0))
    K = hc.Variable((1, 2), name="K", bounds=(-20, 20))
    closed = A + B @ K
    states = [np.eye(2), np.diag([1.0, 0.0]), np.zeros((2, 2)), np.diag([1.0, -0.3])]
    weight = states[max(rng.integers(-4, 4), 0)]
    weight = weight + (K.T @ K) * [1.0, 0.5, 0.0, -0.1][max(rng.integers(-4, 4), 0)]
    cross = K.T @ rng.normal(size=(1, 2)) * [0.0, 0.3][rng.integers(2)]
    flow = closed.T @ X @ closed - X if rng.uniform() < 0.4 else closed.T @ X + X @ closed
    rows = [flow + weight + cross + cross.T << 0, hc.trace(X) >= 1, K[0, 0] <= 0.5]
    root = rng.normal(size=(2, 2))
    return hc.Problem(
        hc.Minimize(hc.trace(root @ root.T @ X)), rows[: [1, 1, 2, 3][rng.integers(4)]]
    )


def price_rows(rng: Generator) -> hc.Problem:
    """Prices of logits, demands or plain costs with rows between them: some directions are convex."""
    p = hc.Variable(3, name="p", bounds=(0.1, 10))
    slope = rng.uniform(0.5, 2, 3) if rng.uniform() < 0.4 else np.full(3, rng.uniform(0.5, 2))
    weight = rng.uniform(0.5, 8, 3) * hc.exp(-slope * p)
    powers = rng.choice([1.5, 2.0, 3.0], size=3) if rng.uniform() < 0.5 else np.full(3, 2.0)
    cost = rng.uniform(0, 2, 3)
    profits = [
        hc.sum((p - cost) * weight) / (1 + hc.sum(weight)),
        hc.sum((p - cost) * weight),
        sum((p[i] - cost[i] - 0.2) * p[i] ** -powers[i] for i in range(3)),
        -hc.sum(hc.square(p - 3 * cost)),
    ]
    scale, gap = rng.choice([1.0, 1.0, 0.7, 1.4]), rng.choice([0.0, 0.0, 0.5, -0.5])
    rows = [
        p[0] <= scale * p[1] + gap,
        p[1] - p[0] >= gap,
        p[0] == p[2] + gap,
        p[2] <= (p[0] + p[1]) / 2 + gap,
        hc.log(p[0]) - scale * hc.log(p[1]) <= gap,
        p[0] ** 2 <= scale * p[1] * p[2],
        p[0] ** scale >= p[1] ** 0.5 * p[2] ** 0.5,
    ]
    chosen = rng.choice(len(rows), size=rng.integers(1, 3), replace=False)
    return hc.Problem(hc.Maximize(profits[rng.integers(4)]), [rows[each] for each in chosen])


def queues(rng: Generator) -> hc.Problem:
    """Queues with rows that keep service above arrivals; else rows that leave it open, or routing."""
    low = rng.choice([0.0, 0.1])
    mu = hc.Variable(2, name="mu", bounds=(low, 20))
    lam = hc.Variable(2, name="lam", bounds=(low, 20))
    spare, busy = mu - lam, lam / mu
    worth = rng.uniform(0.5, 3, 2)
    customers = [
        *(hc.sum(worth / spare), hc.sum(worth * lam / spare), hc.max(worth / spare)),
        *(hc.sum(worth * lam**2 / (mu * spare)), hc.sum(worth * busy / (1 - busy))),
        *(hc.sum(worth * mu / spare), worth[0] / (mu[0] - lam[0] - 0.1 * lam[1])),
        *(worth[0] / spare[0] - lam[1] / spare[1], hc.sum(hc.square(lam) / spare)),
    ]
    stable = [
        *(lam <= 0.9 * mu, spare >= 0.05, lam <= mu - 0.1 * mu[0], lam[0] + lam[1] <= 0.9 * mu),
        *(busy <= 0.9, lam[0] <= 0.9 * mu[0], 0.9 * mu >= 0.5 * lam, 1 / spare <= 4),
    ]
    rows = [
        *(hc.sum(lam) == 4, lam >= rng.uniform(0.5, 2, 2), hc.prod(lam) >= 2, hc.sum(mu) <= 12),
        *(hc.sum(lam) >= 3, rng.uniform(0.5, 2, 2) @ mu <= 14, lam[0] == 0.5 * lam[1]),
        lam == rng.uniform(0.5, 1.5, 2) + rng.uniform(0, 0.4, size=(2, 2)) @ lam,
    ]
    chosen = rng.choice(len(rows), size=2, replace=False)
    cost = hc.sum(mu) * rng.choice([0.0, 1.0]) + customers[rng.integers(len(customers))]
    kept = stable[rng.integers(len(stable))]
    return hc.Problem(hc.Minimize(cost), [kept, *(rows[each] for each in chosen)])


def noisy_gains(rng: Generator) -> hc.Problem:
    """Noise that grows with state and input; else noise that is taken off, or rows of P from below."""
    inputs = int(rng.integers(1, 3))
    A, B = rng.normal(size=(2, 2)), rng.normal(size=(2, inputs))
    A = A / np.abs(np.linalg.eigvals(A)).max()
    P = hc.Variable((2, 2), name="P", PSD=(1e-3, 50.0))
    K = hc.Variable((inputs, 2), name="K", bounds=(-5, 5))
    right = (A + B @ K) @ P @ (A + B @ K).T + 0.2 * np.eye(2)
    for _ in range(rng.integers(1, 3)):
        F = [0.0, 1.0][rng.integers(2)] * 0.3 * rng.normal(size=(2, 2))
        G = F + 0.3 * rng.normal(size=(2, inputs)) @ K
        right = right + [1.0, 1.0, 1.0, -1.0][rng.integers(4)] * G @ P @ G.T
    factor, left = rng.choice([1.0, 1.0, 3.0]), P
    if rng.uniform() < 0.4:  # in continuous time
        flow = (A - np.eye(2) + B @ K) @ P
        left, right = -(flow + flow.T), right - (A + B @ K) @ P @ (A + B @ K).T
    equal = rng.uniform() < 0.6
    row = factor * left == factor * right if equal else factor * left >> factor * right
    rows = [row, P[0, 0] >= 1.0, hc.trace(K @ P @ K.T) <= 0.5, P[0, 1] <= 0.1]
    weight = rng.normal(size=(2, 2))
    cost = hc.trace(weight @ weight.T @ P) + rng.choice([1.0, 1.0, -0.1]) * hc.trace(K @ P @ K.T)
    chosen = [0, *([rng.integers(1, 4)] if rng.uniform() < 0.4 else [])]
    return hc.Problem(hc.Minimize(cost), [rows[each] for each in chosen])


FAMILIES: dict[str, Family] = {
    each.__name__: each
    for each in (
        *(ratios, prices, shares, policies, gains, chains, products, inverses),
        *(possible_zeros, outsides, gains_of_many, comparisons, horizons),
        *(nested_choices, matrix_squares, riccati_inequalities, price_rows, queues),
        noisy_gains,
    )
}


@dataclass
class Tally:
    """What became of the models of a family, and each claim that is wrong."""

    verdicts: Counter[str] = field(default_factory=Counter)
    several: int = 0
    proven_with_several: int = 0
    wrong: list[str] = field(default_factory=list)


class Searched:
    """A model as written for SLSQP: values, slopes, rows and sets, by one evaluation a point."""

    def __init__(self, problem: hc.Problem) -> None:
        form = problem.forms().written
        self.domain, self.sign = form.domain, problem.objective.sign
        self._oracle: Oracle = form.oracle()
        self._last: tuple[bytes, Evaluation] | None = None
        layout = form.canonical.layout
        self._sums: list[FloatArray] = []
        self._matrices = [
            (variable.set, layout.slice(variable))
            for variable in layout.variables
            if variable.set.is_curved
        ]
        for variable in layout.variables:
            for number in range(variable.size // variable.shape[-1] if variable.shape else 0):
                if isinstance(variable.set, SimplexSet):
                    place = np.zeros(self.domain.dimension)
                    first = layout.slice(variable).start + number * variable.shape[-1]
                    place[first : first + variable.shape[-1]] = 1.0
                    self._sums.append(place)

    def at(self, x: FloatArray) -> Evaluation:
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._oracle.at(np.array(x))
        return self._last[1]

    def _constraints(self) -> Iterator[dict[str, Any]]:
        first = self.at(self.domain.middle())
        if first.inequalities:
            count = first.inequalities
            yield {
                "type": "ineq",
                "fun": lambda x: -self.at(x).rows[:count],
                "jac": lambda x: -np.asarray(self.at(x).jacobian)[:count],
            }
        if first.rows.size > first.inequalities:
            count = first.inequalities
            yield {
                "type": "eq",
                "fun": lambda x: self.at(x).rows[count:],
                "jac": lambda x: np.asarray(self.at(x).jacobian)[count:],
            }
        for values, place in self._matrices:
            yield {"type": "ineq", **eigenvalue_rows(values, place)}
        for place in self._sums:
            yield {"type": "eq", "fun": lambda x, w=place: w @ x - 1.0, "jac": lambda x, w=place: w}

    def minima(self, rng: Generator) -> Iterator[float]:
        """Values of feasible points at which SLSQP has ended by itself."""
        lower, upper = self.domain.entry_bounds()
        for _ in range(STARTS):
            found = minimize(
                lambda x: self.at(x).objective,
                self.domain.sample(rng),
                jac=lambda x: self.at(x).gradient,
                bounds=list(zip(lower, upper, strict=True)),
                constraints=list(self._constraints()),
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-12},
            )
            there = self.at(self.domain.project(found.x))
            if found.success and there.finite and there.relative_violation <= FEASIBLE:
                yield self.sign * there.objective


def eigenvalue_rows(values: Any, place: slice) -> dict[str, Any]:
    """The eigenvalues of a matrix variable less the least that they may be, and the most less them."""
    low, high = values.eigenvalue_bounds

    def spectrum(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.linalg.eigh(values.expand(np, x[place]))

    def fun(x: FloatArray) -> FloatArray:
        found = spectrum(x)[0] - low
        return np.append(found, high - low - found) if np.isfinite(high) else found

    def jac(x: FloatArray) -> FloatArray:
        rows = [values.store(np.outer(each, each)) for each in spectrum(x)[1].T]
        rows += [-row for row in rows] if np.isfinite(high) else []
        slopes = np.zeros((len(rows), x.size))
        slopes[:, place] = rows
        return slopes

    return {"fun": fun, "jac": jac}


def looked_at(problem: hc.Problem, rng: Generator, tally: Tally) -> None:
    """Solve a model, search it, and note what is wrong."""
    try:
        problem.solve()
    except hc.SolverError:  # no point was found at which its functions are defined
        tally.verdicts["not defined"] += 1
        return
    solution, sign = problem.solution, problem.objective.sign
    assert solution is not None
    proven = "proven" in solution.method
    tally.verdicts[f"{'proven' if proven else 'not proven'}, {problem.status}"] += 1
    with np.errstate(all="ignore"):
        minima = sorted(sign * each for each in Searched(problem).minima(rng))
    if not minima:
        return
    room = LOWER * (1 + abs(minima[0]))
    several = minima[-1] - minima[0] > APART * (1 + abs(minima[0]))
    tally.several += several
    text = problem.to_hc()
    if problem.status == "infeasible":
        tally.wrong.append(f"infeasible, but {minima[0]} is found:\n{text}")
    if problem.status == "optimal" and sign * solution.value > minima[0] + room:
        tally.wrong.append(f"optimal at {solution.value}, but {sign * minima[0]} is found:\n{text}")
    bound = solution.certificate.lower_bound
    if bound is not None and sign * bound > minima[0] + room:
        tally.wrong.append(f"bound {bound}, but {sign * minima[0]} is found:\n{text}")
    if several and proven:
        tally.proven_with_several += 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="catalogue", description=__doc__)
    parser.add_argument(
        "count", type=int, nargs="?", default=2000, help="how many models near the maps"
    )
    parser.add_argument("seed", type=int, nargs="?", default=0)
    chosen = parser.parse_args(arguments)
    count, seed = chosen.count, chosen.seed
    rng = np.random.default_rng(seed)
    tallies = {name: Tally() for name in FAMILIES}
    for number in range(count):
        name = list(FAMILIES)[number % len(FAMILIES)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            looked_at(FAMILIES[name](rng), rng, tallies[name])
    for name, tally in tallies.items():
        listed = ", ".join(f"{number} {each}" for each, number in tally.verdicts.most_common())
        print(
            f"{name:14} {listed}; several minima: {tally.several}, "
            f"{tally.proven_with_several} of them proven; wrong: {len(tally.wrong)}"
        )
    wrong = [each for tally in tallies.values() for each in tally.wrong]
    print(f"{count} models, {len(wrong)} wrong claims")
    for each in wrong:
        print(each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
