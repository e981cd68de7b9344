"""Squares of K @ P over a number: H∞ norms of state feedback as Riccati's inequality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from tests.extent import several


class Plant:
    """A random plant x' = A x + B u + E w, with the outputs x and u."""

    def __init__(self, seed: int, states: int = 2) -> None:
        generator = np.random.default_rng(seed)
        self.A, self.B = generator.normal(size=(states, states)), generator.normal(size=(states, 1))
        self.E = generator.normal(size=(states, 1))
        self.C = np.vstack([np.eye(states), np.zeros((1, states))])
        self.D = np.eye(states + 1)[:, states:]
        self.P = hc.Variable((states, states), name="P", PSD=(1e-3, 1e3))
        self.K = hc.Variable((1, states), name="K")
        self.level = hc.Variable(name="level", bounds=(1e-2, 1e3))

    @property
    def parts(self) -> tuple[Any, Any]:
        """The state's and the output's matrix, each times P."""
        moved = self.K @ self.P
        return self.A @ self.P + self.B @ moved, self.C @ self.P + self.D @ moved

    def largest_gain(self) -> float:
        """The largest singular value of the closed loop over many frequencies."""
        gain = self.K.value
        loop, output = self.A + self.B @ gain, self.C + self.D @ gain
        assert np.linalg.eigvals(loop).real.max() < 0
        unit = np.eye(len(loop))
        frequencies = [0.0, *np.logspace(-4, 5, 400)]
        return max(
            float(np.linalg.norm(output @ np.linalg.solve(1j * w * unit - loop, self.E), 2))
            for w in frequencies
        )


@pytest.mark.parametrize(("seed", "states"), [(0, 2), (1, 3), (2, 2)][: several(2, 3)])
def test_the_inequality_of_riccati_is_proven(seed: int, states: int) -> None:
    """It is the linear matrix inequality with the blocks of γ, which is proven as it stands."""
    plant = Plant(seed, states)
    loop, output = plant.parts
    squares = (plant.E @ plant.E.T + output.T @ output) / plant.level
    problem = hc.Problem(hc.Minimize(plant.level), [loop + loop.T + squares << 0])
    value = problem.solve()
    assert problem.status == "optimal"
    assert plant.largest_gain() <= value * (1 + 1e-5)

    other, size = Plant(seed, states), states + 1
    loop, output = other.parts
    zeros, level = np.zeros((1, size)), other.level
    blocks = hc.bmat(
        [
            [loop + loop.T, other.E, output.T],
            [other.E.T, -level * np.eye(1), zeros],
            [output, zeros.T, -level * np.eye(size)],
        ]
    )
    assert hc.Problem(hc.Minimize(level), [blocks << 0]).solve() == pytest.approx(value, rel=1e-5)


def test_a_level_that_is_a_number_leaves_the_squares() -> None:
    plant = Plant(0)
    loop, output = plant.parts
    rows = [loop + loop.T + plant.E @ plant.E.T / 8 + output.T @ output / 8 << 0]
    problem = hc.Problem(hc.Minimize(hc.trace(plant.P)), rows)
    problem.solve()
    assert problem.status == "optimal"
    assert plant.largest_gain() <= 8 * (1 + 1e-5)


def test_indefinite_squares_are_not_taken_for_convex() -> None:
    plant = Plant(0)
    loop, output = plant.parts
    weights = np.diag([1.0, 1.0, -1.0])
    squares = (plant.E @ plant.E.T + output.T @ weights @ output) / plant.level
    problem = hc.Problem(hc.Minimize(plant.level), [loop + loop.T + squares << 0])
    assert problem.forms().discovery.proof is None


def test_products_that_are_no_squares_of_k_p_stay() -> None:
    """K[0]·P[0,0] is not an entry of K @ P, which has two terms."""
    plant = Plant(0)
    single = plant.K[0, 0] * plant.P[0, 0]
    rows = [single**2 / plant.level <= 2, plant.K @ plant.P @ np.ones(2) >= 1]
    problem = hc.Problem(hc.Minimize(plant.level + hc.trace(plant.P)), rows)
    assert problem.forms().discovery.proof is None
