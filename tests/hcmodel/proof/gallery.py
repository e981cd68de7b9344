"""Models with declared maps that are right or wrong, for the tests of the refutation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import hcmodel as hc

A = np.array([[0.2, 1.0], [-0.3, 0.5]])
B = np.array([[1.0, 0.2], [0.1, 1.0]])


def saturated() -> hc.Problem:
    """tanh is one to one, but sends all large x to the same number, to rounding."""
    x = hc.Variable(name="x", bounds=(-25, 25))
    return hc.Problem(hc.Minimize((hc.tanh(x) - 0.3) ** 2), hidden=[hc.tanh(x)])


def positive(size: int = 2, low: float = 0.2, high: float = 4.0) -> hc.Variable:
    return hc.Variable(size, name="x", bounds=(low, high))


def regulator(decentralised: bool) -> hc.Problem:
    """LQR in (P, K) under (P, K P); zeros of K are not affine in it."""
    P = hc.Variable((2, 2), name="P", PSD=(1e-2, 1e2))
    K = hc.Variable((2, 2), name="K", bounds=(-20, 20))
    closed = A + B @ K
    rows = [(closed @ P + P @ closed.T + np.eye(2) == 0).named("lyapunov")]
    if decentralised:
        rows.append((K[0, 1] == 0).named("blind"))
    return hc.Problem(hc.Minimize(hc.trace((np.eye(2) + K.T @ K) @ P)), rows, hidden=[P, K @ P])


def folded() -> hc.Problem:
    """Ex-CNLS of the paper: kinks in the map and in every function."""
    x = hc.Variable(2, name="x", bounds=(-1, 2.5))
    c = hc.hstack([x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1])
    near = hc.norm(c - np.array([-0.5, -0.6]), 1) <= 0.8
    return hc.Problem(hc.Minimize(hc.max(hc.abs(c))), [near], hidden=[c])


def cosine() -> hc.Problem:
    x = hc.Variable(name="x", bounds=(-0.95, 0.95))
    return hc.Problem(hc.Minimize(1 - hc.cos(np.pi * x)), hidden=[hc.sin(np.pi * x / 2)])


def rosenbrock() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    valley = x[1] - x[0] ** 2
    objective = (1 - x[0]) ** 2 + 100 * valley**2
    return hc.Problem(hc.Minimize(objective), [x[0] + valley <= 1], hidden=[x[0], valley])


def fraction() -> hc.Problem:
    """A ratio of affine functions by the Charnes–Cooper map."""
    x = hc.Variable(2, name="x", bounds=(0, 2))
    below = 1 + x[0] + 2 * x[1]
    objective = (x[0] - x[1] + 3) / below
    return hc.Problem(hc.Minimize(objective), hidden=[x / below])


def pricing() -> hc.Problem:
    """Revenue of two goods under logit demand, in the market shares."""
    price = hc.Variable(2, name="price", bounds=(0.1, 4))
    weights = hc.exp(np.array([1.0, 0.5]) - price)
    share = weights / (1 + hc.sum(weights))
    return hc.Problem(hc.Maximize(hc.sum(price * share)), hidden=[share])


def occupancy(reward: bool = True) -> hc.Problem:
    """A chain of three states: rewards are linear in the occupancy measure."""
    generator = np.random.default_rng(3)
    moves = generator.dirichlet(np.ones(3), size=(3, 2))
    policy = hc.Variable((3, 2), name="policy", simplex=True)
    step = hc.einsum("sa,sat->st", policy, moves)
    visits = 0.1 * hc.solve(np.eye(3) - 0.9 * step.T, np.array([0.5, 0.3, 0.2]))
    measure = hc.reshape(visits, (3, 1)) * policy
    gain = hc.sum(generator.normal(size=(3, 2)) * measure)
    objective = gain if reward else gain + 5 * hc.sum(measure**2)
    return hc.Problem(hc.Maximize(objective), hidden=[measure])


def polar() -> hc.Problem:
    r = hc.Variable(name="r", bounds=(0.5, 2))
    angle = hc.Variable(name="angle", bounds=(-0.7, 0.7))
    plane = hc.hstack([r * hc.cos(angle), r * hc.sin(angle)])
    return hc.Problem(hc.Minimize(hc.sum((plane - np.array([1.0, 2.0])) ** 2)), hidden=[plane])


def volume() -> hc.Problem:
    """Maximised through its logarithm: the product is not concave, its logarithm is."""
    x = positive(3)
    return hc.Problem(hc.Maximize(hc.prod(x)), [hc.sum(x) <= 4], hidden=[x])


def monomial_equality() -> hc.Problem:
    x = positive()
    rows = [x[0] * x[1] ** 2 == 2, x[0] + x[1] <= 5]
    return hc.Problem(
        hc.Minimize(x[0] + 1 / x[1]), rows, hidden=[hc.log(x[0] * x[1]), hc.log(x[1])]
    )


NOT_REFUTED: dict[str, Callable[[], hc.Problem]] = {
    "LQR under (P, K P)": lambda: regulator(False),
    "MDP under its occupancy": occupancy,
    "Ex-CNLS under its map": folded,
    "1 − cos πx under sin(πx/2)": cosine,
    "Rosenbrock": rosenbrock,
    "a linear fraction": fraction,
    "logit pricing": pricing,
    "polar coordinates": polar,
    "a volume": volume,
    "a monomial equality": monomial_equality,
    "a saturated map": saturated,
}


def product() -> hc.Problem:
    x = positive()
    return hc.Problem(hc.Minimize(x[0] * x[1]), hidden=[x])


def signomial() -> hc.Problem:
    x = positive()
    objective = x[0] * x[1] + 1 / x[0] + 1 / x[1] - 0.5 * x[1]
    return hc.Problem(hc.Minimize(objective), hidden=[hc.log(x)])


def hyperbola_above() -> hc.Problem:
    x = positive()
    return hc.Problem(hc.Minimize(-x[0]), [(x[0] * x[1] <= 1).named("area")], hidden=[x])


def circle() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    rows = [(x[0] ** 2 + x[1] ** 2 == 1).named("circle")]
    return hc.Problem(hc.Minimize(x[0]), rows, hidden=[x])


def concave_kink() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    return hc.Problem(hc.Minimize(hc.sum(x**2) - hc.abs(x[0] - 0.2)), hidden=[x])


def kinked_row() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    rows = [(hc.abs(x[0]) >= 0.5).named("away")]
    return hc.Problem(hc.Minimize(hc.sum(x**2)), rows, hidden=[x])


def prices_themselves() -> hc.Problem:
    problem = pricing()
    return hc.Problem(problem.objective, hidden=list(problem.variables))


REFUTED: dict[str, tuple[Callable[[], hc.Problem], str, str]] = {
    "x1 x2 under x": (product, "objective", "objective"),
    "decentralised LQR": (lambda: regulator(True), "equality", "blind"),
    "a GP with a negative coefficient": (signomial, "objective", "objective"),
    "x1 x2 <= 1 under x": (hyperbola_above, "inequality", "area"),
    "a circle under x": (circle, "equality", "circle"),
    "a concave kink": (concave_kink, "objective", "objective"),
    "|x1| >= 1/2 under x": (kinked_row, "inequality", "away"),
    "logit pricing under prices": (prices_themselves, "objective", "objective"),
    "a convex gain maximised": (lambda: occupancy(False), "objective", "objective"),
}
