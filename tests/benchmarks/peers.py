"""Other people's solvers on some of the development set, as ratios of time in one run.

CVXPY gets each model as written and takes it if its rules (DCP, then DGP) accept it. CasADi with IPOPT
gets the same functions in its own symbols; scipy's SLSQP and trust-constr get values and derivatives from
hcmodel's compiled functions. Kinks reach the last three as rows over bounding variables, which is what a
user of theirs would write; semidefinite bounds cannot reach them at all. All start where hcmodel does.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from regions import table

import hcmodel as hc
from hcmodel.solving.start import start_vector
from tests.benchmarks import peer_models
from tests.benchmarks.development_set import Case, development_set

FloatArray = NDArray[np.float64]

PROBLEMS = (
    "gpkit_simpleflight",
    "cvx_cantilever",
    "hs101",
    "fatkhullin_cgp100",
    "lqr_carex3",
    "lqr_compleib_he1",
    "cmdp.hc",
    "20 states, 2 costs",
    "Ex-CNLS, no map",
    "mixed.hc",
    "Rosenbrock n = 3",
)
FEASIBLE = ("optimal", "locally_optimal", "optimal_inaccurate")
MOST_SECONDS = 15.0
# A run that was this quick is repeated, and the better time counts.
QUICK = 2.0
# What still counts as feasible and as solved, relative.
ALLOWED = 1e-5
NEAR = 1e-4


@dataclass(frozen=True)
class Outcome:
    """A point's value and largest violation of rows and bounds, and what the solver says of it."""

    value: float
    violation: float
    status: str


class OutOfTimeError(Exception):
    """Raised inside a function that a peer evaluates."""


def comparison() -> str:
    """The table: a row a problem, hcmodel's `auto` first, then the peers' times as multiples of its."""
    header = ("problem", "`auto`, s", *PEERS)
    rows = []
    for case in development_set():
        if case.name in PROBLEMS:
            ours, seconds = timed(lambda case=case: own(case))
            first = f"{seconds:.2f} ({case.error(ours.value):.0e})"
            rows.append((case.name, first, *(cell(case, peer, seconds) for peer in PEERS.values())))
            print("  ".join(rows[-1]), flush=True)
    return table(header, rows)


def cell(case: Case, peer: Callable[[Case], Outcome | str], ours: float) -> str:
    found, seconds = timed(lambda: peer(case))
    if isinstance(found, str):
        return found
    ratio, error = f"{seconds / ours:.2g}×", case.error(found.value)
    if found.violation > ALLOWED:
        return f"fails, {ratio}: {found.status}, violation {found.violation:.0e}"
    if error > NEAR:
        return f"fails, {ratio}: {found.status}, error {error:.0e}"
    return f"{ratio} ({error:.0e})"


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """What an action returns, and its processor seconds; the better of two where it is quick."""
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = action()
        seconds = time.process_time() - clock
        if seconds < QUICK and not isinstance(result, str):
            clock = time.process_time()
            action()
            seconds = min(seconds, time.process_time() - clock)
    return result, seconds


def own(case: Case) -> Outcome:
    problem = case.make()
    problem.solve()
    solution = problem.solution
    assert solution is not None
    violation = solution.certificate.violation
    return Outcome(
        float(solution.value or 0.0),
        np.inf if violation is None else violation,
        solution.status.value,
    )


def cvxpy(case: Case) -> Outcome | str:
    if not installed("cvxpy"):
        return "not installed"
    import cvxpy as cp

    problem = peer_models.cvxpy_model(case)
    if problem is None:
        return "cannot be written"
    gp = not problem.is_dcp()
    if gp and not problem.is_dgp():
        return "refused"
    try:
        problem.solve(gp=gp)
    except cp.error.SolverError:
        return "fails: solver error"
    worst = max((float(np.max(row.violation())) for row in problem.constraints), default=0.0)
    return Outcome(float(problem.value), worst, problem.status)


def casadi(case: Case) -> Outcome | str:
    if not installed("casadi"):
        return "not installed"
    import casadi as ca

    model = peer_models.casadi_model(case)
    quiet = {"print_level": 0, "sb": "yes", "max_cpu_time": MOST_SECONDS}
    with contextlib.redirect_stdout(io.StringIO()):
        solver = ca.nlpsol(
            "peer",
            "ipopt",
            {"x": model.x, "f": model.f, "g": model.g},
            {"print_time": False, "ipopt": quiet},
        )
        found = solver(
            x0=model.start,
            lbx=model.lower,
            ubx=model.upper,
            lbg=model.rows_lower,
            ubg=model.rows_upper,
        )
    rows, point = np.ravel(found["g"]), np.ravel(found["x"])
    worst = max(
        float(np.max(np.maximum(low - values, values - high), initial=0.0))
        for values, low, high in (
            (rows, model.rows_lower, model.rows_upper),
            (point, model.lower, model.upper),
        )
    )
    return Outcome(model.sign * float(found["f"]), worst, solver.stats()["return_status"])


