"""Models without a convex form, evaluations, and large circuits beside other tools, as ratios of one run.

    python -m tests.benchmarks general [--only NAME,…] [--repeat N]

Functions of general models are evaluated point by point, by the engine that `auto` takes (casadi, where
it is installed). Peers start where hcmodel does. The first table has value and gradient of compiled
functions over the same by hand in numpy.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.engines.registry import ENGINES, compile_stack
from hcmodel.expressions.layout import Layout
from tests.benchmarks.speed import (
    HAS_UNO,
    LEFT_OUT,
    Job,
    Work,
    by_scipy,
    dnlp,
    measured,
    solved,
    with_uno,
)

FloatArray = NDArray[np.float64]
QUIET = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8}
HAS_CASADI = importlib.util.find_spec("casadi") is not None
# Calls between two looks at the clock.
CALLS = 100
MODEL = Path(__file__).parents[2] / "examples" / "large" / "gate_sizing.hc"


def both_of_scipy(
    function: Callable[[FloatArray], Any], start: FloatArray, **keywords: Any
) -> dict[str, Job]:
    """SLSQP and trust-constr, with values and gradients by hand."""
    return {
        f"scipy {method}": functools.partial(by_scipy, method, function, start, **keywords)
        for method in ("SLSQP", "trust-constr")
    }


# ---- general models


def plant(states: int, inputs: int) -> tuple[FloatArray, FloatArray]:
    """A stable plant, so that K = 0 is a start for every tool."""
    rng = np.random.default_rng(5)
    A, B = rng.normal(size=(states, states)), rng.normal(size=(states, inputs))
    A -= (np.linalg.eigvals(A).real.max() + 0.3) * np.eye(states)
    return A, B


def cost_by_hand(A: FloatArray, B: FloatArray, gain: FloatArray) -> tuple[float, FloatArray]:
    """J(K) and its gradient by two Lyapunov equations; infinite for an unstable loop."""
    states, inputs = B.shape
    K = gain.reshape(inputs, states)
    closed, weight = A + B @ K, np.eye(states) + K.T @ K
    if np.linalg.eigvals(closed).real.max() >= 0:
        return np.inf, np.zeros(gain.size)
    P = scipy.linalg.solve_continuous_lyapunov(closed, -np.eye(states))
    S = scipy.linalg.solve_continuous_lyapunov(closed.T, -weight)
    return float(np.trace(weight @ P)), (2 * (K + B.T @ S) @ P).ravel()


def direct_regulator(states: int = 4, inputs: int = 2) -> Work:
    A, B = plant(states, inputs)

    def mine() -> hc.Problem:
        K = hc.Variable(
            (inputs, states), name="K", bounds=(-50, 50), start=np.zeros((inputs, states))
        )
        P = hc.lyap(A + B @ K, np.eye(states))
        return hc.Problem(hc.Minimize(hc.trace((np.eye(states) + K.T @ K) @ P)))

    def with_ipopt() -> float:
        """Lyapunov's equation as a linear system, which is the way to write it in CasADi."""
        import casadi

        gain = casadi.MX.sym("K", inputs * states)
        K = casadi.reshape(gain, inputs, states)
        closed, one = casadi.DM(A) + casadi.DM(B) @ K, casadi.DM.eye(states)
        system = casadi.kron(one, closed) + casadi.kron(closed, one)
        P = casadi.reshape(casadi.solve(system, -casadi.vec(one)), states, states)
        program = {"x": gain, "f": casadi.trace((one + K.T @ K) @ P)}
        found = casadi.nlpsol("gain", "ipopt", program, QUIET)(x0=0.0, lbx=-50, ubx=50)
        return float(found["f"])

    hand = functools.partial(cost_by_hand, A, B)
    bounds = [(-50, 50)] * (inputs * states)
    peers = both_of_scipy(hand, np.zeros(inputs * states), bounds=bounds)
    most = {"scipy SLSQP": 5.0}
    if HAS_CASADI:
        peers["CasADi + IPOPT"], most["CasADi + IPOPT"] = with_ipopt, 5.0
    return Work(f"J(K) n = {states}", mine, peers, most)


