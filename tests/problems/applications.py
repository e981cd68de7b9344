"""Regulators and decision processes, from other people's suites (`source`) and random ones.

The models are those of `examples/`. The reference values come from elsewhere: from Riccati equations
for the regulators, from linear programs over occupancy measures for the decision processes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import linprog

import hcmodel as hc

FloatArray = NDArray[np.float64]

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


def _by_name(file: str) -> dict[str, dict[str, Any]]:
    return {data["name"]: data for data in json.loads((HERE / file).read_text(encoding="utf-8"))}


REGULATORS = _by_name("lqr.json")
DECISION_PROCESSES = _by_name("mdp.json")


def example(name: str, **data: Any) -> hc.Problem:
    """A model of `examples/` with other data."""
    return hc.load(EXAMPLES / f"{name}.hc", data)


# ---- regulators ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plant:
    """ẋ = A x + B u + noise of intensity W, and the stationary mean of xᵀQx + uᵀRu as its cost."""

    A: FloatArray
    B: FloatArray
    Q: FloatArray
    R: FloatArray
    W: FloatArray

    @property
    def data(self) -> dict[str, FloatArray]:
        return {"A": self.A, "B": self.B, "Q": self.Q, "R": self.R, "W": self.W}

    def optimum(self) -> float:
        """The least cost tr(X W), with X from the Riccati equation."""
        X = scipy.linalg.solve_continuous_are(self.A, self.B, self.Q, self.R)
        return float(np.trace(X @ self.W))

    def gain(self) -> FloatArray:
        """The best gain −R⁻¹BᵀX."""
        X = scipy.linalg.solve_continuous_are(self.A, self.B, self.Q, self.R)
        return -np.linalg.solve(self.R, self.B.T @ X)

    def abscissa(self, K: FloatArray) -> float:
        """The largest real part of an eigenvalue of A + B K: negative where K stabilises."""
        return float(np.linalg.eigvals(self.A + self.B @ K).real.max())

    def fits(self, gain: float = 50, covariance: float = 1e3) -> bool:
        """Whether the optimum lies inside the bounds that `lqr.hc` puts on K and P."""
        K = self.gain()
        P = scipy.linalg.solve_continuous_lyapunov(self.A + self.B @ K, -self.W)
        return bool(np.abs(K).max() < gain and np.linalg.eigvalsh(P).max() < covariance)


def published_plant(name: str) -> Plant:
    data = REGULATORS[name]
    return Plant(*(np.array(data[key]) for key in "ABQRW"))


def random_plant(n: int, m: int, seed: int) -> Plant:
    """Normal entries, hence unstable more often than not; unit weights and noise."""
    generator = np.random.default_rng([n, m, seed])
    A, B = generator.normal(size=(n, n)), generator.normal(size=(n, m))
    return Plant(A, B, np.eye(n), np.eye(m), np.eye(n))


# ---- decision processes -------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """A decision process with rewards, and with costs that have limits."""

    transition: FloatArray
    mu: FloatArray
    gamma: float
    reward: FloatArray
    cost: FloatArray
    limit: FloatArray

    @property
    def data(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def flow(self) -> dict[str, FloatArray]:
        """The equations of occupancy measures: what leaves a state has arrived or started there."""
        states, actions = self.reward.shape
        leaving = np.repeat(np.eye(states), actions, axis=1)
        arriving = self.transition.reshape(-1, states).T
        return {"A_eq": leaving - self.gamma * arriving, "b_eq": (1 - self.gamma) * self.mu}

    def least_cost(self, which: int) -> float:
        """The least that any policy achieves of one cost."""
        return float(linprog(self.cost[which].ravel(), **self.flow()).fun)

    def optimum(self, slack: float = 0.0) -> float:
        """The largest reward under the limits, by linear programming.

        Without a Slater point, rounding alone may make the program infeasible: `slack` widens the limits.
        """
        rows = self.cost.reshape(len(self.cost), self.reward.size)
        limits = {"A_ub": rows, "b_ub": self.limit + slack} if len(rows) else {}
        done = linprog(-self.reward.ravel(), **limits, **self.flow())
        if not done.success:
            raise ValueError(done.message)
        return -float(done.fun)


def random_process(
    seed: int, states: int = 20, actions: int = 5, costs: int = 2, share: float = 0.3
) -> Process:
    """Few successors, uniform rewards and costs.

    Each limit lies `share` of the way from the least achievable cost to the cost of the best policy
    without limits. With share 0 and one cost there is no Slater point.
    """
    generator = np.random.default_rng(seed)
    transition = generator.dirichlet(0.2 * np.ones(states), size=(states, actions))
    reward = generator.random((states, actions))
    cost = generator.random((costs, states, actions))
    mu = np.full(states, 1 / states)
    free = Process(transition, mu, 0.9, reward, cost, np.full(costs, np.inf))
    best = linprog(-reward.ravel(), **free.flow()).x
    least = np.array([free.least_cost(which) for which in range(costs)])
    limit = least + share * (cost.reshape(costs, -1) @ best - least)
    return Process(transition, mu, 0.9, reward, cost, limit)
