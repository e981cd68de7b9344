"""Whole jobs of hcmodel and of what users would take instead, in one run, as ratios.

    python -m tests.benchmarks speed [--only NAME,…] [--repeat N]

A job is everything from the first variable to the certified value: build, prove, compile, solve, certify.
Each job runs once before it is timed, then the tools take turns, and the least time of each counts. The
ratio is hcmodel's processor time over the peer's: below 1, hcmodel is faster. Run it on a quiet machine;
only ratios of one run mean anything. Needs cvxpy; casadi joins as CasADi + IPOPT where it is installed,
unopy as CVXPY DNLP + Uno. "Clarabel alone" solves the cone program that CVXPY has made before the clock
starts: no tool that uses Clarabel can be faster.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import clarabel
import cvxpy as cp
import numpy as np
import scipy
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones
from numpy.typing import NDArray
from scipy.optimize import linprog

import hcmodel as hc
from tests.benchmarks import yardstick

FloatArray = NDArray[np.float64]
Job = Callable[[], float]
# The slowest job of a peer that is waited for more than once.
PATIENCE = 20.0


@dataclass(frozen=True)
class Work:
    """One problem, as the users of each tool write it; `most` is what the ratio may be.

    `beyond` is what it may take more, in seconds of another machine (`yardstick`).
    """

    name: str
    mine: Callable[[], hc.Problem]
    peers: dict[str, Job]
    most: dict[str, float]
    beyond: float = 0.0


# What models of the catalogue may take beyond their goal.
SEARCH = 5e-3
HAS_UNO = importlib.util.find_spec("unopy") is not None and hasattr(cp.Problem, "is_dnlp")
DNLP, ALONE, YARDSTICK = "CVXPY DNLP + Uno", "Clarabel alone", "yardstick"
LEFT_OUT = "CVXPY DNLP + Uno was left out: unopy is not installed (pip install 'hcmodel[bench]')."


def with_uno(problem: cp.Problem, starts: dict[cp.Variable, Any]) -> float:
    """CVXPY's disciplined nonlinear programs, from the same start."""
    for variable, start in starts.items():
        variable.value = start
    return float(problem.solve(nlp=True, solver="UNO", logger="SILENT"))


def dnlp(job: Job) -> dict[str, Job]:
    return {DNLP: job} if HAS_UNO else {}


def alone(model: Callable[[], cp.Problem], **keywords: Any) -> Job:
    """Clarabel on the cone program of a problem of CVXPY, with CVXPY's settings.

    CVXPY makes the program in the first turn, which is not timed.
    """
    parts: list[Any] = []
    values: list[float] = []

    def job() -> float:
        if not parts:
            problem = model()
            data, *way_back = problem.get_problem_data("CLARABEL", solver_opts={}, **keywords)
            size = data["c"].size
            P = data["P"] if "P" in data else scipy.sparse.csc_matrix((size, size))
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            matrices = [scipy.sparse.csc_matrix(each) for each in (scipy.sparse.triu(P), data["A"])]
            cones = dims_to_solver_cones(data["dims"])
            parts.extend([matrices[0], data["c"], matrices[1], data["b"], cones, settings])
            problem.unpack_results(clarabel.DefaultSolver(*parts).solve(), *way_back)
            values.append(float(problem.value))
        clarabel.DefaultSolver(*parts).solve()
        return values[0]

    return job


def by_scipy(
    method: str, function: Callable[[FloatArray], Any], start: FloatArray, **keywords: Any
) -> float:
    """scipy's minimize with values and gradients by hand."""
    accuracy = {"ftol": 1e-12} if method == "SLSQP" else {"gtol": 1e-8, "xtol": 1e-10}
    found = scipy.optimize.minimize(
        function,
        start,
        jac=True,
        method=method,
        options={"maxiter": 500, **accuracy},
        **keywords,
    )
    return float(found.fun)


def solved(problem: hc.Problem) -> float:
    value = problem.solve()
    assert problem.status == "optimal", problem.status
    return float(value)


# ---- Ex-CGP

START = np.array([0.6, 1.6])