def two_norms() -> Work:
    """Ex-CNLS of the paper with its map declared; the others get a row for each side of a kink."""
    target = np.array([-0.5, -0.6])

    def mine() -> hc.Problem:
        x = hc.Variable(2, name="x", bounds=(-1, 2.5), start=[0.5, 0.5])
        c = hc.hstack([x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1])
        near = hc.norm(c - target, 1) <= 0.8
        return hc.Problem(hc.Minimize(hc.norm(c, np.inf)), [near], hidden=[c])

    # (x, t, p): t >= |c|, p >= |c - target|, p_1 + p_2 <= 0.8; x_1 >= 0 at the start and at the optimum,
    # and only there 2|x_1| is smooth
    first = np.array([0.5, 0.5, 0.5, 0.0, 0.1])

    def rows(z: Any) -> list[Any]:
        c = (z[0] - 1, 2 * (z[0] ** 2) ** 0.5 - z[1] - 1)
        sides = [sign * part - z[2] for part in c for sign in (1, -1)]
        parts = zip(c, target, (z[3], z[4]), strict=True)
        sides += [sign * (part - aim) - p for part, aim, p in parts for sign in (1, -1)]
        return [*sides, z[3] + z[4] - 0.8]

    def slopes(z: FloatArray) -> FloatArray:
        c = np.array([[1.0, 0, 0, 0, 0], [2 * np.sign(z[0]), -1.0, 0, 0, 0]])
        unit = np.eye(5)
        found = [sign * part - unit[2] for part in c for sign in (1, -1)]
        found += [sign * c[i] - unit[3 + i] for i in range(2) for sign in (1, -1)]
        return np.array([*found, unit[3] + unit[4]])

    def with_ipopt() -> float:
        import casadi

        z = casadi.SX.sym("z", 5)
        program = {"x": z, "f": z[2], "g": casadi.vertcat(*rows(z))}
        solver = casadi.nlpsol("norms", "ipopt", program, QUIET)
        low, high = [-1, -1, 0, 0, 0], [2.5, 2.5, 10, 10, 10]
        return float(solver(x0=first, lbx=low, ubx=high, lbg=-np.inf, ubg=0)["f"])

    sides = scipy.optimize.NonlinearConstraint(
        lambda z: np.array(rows(z)), -np.inf, 0.0, jac=slopes
    )
    bounds = [(-1, 2.5)] * 2 + [(0, 10)] * 3
    peers = both_of_scipy(lambda z: (z[2], np.eye(5)[2]), first, bounds=bounds, constraints=[sides])
    most = {"scipy SLSQP": 5.0}
    if HAS_CASADI:
        peers["CasADi + IPOPT"], most["CasADi + IPOPT"] = with_ipopt, 5.0
    return Work("Ex-CNLS, map declared", mine, peers, most)


