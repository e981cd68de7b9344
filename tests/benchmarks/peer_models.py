"""Problems of the development set, written once more for CVXPY and for CasADi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.development_set import Case, data_of
from tests.problems.applications import REGULATORS, Process, published_plant, random_process
from tests.problems.library import GEOMETRIC_PROGRAMS

FloatArray = NDArray[np.float64]


# ---- CVXPY --------------------------------------------------------------------------------------


def cvxpy_model(case: Case) -> Any:
    """The model as one would write it there, whether CVXPY's rules accept it or not."""
    import cvxpy as cp

    if case.name in GEOMETRIC_PROGRAMS:
        return _cvxpy_program(GEOMETRIC_PROGRAMS[case.name])
    if case.name in REGULATORS:
        plant = published_plant(case.name)
        P = cp.Variable(plant.A.shape, PSD=True)
        K = cp.Variable(plant.B.T.shape)
        closed = plant.A + plant.B @ K
        cost = cp.trace((plant.Q + K.T @ plant.R @ K) @ P)
        return cp.Problem(cp.Minimize(cost), [closed @ P + P @ closed.T + plant.W == 0])
    if case.name.startswith("Ex-CNLS"):
        x = cp.Variable(2)
        c = cp.hstack([x[0] - 1, 2 * cp.abs(x[0]) - x[1] - 1])
        near = cp.norm1(c - np.array([-0.5, -0.6])) <= 0.8
        return cp.Problem(cp.Minimize(cp.norm_inf(c)), [near, x >= -1, x <= 2.5])
    if case.name == "mixed.hc":
        x, y, z = cp.Variable(pos=True), cp.Variable(pos=True), cp.Variable()
        return cp.Problem(cp.Minimize(x * y + cp.exp(z) / x + 1 / y + cp.square(z - 1)))
    if case.kind == "Rosenbrock":
        x = cp.Variable(_rosenbrock_size(case))
        residual = x[1:] - 2 * cp.square(x[:-1]) + 1
        return cp.Problem(cp.Minimize(cp.square(x[0] - 1) / 4 + cp.norm1(residual)))
    return None  # policies: there is no solution of linear equations among CVXPY's atoms


def _cvxpy_program(data: dict[str, Any]) -> Any:
    import cvxpy as cp

    x = cp.Variable(len(data["lower"]), pos=True)

    def posynomial(coefficients: Any, exponents: Any) -> Any:
        monomials = cp.gmatmul(np.array(exponents, dtype=float), x)
        return cp.sum(cp.multiply(np.array(coefficients, dtype=float), monomials))

    rows = [posynomial(**row) <= 1 for row in data["inequalities"]]
    rows += [
        row["coefficient"] * cp.gmatmul(np.array([row["exponents"]], dtype=float), x)[0] == 1
        for row in data["equalities"]
    ]
    rows += [x >= np.array(data["lower"]), x <= np.array(data["upper"])]
    return cp.Problem(cp.Minimize(posynomial(**data["objective"])), rows)


# ---- CasADi -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NonlinearProgram:
    """min sign·f over lower <= x <= upper and bounds on the rows g."""

    x: Any
    f: Any
    g: Any
    lower: FloatArray
    upper: FloatArray
    rows_lower: FloatArray
    rows_upper: FloatArray
    start: FloatArray
    sign: float = 1.0


def casadi_model(case: Case) -> NonlinearProgram:
    if case.name in GEOMETRIC_PROGRAMS:
        return _casadi_program(GEOMETRIC_PROGRAMS[case.name])
    if case.name in REGULATORS:
        return _casadi_regulator(case.name)
    if case.kind == "decision":
        return _casadi_process(
            Process(**data_of("cmdp")) if case.name == "cmdp.hc" else random_process(0)
        )
    if case.name.startswith("Ex-CNLS"):
        return _casadi_least_squares()
    if case.kind == "Rosenbrock":
        return _casadi_rosenbrock(_rosenbrock_size(case))
    return _casadi_mixed()


def _casadi_program(data: dict[str, Any]) -> NonlinearProgram:
    import casadi as ca

    x = ca.MX.sym("x", len(data["lower"]))

    def posynomial(coefficients: Any, exponents: Any) -> Any:
        monomials = ca.exp(ca.DM(np.array(exponents, dtype=float)) @ ca.log(x))
        return ca.dot(ca.DM(np.array(coefficients, dtype=float)), monomials)

    rows = [posynomial(**row) for row in data["inequalities"]]
    rows += [posynomial([row["coefficient"]], [row["exponents"]]) for row in data["equalities"]]
    below = len(data["inequalities"])
    floor = np.where(np.arange(len(rows)) < below, -np.inf, 1.0)
    lower, upper = (np.array(data[side], dtype=float) for side in ("lower", "upper"))
    start = np.array(data["start"], dtype=float)
    f = posynomial(**data["objective"])
    return NonlinearProgram(x, f, ca.vcat(rows), lower, upper, floor, np.ones(len(rows)), start)


