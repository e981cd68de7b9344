"""Perspectives that multiplying out has hidden: powers over powers, and logarithms of ratios.

All models are compared with a fine grid, which knows nothing of the proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from tests.extent import first

Function = Callable[[Any, Any], Any]
PERSPECTIVES: dict[str, tuple[Function, float]] = {
    # the function and the least y; these ended `locally_optimal`
    "y^4/t^3": (lambda y, t: y**4 / t**3, -2.0),
    "y^4 t^-3": (lambda y, t: y**4 * t**-3, -2.0),
    "y^4 over t t^2": (lambda y, t: y**4 / t / t**2, -2.0),
    "affine": (lambda y, t: (2 * y - t + 1) ** 4 / (t + y + 3) ** 3, -2.0),
    "less below": (lambda y, t: y**4 / t**2, -2.0),
    "a root below": (lambda y, t: y**2 / t**0.5, -2.0),
    "several terms": (lambda y, t: (y**4 + t**4) / t**3, -2.0),
    "odd powers": (lambda y, t: y**3 / t**2 + y**5 * t**-4, 0.1),
    "fractions": (lambda y, t: y**1.5 / t**0.5 + y**2.7 / t**1.2, 0.1),
    "two bases": (lambda y, t: y**4 / t * (3 + y) ** -2, -2.0),
    "a sum of squares": (lambda y, t: (y**2 + (1 - y) ** 2) ** 2 / t**3, -2.0),
    "a rate": (lambda y, t: -t * hc.log(1 + (y + 2) / t), -2.0),
    "log1p": (lambda y, t: -t * hc.log1p((y + 2) / t), -2.0),
    "a rate of a constant": (lambda y, t: y**2 - t * hc.log(1 + 3 / t), -2.0),
    "weights": (lambda y, t: -2 * t * hc.log(1 + 0.3 * (y + 2) / t) - 0.5 * hc.log(y + 3), -2.0),
    "a divergence": (lambda y, t: y * hc.log(y / t) - y + t, 0.1),
}


def least_on_grid(function: Function, y: hc.Variable, t: hc.Variable) -> float:
    """The least value on a grid, all of whose points are entries of one array."""
    ends = [np.linspace(*[float(end) for end in each.set.interval], 61) for each in (y, t)]
    first, second = (hc.Parameter(61 * 61, value=each.ravel()) for each in np.meshgrid(*ends))
    return float(np.min(function(first, second).value))


@pytest.mark.parametrize("name", PERSPECTIVES)
def test_perspectives_are_proven(name: str) -> None:
    function, least = PERSPECTIVES[name]
    y = hc.Variable(name="y", bounds=(least, 2.0))
    t = hc.Variable(name="t", bounds=(0.2, 3.0))

    def objective(y: Any, t: Any) -> Any:
        return function(y, t) - 0.7 * y + 0.4 * t

    problem = hc.Problem(hc.Minimize(objective(y, t)))
    value = problem.solve()
    assert problem.status == "optimal"
    on_grid = least_on_grid(objective, y, t)
    assert value <= on_grid + 1e-7
    assert value >= on_grid - 0.02 * max(1.0, abs(on_grid))


def test_a_row_with_a_perspective_is_proven() -> None:
    """At the optimum y = (c t³)^(1/4), and t − 2 y is least where t is as large as it may be."""
    y, t = hc.Variable(name="y", bounds=(-3, 3)), hc.Variable(name="t", bounds=(0.1, 1))
    problem = hc.Problem(hc.Minimize(-2 * y - t), [y**4 / t**3 <= 2])
    assert problem.solve() == pytest.approx(-2 * 2**0.25 - 1, abs=1e-5)
    assert problem.status == "optimal"


def test_a_norm_may_stand_above() -> None:
    y, t = hc.Variable(2, name="y", bounds=(-3, 3)), hc.Variable(name="t", bounds=(0.1, 5))
    problem = hc.Problem(hc.Minimize(hc.norm(y - np.array([1.0, 2.0])) ** 4 / t**3 + t), [y <= 0])
    value = problem.solve()
    assert problem.status == "optimal"
    # |y − a| = √5 at y = 0, and 25/t³ + t is least where t⁴ = 75
    assert value == pytest.approx(25 / 75**0.75 + 75**0.25, rel=1e-6)


# The first one has y³/t², which would be a perspective if y were positive.
@pytest.mark.parametrize("seed", first(1, [4, *range(4), *range(5, 20)]))
def test_nothing_false_is_claimed_of_random_ratios(seed: int) -> None:
    """Most of these are not convex: a sign is missing, or the powers are too small."""
    generator = np.random.default_rng(seed)
    for _ in range(3):
        least = float(generator.choice([-1.5, 0.05]))
        y = hc.Variable(name="y", bounds=(least, 1.5))
        t = hc.Variable(name="t", bounds=(0.2, 2.0))
        powers = [1, 2, 3, 4] if least < 0 else [0.5, 1.5, 2, 3]
        total = random_ratios(generator, powers)
        problem = hc.Problem(hc.Minimize(total(y, t)))
        problem.solve()
        assert problem.solution is not None
        bound = problem.solution.certificate.lower_bound  # None where nothing is certified
        assert (-np.inf if bound is None else bound) <= least_on_grid(total, y, t) + 1e-6


def random_ratios(generator: np.random.Generator, powers: list[float]) -> Function:
    """The sum of two ratios of powers, a rate and a multiple of y."""
    signs = generator.choice([1.0, 1.0, -1.0], size=2)
    above, below = generator.choice(powers, size=2), generator.choice([0.5, 1, 2, 3], size=2)
    rate, slope = float(generator.choice([0.0, 1.0, -1.0])), float(generator.normal())

    def total(y: Any, t: Any) -> Any:
        terms = [
            float(sign) * y ** float(over) / t ** float(under)
            for sign, over, under in zip(signs, above, below, strict=True)
        ]
        return sum(terms) + rate * t * hc.log(1 + (y + 2) / t) + slope * y

    return total