def rosenbrock(size: int = 4) -> Work:
    """Smooth Rosenbrock with its map declared; the optimum is 0 at (1, …, 1)."""

    def mine() -> hc.Problem:
        x = hc.Variable(size, name="x", bounds=(-2, 2), start=np.full(size, -1.0))
        c = hc.hstack([x[0] - 1, x[1:] - hc.square(x[:-1])])
        return hc.Problem(hc.Minimize(1 + hc.sum(hc.square(c))), hidden=[c])

    def hand(x: FloatArray) -> tuple[float, FloatArray]:
        rest = x[1:] - x[:-1] ** 2
        gradient = np.zeros(size)
        gradient[0] = 2 * (x[0] - 1)
        gradient[1:] += 2 * rest
        gradient[:-1] -= 4 * x[:-1] * rest
        return 1 + (x[0] - 1) ** 2 + float(rest @ rest), gradient

    def with_ipopt() -> float:
        import casadi

        x = casadi.SX.sym("x", size)
        rest = x[1:] - x[:-1] ** 2
        program = {"x": x, "f": 1 + (x[0] - 1) ** 2 + casadi.dot(rest, rest)}
        found = casadi.nlpsol("r", "ipopt", program, QUIET)(x0=-1.0, lbx=-2, ubx=2)
        return float(found["f"])

    def nonlinear() -> float:
        x = cp.Variable(size, bounds=[-2, 2])
        rest = x[1:] - cp.square(x[:-1])
        cost = 1 + cp.square(x[0] - 1) + cp.sum(cp.square(rest))
        return with_uno(cp.Problem(cp.Minimize(cost)), {x: np.full(size, -1.0)})

    peers = both_of_scipy(hand, np.full(size, -1.0), bounds=[(-2, 2)] * size)
    peers.update(dnlp(nonlinear))
    most = {"scipy SLSQP": 5.0}
    if HAS_CASADI:
        peers["CasADi + IPOPT"], most["CasADi + IPOPT"] = with_ipopt, 5.0
    return Work(f"Rosenbrock n = {size}, map declared", mine, peers, most)


def black_box() -> Work:
    """Ex-CGP behind functions of the user with gradients, logarithms declared."""

    def value(x: FloatArray) -> Any:
        return x[0] * x[1] + 4 / x[0] + 1 / x[1]

    def slope(x: FloatArray) -> FloatArray:
        return np.array([x[1] - 4 / x[0] ** 2, x[0] - 1 / x[1] ** 2])

    def mine() -> hc.Problem:
        x = hc.Variable(2, name="x", bounds=(0.4, 3), start=[0.6, 1.6])
        cost = hc.function(value, x, grad=slope)
        area = hc.function(lambda z: z[0] * z[1], x, grad=lambda z: np.array([z[1], z[0]]))
        return hc.Problem(hc.Minimize(cost), [area <= 1], hidden=[hc.log(x)])

    row = scipy.optimize.NonlinearConstraint(
        lambda z: z[0] * z[1], -np.inf, 1.0, jac=lambda z: np.array([[z[1], z[0]]])
    )
    first, bounds = [0.6, 1.6], [(0.4, 3)] * 2

    def with_ipopt() -> float:
        """Second derivatives of callbacks would be differences: IPOPT approximates them."""
        import casadi

        x = casadi.MX.sym("x", 2)
        cost = casadi_callback("cost", value, slope)
        area = casadi_callback("area", lambda z: z[0] * z[1], lambda z: np.array([z[1], z[0]]))
        program = {"x": x, "f": cost(x), "g": area(x)}
        options = QUIET | {"ipopt.hessian_approximation": "limited-memory"}
        solver = casadi.nlpsol("tank", "ipopt", program, options)
        return float(solver(x0=first, lbx=0.4, ubx=3, lbg=-np.inf, ubg=1)["f"])

    peers = both_of_scipy(
        lambda z: (value(z), slope(z)), np.array(first), bounds=bounds, constraints=[row]
    )
    most = {"scipy SLSQP": 5.0}
    if HAS_CASADI:
        peers["CasADi + IPOPT"], most["CasADi + IPOPT"] = with_ipopt, 5.0
    return Work("black-box tank, map declared", mine, peers, most)


def casadi_callback(name: str, value: Callable[..., Any], slope: Callable[..., Any]) -> Any:
    """A function of two unknowns with its gradient, as CasADi takes them."""
    import casadi

    class Called(casadi.Callback):  # type: ignore[misc]
        def __init__(self, name: str, function: Callable[..., Any], inputs: int) -> None:
            casadi.Callback.__init__(self)
            self.function, self.inputs = function, inputs
            self.construct(name, {})

        def get_n_in(self) -> int:
            return self.inputs

        def get_sparsity_in(self, place: int) -> Any:
            return casadi.Sparsity(1, 1) if place else casadi.Sparsity.dense(2, 1)

        def get_sparsity_out(self, place: int) -> Any:
            return casadi.Sparsity.dense(1, self.inputs)  # the value, or with it the gradient

        def eval(self, arguments: Any) -> list[Any]:
            found = np.atleast_2d(self.function(np.array(arguments[0]).ravel()))
            return [casadi.DM(found)]

        def has_jacobian(self) -> bool:
            return self.inputs == 1

        def get_jacobian(self, name: str, *_: Any) -> Any:
            self.slope = Called(name, slope, 2)  # CasADi keeps no reference of its own
            return self.slope

    return Called(name, value, 1)