@dataclass(frozen=True)
class Arrays:
    """A model as scipy takes it: functions of the flat vector, bounds, and sums that are 1."""

    problem: hc.Problem

    def __post_init__(self) -> None:
        self.problem.forms().refresh()

    @property
    def form(self) -> Any:
        return self.problem.forms().lifted

    def start(self) -> FloatArray:
        domain = self.problem.canonical.domain
        first = start_vector(self.problem.model, domain, None, False)
        return np.asarray(self.form.chain.point(domain.project(first)))

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        size = self.form.canonical.layout.size
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        for variable, place in self._blocks():
            if variable.set.is_box:
                lower[place] = np.ravel(np.broadcast_to(variable.lower, variable.shape))
                upper[place] = np.ravel(np.broadcast_to(variable.upper, variable.shape))
            elif variable.set.is_distribution:
                lower[place] = 0.0
        return lower, upper

    def sums(self) -> FloatArray:
        """A row for each distribution: its entries add up to 1."""
        rows = []
        for variable, place in self._blocks():
            if variable.set.is_distribution:
                own = np.zeros(
                    (variable.size // variable.shape[-1], self.form.canonical.layout.size)
                )
                own[:, place] = np.kron(np.eye(own.shape[0]), np.ones(variable.shape[-1]))
                rows.append(own)
        return np.vstack(rows) if rows else np.zeros((0, self.form.canonical.layout.size))

    def _blocks(self) -> Iterator[tuple[hc.Variable, slice]]:
        layout = self.form.canonical.layout
        for variable, block in zip(layout.variables, layout.blocks, strict=True):
            yield variable, slice(block.start, block.stop)


def scipy_method(name: str) -> Callable[[Case], Outcome | str]:
    def peer(case: Case) -> Outcome | str:
        model = Arrays(case.make())
        oracle, sums = model.form.oracle(), model.sums()
        lower, upper = model.bounds()
        deadline = time.monotonic() + MOST_SECONDS

        def at(x: FloatArray) -> Any:
            if time.monotonic() > deadline:
                raise OutOfTimeError
            return oracle.at(x)

        def jacobian(x: FloatArray) -> FloatArray:
            rows = at(x).jacobian
            return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)

        count, total = model.form.canonical.outer.inequalities, model.form.canonical.outer.size
        equalities = np.arange(total) >= count
        constraints: list[Any] = []
        if total:
            floor = np.where(equalities, 0.0, -np.inf)
            constraints.append(
                scipy.optimize.NonlinearConstraint(
                    lambda x: at(x).rows, floor, np.zeros(total), jac=jacobian
                )
            )
        if len(sums):
            constraints.append(scipy.optimize.LinearConstraint(sums, 1.0, 1.0))
        try:
            found = scipy.optimize.minimize(
                lambda x: at(x).objective,
                model.start(),
                jac=lambda x: at(x).gradient,
                method=name,
                bounds=scipy.optimize.Bounds(lower, upper),
                constraints=constraints,
                tol=1e-8,
                options={"maxiter": 1000},
            )
        except OutOfTimeError:
            return f"fails: not done after {MOST_SECONDS:g} s"
        except ValueError as error:  # scipy's own: infinite or undefined values
            return f"fails: {str(error).split('.')[0]}"
        last = oracle.at(np.clip(found.x, lower, upper))
        sign = model.problem.objective.sign
        return Outcome(
            sign * last.objective, float(np.max(last.violations, initial=0.0)), _said(found)
        )

    return peer


def _said(found: Any) -> str:
    words: str = str(found.message).rstrip(".").replace("`", "")
    return words[:1].lower() + words[1:]


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


PEERS: dict[str, Callable[[Case], Outcome | str]] = {
    "CVXPY": cvxpy,
    "CasADi + IPOPT": casadi,
    "scipy SLSQP": scipy_method("SLSQP"),
    "scipy trust-constr": scipy_method("trust-constr"),
}