def tank() -> Work:
    def mine() -> hc.Problem:
        x = hc.Variable(2, bounds=(0.4, 3))
        cost = x[0] * x[1] + 4 / x[0] + 1 / x[1]
        return hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= 1])

    def model() -> cp.Problem:
        x = cp.Variable(2, pos=True)
        cost = x[0] * x[1] + 4 / x[0] + 1 / x[1]
        return cp.Problem(cp.Minimize(cost), [x[0] * x[1] <= 1, x >= 0.4, x <= 3])

    def nonlinear() -> float:
        x = cp.Variable(2, bounds=[0.4, 3])
        cost = x[0] * x[1] + 4 / x[0] + 1 / x[1]
        return with_uno(cp.Problem(cp.Minimize(cost), [x[0] * x[1] <= 1]), {x: START})

    def hand(x: FloatArray) -> tuple[float, FloatArray]:
        a, b = x
        return a * b + 4 / a + 1 / b, np.array([b - 4 / a**2, a - 1 / b**2])

    area = scipy.optimize.NonlinearConstraint(
        lambda x: x[0] * x[1], -np.inf, 1.0, jac=lambda x: np.array([[x[1], x[0]]])
    )

    def general(method: str) -> Job:
        bounds = [(0.4, 3)] * 2
        return lambda: by_scipy(method, hand, START, bounds=bounds, constraints=[area])

    peers: dict[str, Job] = {
        "CVXPY DGP": lambda: float(model().solve(gp=True, solver="CLARABEL")),
        ALONE: alone(model, gp=True),
        **dnlp(nonlinear),
        "scipy SLSQP": general("SLSQP"),
        "scipy trust-constr": general("trust-constr"),
    }
    return Work("Ex-CGP", mine, peers, {"CVXPY DGP": 0.6})


# ---- dense posynomials