# ---- circuits


@functools.cache
def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", MODEL.with_name("generate.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gates(count: int, *, long: bool = False) -> Work:
    """The circuit of examples/large; IPOPT gets the same functions in x and t."""
    data = _generator().circuit(count, long=long)

    def with_ipopt() -> float:
        import casadi

        source, sink = (np.array(data[name]) - 1 for name in ("source", "sink"))
        R, C, L = (np.array(data[name]) for name in "RCL")
        wires = casadi.DM.triplet(
            source.tolist(), sink.tolist(), casadi.DM.ones(source.size), count, count
        )
        x, t = casadi.MX.sym("x", count), casadi.MX.sym("t", count)
        delay = R * (C * x + L + casadi.mtimes(wires, x)) / x
        arrival = t[source.tolist()] + delay[sink.tolist()] - t[sink.tolist()]
        program = {
            "x": casadi.vertcat(x, t),
            "f": casadi.sum1(x),
            "g": casadi.vertcat(arrival, delay - t),
        }
        lower = np.concatenate([np.ones(count), np.zeros(count)])
        upper = np.concatenate([np.full(count, 64.0), np.full(count, data["T"])])
        start = np.concatenate([np.full(count, 8.0), np.full(count, data["T"] / 2)])
        solver = casadi.nlpsol("gates", "ipopt", program, QUIET)
        return float(solver(x0=start, lbx=lower, ubx=upper, lbg=-np.inf, ubg=0)["f"])

    peers: dict[str, Job] = {"CasADi + IPOPT": with_ipopt} if HAS_CASADI else {}
    kind = "long" if long else "local"
    return Work(
        f"{count:,} gates, {kind} wires",
        lambda: hc.load(MODEL, data=data),
        peers,
        {"CasADi + IPOPT": 0.7},
    )


WORKS: dict[str, Callable[[], Work]] = {
    "direct4": direct_regulator,
    "norms": two_norms,
    "rosenbrock4": rosenbrock,
    "blackbox": black_box,
    "gates1000": lambda: gates(1000),
    "gates1000long": lambda: gates(1000, long=True),
    "gates10000": lambda: gates(10_000),
    "gates10000long": lambda: gates(10_000, long=True),
}
QUICK = ("direct4", "norms", "rosenbrock4", "blackbox", "gates1000")


# ---- evaluations


def least(functions: Sequence[Callable[[], Any]], repeat: int = 40) -> list[float]:
    """Seconds of one call of each, the least of several means; the functions take turns."""
    found = [np.inf] * len(functions)
    for _ in range(repeat):
        for i, function in enumerate(functions):
            begun = time.process_time()
            for _ in range(CALLS):
                function()
            found[i] = min(found[i], (time.process_time() - begun) / CALLS)
    return found