def _casadi_regulator(name: str) -> NonlinearProgram:
    """Unknowns are the triangle of P and all of K; that P is definite cannot be said."""
    import casadi as ca

    plant = published_plant(name)
    n, m = plant.B.shape
    size = n * (n + 1) // 2
    x = ca.MX.sym("x", size + m * n)
    triangle = ca.MX(ca.Sparsity.lower(n), x[:size])
    P = triangle + triangle.T - ca.diag(ca.diag(triangle))
    K = ca.reshape(x[size:], m, n)
    closed = ca.DM(plant.A) + ca.DM(plant.B) @ K
    cost = ca.trace((ca.DM(plant.Q) + K.T @ ca.DM(plant.R) @ K) @ P)
    left = closed @ P + P @ closed.T + ca.DM(plant.W)
    rows = ca.vcat([left[i, j] for i in range(n) for j in range(i + 1)])
    start = np.concatenate([_lower_triangle(np.eye(n)), np.zeros(m * n)])
    lower = np.concatenate([np.full(size, -np.inf), np.full(m * n, -50.0)])
    zero = np.zeros(size)
    return NonlinearProgram(x, cost, rows, lower, -lower, zero, zero, start)


def _lower_triangle(matrix: FloatArray) -> FloatArray:
    """Column by column, as CasADi stores it."""
    return np.concatenate([matrix[j:, j] for j in range(len(matrix))])


def _casadi_process(process: Process) -> NonlinearProgram:
    import casadi as ca

    states, actions = process.reward.shape
    x = ca.MX.sym("x", states * actions)
    policy = ca.reshape(x, actions, states).T
    step = sum(ca.diag(policy[:, a]) @ ca.DM(process.transition[:, a, :]) for a in range(actions))
    system = ca.DM.eye(states) - process.gamma * step.T
    visits = (1 - process.gamma) * ca.solve(system, ca.DM(process.mu))
    occupancy = ca.repmat(visits, 1, actions) * policy
    reward = ca.sum2(ca.sum1(ca.DM(process.reward) * occupancy))
    rows = [ca.sum2(policy)]
    rows += [ca.sum2(ca.sum1(ca.DM(cost) * occupancy)) for cost in process.cost]
    one, limits = np.ones(states), np.atleast_1d(process.limit)
    return NonlinearProgram(
        x=x,
        f=-reward,
        g=ca.vcat(rows),
        lower=np.zeros(states * actions),
        upper=np.full(states * actions, np.inf),
        rows_lower=np.concatenate([one, np.full(len(limits), -np.inf)]),
        rows_upper=np.concatenate([one, limits]),
        start=np.full(states * actions, 1 / actions),
        sign=-1.0,
    )


def _casadi_least_squares() -> NonlinearProgram:
    """Unknowns: x, a bound of the largest entry, bounds of the two entries of the norm."""
    import casadi as ca

    x = ca.MX.sym("x", 5)
    c = ca.vertcat(x[0] - 1, 2 * ca.fabs(x[0]) - x[1] - 1)
    shifted = c - ca.DM([-0.5, -0.6])
    rows = ca.vertcat(c - x[2], -c - x[2], shifted - x[3:], -shifted - x[3:], x[3] + x[4] - 0.8)
    lower = np.array([-1, -1, 0, 0, 0], dtype=float)
    upper = np.array([2.5, 2.5, np.inf, np.inf, np.inf])
    c0 = np.array([-0.5, -0.5])
    start = np.concatenate([[0.5, 0.5], [np.max(np.abs(c0))], np.abs(c0 - [-0.5, -0.6])])
    none = np.full(9, -np.inf)
    return NonlinearProgram(x, x[2], rows, lower, upper, none, np.zeros(9), start)


def _casadi_mixed() -> NonlinearProgram:
    import casadi as ca

    x = ca.MX.sym("x", 3)
    f = x[0] * x[1] + ca.exp(x[2]) / x[0] + 1 / x[1] + (x[2] - 1) ** 2
    lower, upper = np.array([0.01, 0.01, -5]), np.array([100.0, 100, 5])
    empty = np.zeros(0)
    return NonlinearProgram(x, f, ca.MX(0, 1), lower, upper, empty, empty, np.array([1.0, 1, 0]))


def _casadi_rosenbrock(n: int) -> NonlinearProgram:
    import casadi as ca

    x = ca.MX.sym("x", 2 * n - 1)
    residual = x[1:n] - 2 * x[: n - 1] ** 2 + 1
    f = (x[0] - 1) ** 2 / 4 + ca.sum1(x[n:])
    rows = ca.vertcat(residual - x[n:], -residual - x[n:])
    start = np.concatenate([[-1.0], np.ones(n - 1), np.zeros(n - 1)])
    infinite = np.full(2 * n - 1, np.inf)
    count = 2 * (n - 1)
    return NonlinearProgram(
        x, f, rows, -infinite, infinite, np.full(count, -np.inf), np.zeros(count), start
    )


def _rosenbrock_size(case: Case) -> int:
    return int(case.name.removeprefix("Rosenbrock n = ").split(",")[0])