def posynomial(terms: int, size: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Coefficients and exponents."""
    rng = np.random.default_rng(seed)
    return np.exp(0.4 * rng.normal(size=terms)), rng.normal(size=(terms, size)) / np.sqrt(size)


def dense(size: int, terms: int) -> Work:
    cost, limit = posynomial(terms, size, 11), posynomial(terms, size, 12)
    limit = (0.9 * limit[0] / limit[0].sum(), limit[1])

    def mine() -> hc.Problem:
        x = hc.Variable(size, bounds=(0.1, 10))
        left, right = (hc.sum(b * hc.exp(A @ hc.log(x))) for b, A in (cost, limit))
        return hc.Problem(hc.Minimize(left), [right <= 1])

    def convex() -> cp.Problem:
        u = cp.Variable(size)
        left, right = (cp.log_sum_exp(A @ u + np.log(b)) for b, A in (cost, limit))
        return cp.Problem(cp.Minimize(left), [right <= 0, u >= np.log(0.1), u <= np.log(10)])

    by_clarabel = alone(convex)

    def dgp() -> float:
        x = cp.Variable(size, pos=True)

        def total(b: FloatArray, A: FloatArray) -> Any:
            return cp.sum(
                cp.hstack([w * cp.gmatmul(a[None], x)[0] for w, a in zip(b, A, strict=True)])
            )

        rows = [total(*limit) <= 1, x >= 0.1, x <= 10]
        return cp.Problem(cp.Minimize(total(*cost)), rows).solve(gp=True, solver="CLARABEL")

    peers: dict[str, Job] = {
        "CVXPY in u": lambda: float(np.exp(convex().solve(solver="CLARABEL"))),
        "CVXPY DGP": dgp,
        ALONE: lambda: float(np.exp(by_clarabel())),
    }
    most = {"CVXPY in u": 1.2, "CVXPY DGP": 1 / 3} if size <= 100 else {"CVXPY in u": 0.7}
    return Work(f"posynomial d = {size}, K = {terms}", mine, peers, most)


# ---- chains


def chain(size: int) -> Work:
    weights = np.exp(0.3 * np.random.default_rng(size).normal(size=size))

    def mine() -> hc.Problem:
        x = hc.Variable(size, bounds=(0.1, 10))
        rows = [x[1:] * x[:-1] + 0.1 * x[1:] <= 1]
        return hc.Problem(hc.Minimize(hc.sum(weights / x)), rows)

    def convex() -> cp.Problem:
        u = cp.Variable(size)
        cost = cp.sum(cp.multiply(weights, cp.exp(-u)))
        rows = [cp.exp(u[1:] + u[:-1]) + 0.1 * cp.exp(u[1:]) <= 1]
        return cp.Problem(cp.Minimize(cost), [*rows, u >= np.log(0.1), u <= np.log(10)])

    peers: dict[str, Job] = {
        "CVXPY in u": lambda: float(convex().solve(solver="CLARABEL")),
        ALONE: alone(convex),
    }
    most = {"CVXPY in u": 0.3}
    if importlib.util.find_spec("casadi") is not None:
        peers["CasADi + IPOPT"] = lambda: _ipopt_chain(weights)
        most["CasADi + IPOPT"] = 1.0
    return Work(f"chain d = {size}", mine, peers, most)


def _ipopt_chain(weights: FloatArray) -> float:
    import casadi

    x = casadi.MX.sym("x", weights.size)
    program = {
        "x": x,
        "f": casadi.sum1(weights / x),
        "g": x[1:] * x[:-1] + 0.1 * x[1:],
    }
    quiet = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8}
    solver = casadi.nlpsol("chain", "ipopt", program, quiet)
    found = solver(x0=1.0, lbx=0.1, ubx=10, lbg=-casadi.inf, ubg=1)
    return float(found["f"])


# ---- models of the catalogue, with nothing declared, beside their convex forms by hand


def regulator(states: int, inputs: int, kind: str = "regulator") -> Work:
    """A random unstable plant; by hand an SDP in (P, Y) with Schur's complement.

    With an energy cap, what the input spends may be four fifths of what is best without it; with a
    variance bound, the first state varies by 0.95 of that.
    """
    rng = np.random.default_rng(5)
    plant, B = rng.normal(size=(states, states)), rng.normal(size=(states, inputs))
    discrete = kind == "discrete time"
    if discrete:
        plant *= 1.1 / np.sqrt(states)
    else:
        plant += (0.5 - np.linalg.eigvals(plant).real.max()) * np.eye(states)
    noise, unit = np.eye(states), np.eye(states)
    solve = scipy.linalg.solve_discrete_are if discrete else scipy.linalg.solve_continuous_are
    worth = solve(plant, B, unit, np.eye(inputs))
    best = (
        -np.linalg.solve(np.eye(inputs) + B.T @ worth @ B, B.T @ worth @ plant)
        if discrete
        else -B.T @ worth
    )
    lyapunov = scipy.linalg.solve_continuous_lyapunov
    spread = noise if discrete else lyapunov(plant + B @ best, -noise)
    cap, bound = 0.8 * float(np.trace(best @ spread @ best.T)), 0.95 * float(spread[0, 0])

    def mine() -> hc.Problem:
        P = hc.Variable((states, states), PSD=(1e-4, 1e4))
        K = hc.Variable((inputs, states), bounds=(-100, 100))
        closed = plant + B @ K
        cost = hc.trace((unit + K.T @ K) @ P)
        if discrete:
            return hc.Problem(hc.Minimize(cost), [P >> closed @ P @ closed.T + noise])
        rows = [closed @ P + P @ closed.T + noise == 0]
        if kind == "energy cap":
            cost = hc.trace(P)
            rows.append(hc.trace(K @ P @ K.T) <= cap)
        elif kind == "variance bound":
            rows.append(P[0, 0] <= bound)
        return hc.Problem(hc.Minimize(cost), rows)

    def by_hand() -> cp.Problem:
        P, Y = cp.Variable((states, states), PSD=True), cp.Variable((inputs, states))
        energy = cp.Variable((inputs, inputs), PSD=True)
        moved = plant @ P + B @ Y
        rows = [cp.bmat([[energy, Y], [Y.T, P]]) >> 0]
        cost = cp.trace(P) + cp.trace(energy)
        if discrete:
            rows.append(cp.bmat([[P - noise, moved], [moved.T, P]]) >> 0)
        else:
            rows.append(moved + moved.T + noise == 0)
        if kind == "energy cap":
            cost = cp.trace(P)
            rows.append(cp.trace(energy) <= cap)
        elif kind == "variance bound":
            rows.append(P[0, 0] <= bound)
        return cp.Problem(cp.Minimize(cost), rows)

    peers: dict[str, Job] = {
        "CVXPY in (P, Y)": lambda: float(by_hand().solve(solver="CLARABEL")),
        ALONE: alone(by_hand),
    }
    return Work(f"{kind} n = {states}", mine, peers, {"CVXPY in (P, Y)": 1.5}, SEARCH)


def process(states: int, actions: int) -> Work:
    """A random constrained decision process; by hand a linear program in occupancies."""
    rng, discount = np.random.default_rng(1), 0.9
    moves = rng.dirichlet(np.ones(states), size=(states, actions))
    reward, cost = rng.uniform(size=(2, states, actions))
    first = np.ones(states) / states
    balance = np.kron(np.eye(states), np.ones((1, actions)))
    balance -= discount * moves.reshape(states * actions, states).T
    least = linprog(cost.ravel(), A_eq=balance, b_eq=first).fun
    greedy = linprog(-reward.ravel(), A_eq=balance, b_eq=first).x @ cost.ravel()
    cap = least + 0.3 * (greedy - least)

    def mine() -> hc.Problem:
        pi = hc.Variable((states, actions), simplex=True)
        step = hc.einsum("sa,sat->st", pi, moves)
        visits = hc.solve(np.eye(states) - discount * step.T, first)
        occupancy = hc.reshape(visits, (states, 1)) * pi
        row = hc.sum(occupancy * cost) <= cap
        return hc.Problem(hc.Minimize(-hc.sum(occupancy * reward)), [row])

    def by_hand() -> float:
        limits = {"A_ub": cost.reshape(1, -1), "b_ub": [cap]}
        return float(linprog(-reward.ravel(), A_eq=balance, b_eq=first, **limits).fun)

    peers: dict[str, Job] = {"linprog in occupancies": by_hand}
    most = {"linprog in occupancies": 3.0}
    return Work(f"process {states} × {actions}", mine, peers, most, SEARCH)


REGULATORS = {
    "regulator": "regulator",
    "cap": "energy cap",
    "variance": "variance bound",
    "discrete": "discrete time",
}
WORKS: dict[str, Callable[[], Work]] = {
    "tank": tank,
    "dense100": lambda: dense(100, 20),
    "dense1000": lambda: dense(1000, 50),
    "chain1000": lambda: chain(1000),
    "chain10000": lambda: chain(10_000),
    **{
        f"{name}{states}": functools.partial(regulator, states, inputs, kind)
        for name, kind in REGULATORS.items()
        for states, inputs in ((3, 1), (6, 2), (12, 3), (20, 4))
    },
    "process5": lambda: process(5, 3),
    "process20": lambda: process(20, 5),
    "process100": lambda: process(100, 5),
}


# ---- the run


def timed(job: Job) -> tuple[float, float]:
    begun = time.process_time()  # of all threads; other work on the machine does not count
    value = job()
    return time.process_time() - begun, value


def measured(work: Work, repeat: int) -> tuple[dict[str, float], dict[str, float]]:
    """The least seconds and the value of each tool, the tools taking turns."""
    jobs: dict[str, Job] = {"hcmodel": lambda: solved(work.mine()), **work.peers}
    if work.beyond:
        jobs[YARDSTICK] = yardstick.job
    seconds = dict.fromkeys(jobs, np.inf)
    values = {}
    for turn in range(repeat + 1):
        for name, job in jobs.items():
            if turn > 1 and seconds[name] > PATIENCE:
                continue
            took, values[name] = timed(job)
            if turn or took > PATIENCE:  # the first turn warms up
                seconds[name] = min(seconds[name], took)
    return seconds, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(WORKS), help=f"some of {', '.join(WORKS)}")
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # cvxpy tells of inaccurate solutions
    print("| work | hcmodel | peer | its time | ratio | goal | difference of values |")
    print("|---|---|---|---|---|---|---|")
    missed = []
    for name in chosen.only.split(","):
        work = WORKS[name]()
        seconds, values = measured(work, chosen.repeat)
        own, value = seconds.pop("hcmodel"), values.pop("hcmodel")
        longer = work.beyond * yardstick.slowness(seconds.pop(YARDSTICK, 0.0))
        for peer, took in seconds.items():
            apart = abs(values[peer] - value) / max(abs(value), 1e-12)
            goal = f"{work.most[peer]:.2g}" if peer in work.most else ""
            print(
                f"| {work.name} | {1e3 * own:.1f} ms | {peer} | {1e3 * took:.1f} ms | "
                f"{own / took:.2f} | {goal} | {apart:.0e} |",
                flush=True,
            )
            if own > work.most.get(peer, np.inf) * took + longer:
                missed.append(f"{work.name} beside {peer}, with {1e3 * longer:.1f} ms more")
    print(f"\nBeyond their goals: {'; '.join(missed) or 'none'}.")
    if not HAS_UNO:
        print(f"\n{LEFT_OUT}")


if __name__ == "__main__":
    main()