def evaluations() -> list[tuple[str, str, float, float]]:
    """Name, engine, seconds of value and gradient, and the same by hand in numpy."""
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    point = np.array([0.7, 1.3])

    def tank() -> Any:
        a, b = point
        return a * b + 4 / a + 1 / b, np.array([b - 4 / a**2, a - 1 / b**2])

    rng = np.random.default_rng(3)
    exponents, weights = rng.normal(size=(20, 100)) / 10, rng.uniform(0.5, 2, 20)
    z = hc.Variable(100, name="z", bounds=(0.1, 10))
    place = rng.uniform(0.5, 2, 100)

    def posynomial() -> Any:
        terms = weights * np.exp(exponents @ np.log(place))
        return terms.sum(), (terms @ exponents) / place

    A, B = plant(4, 2)
    K = hc.Variable((2, 4), name="K", bounds=(-50, 50))
    gain = np.full(8, 0.01)
    cost = hc.trace((np.eye(4) + K.T @ K) @ hc.lyap(A + B @ K, np.eye(4)))
    cases = [
        ("Ex-CGP", x[0] * x[1] + 4 / x[0] + 1 / x[1], x, point, tank),
        (
            "posynomial d = 100",
            hc.sum(weights * hc.exp(exponents @ hc.log(z))),
            z,
            place,
            posynomial,
        ),
        ("J(K) n = 4", cost, K, gain, lambda: cost_by_hand(A, B, gain)),
    ]
    found = []
    for name, root, variable, at, hand in cases:
        for engine in ENGINES:
            if ENGINES[engine].missing is None:
                stack = compile_stack([root], Layout([variable]), 1, engine=engine)

                def evaluated(stack: Any = stack, at: FloatArray = at) -> Any:
                    forward = stack.evaluate(at, "objective")  # it has no memo
                    return forward.values, forward.jacobian()

                own, by_hand = least([evaluated, hand])
                np.testing.assert_allclose(evaluated()[1].ravel(), hand()[1], rtol=1e-8)
                found.append((name, engine, own, by_hand))
    return found


# ---- new values of a parameter


def resolves(count: int = 1000) -> tuple[float, float]:
    """Least seconds of a solve of Ex-CGP with another limit, and growth of the peak memory in MB."""
    x, cap = hc.Variable(2, bounds=(0.4, 3)), hc.Parameter(name="cap", value=1.0, pos=True)
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= cap])
    fastest, peak = np.inf, 0.0
    for number in range(count):
        cap.value = 1.0 + number / count
        begun = time.process_time()
        solved(problem)
        fastest = min(fastest, time.process_time() - begun)
        if number == count // 10:  # everything has been compiled and cached
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return fastest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - peak


# ---- the run


def show_resolves() -> None:
    seconds, growth = resolves()
    print(f"Ex-CGP solved again with a new parameter: {1e3 * seconds:.1f} ms (goal 3.0);")
    print(f"peak memory grows by {growth:.1f} MB over the last 900 of 1,000 solves.\n")


def show_evaluations() -> None:
    print(
        "| value and gradient | engine | hcmodel | numpy by hand | ratio |\n|---|---|---|---|---|"
    )
    for name, engine, own, hand in evaluations():
        times = f"{1e6 * own:.1f} µs | {1e6 * hand:.1f} µs | {own / hand:.2f}"
        print(f"| {name} | {engine} | {times} |", flush=True)
    print()


def show(works: dict[str, Callable[[], Work]], repeat: int) -> list[tuple[str, str, float]]:
    """Print the table of whole jobs; (work, tool, seconds) for a plot."""
    print("| work | hcmodel | peer | its time | ratio | goal | difference of values |")
    print("|---|---|---|---|---|---|---|")
    found: list[tuple[str, str, float]] = []
    for make in works.values():
        work = make()
        seconds, values = measured(work, repeat)
        found += [(work.name, tool, each) for tool, each in seconds.items()]
        own, value = seconds.pop("hcmodel"), values.pop("hcmodel")
        for peer, took in seconds.items():
            apart = abs(values[peer] - value) / max(abs(value), 1e-12)
            goal = f"{work.most[peer]:.2g}" if peer in work.most else ""
            times = f"{1e3 * own:.1f} ms | {peer} | {1e3 * took:.1f} ms | {own / took:.2f}"
            print(f"| {work.name} | {times} | {goal} | {apart:.0e} |", flush=True)
    if not HAS_UNO:
        print(f"\n{LEFT_OUT}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(WORKS), help=f"some of {', '.join(WORKS)}")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    show_evaluations()
    show_resolves()
    show({name: WORKS[name] for name in chosen.only.split(",")}, chosen.repeat)


if __name__ == "__main__":
    main()
