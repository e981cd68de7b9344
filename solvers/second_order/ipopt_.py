"""IPOPT (Wächter and Biegler 2006) as a method, through casadi's interface (extra `fast`).

IPOPT asks for values, first and second derivatives; the oracle answers and counts, whatever engine has
compiled the functions. The run is one step of the loop: its point is evaluated, measured and judged as
that of any other method, and nothing rests on what IPOPT says about it.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import SparseHessian
from hcmodel.solvers.limits import seconds_left
from hcmodel.solvers.loop import ENDINGS, Incumbent, State, Task, ending
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import Termination

FloatArray = NDArray[np.float64]
COORDINATES = ("auto", "own", "hidden")
HESSIANS = ("exact", "limited-memory")
# What IPOPT's words mean; whether a point has converged is measured.
ENDS = {
    "Infeasible_Problem_Detected": Termination.INFEASIBLE_STATIONARY,
    "Maximum_Iterations_Exceeded": Termination.ITERATION_LIMIT,
    "Maximum_CpuTime_Exceeded": Termination.TIME_LIMIT,
    "Maximum_WallTime_Exceeded": Termination.TIME_LIMIT,
}


@dataclass(frozen=True)
class IpoptOptions:
    """Options of `ipopt`."""

    coordinates: str = "auto"
    """`"own"`: the model as written; `"hidden"`: its hidden coordinates; `"auto"`: these where known."""
    hessian: str = "exact"
    """`"exact"` second derivatives, or `"limited-memory"` approximations from gradients."""
    max_iterations: int = 3000
    """Iterations of IPOPT; the number is IPOPT's own default."""
    accuracy: float = 1e-3
    """IPOPT's `tol` as a share of the tolerance: with 1e-2 the gap of four examples stayed too large."""
    most_dense: int = 1000
    """Unknowns up to which a dense second derivative is passed: 8 MB at this number."""

    def __post_init__(self) -> None:
        if self.coordinates not in COORDINATES:
            raise ValueError(
                f"unknown coordinates {self.coordinates!r}; there are: {', '.join(COORDINATES)}"
            )
        if self.hessian not in HESSIANS:
            raise ValueError(f"unknown hessian {self.hessian!r}; there are: {', '.join(HESSIANS)}")
        if self.max_iterations < 1 or not 0 < self.accuracy <= 1 or self.most_dense < 0:
            raise ValueError("max_iterations and most_dense are positive, accuracy is in (0, 1]")


class Ipopt:
    """`ipopt`."""

    def __init__(self, options: IpoptOptions | None = None) -> None:
        self.options = options or IpoptOptions()

    def init(self, task: Task, start: Evaluation) -> State:
        return State(start, np.zeros(start.rows.size), phase="start")

    def step(self, task: Task, state: State) -> State:
        """The whole run; a matrix whose pattern grows on the way makes a second one necessary."""
        bridge = Bridge(task, state.current)
        while True:
            try:
                return bridge.solved(self.options)
            except Outgrown:
                bridge.error = None

    def terminate(self, task: Task, state: State) -> Termination | None:
        return None


class Outgrown(Exception):  # noqa: N818  (a signal to the method, not an error)
    """A matrix has an entry where it had none before."""


@dataclass
class Patterns:
    """Where the matrices have had entries that are not 0, as they were asked for so far."""

    jacobian: scipy.sparse.csr_array | None = None
    hessian: scipy.sparse.csr_array | None = None

    def covers(self, name: str, matrix: scipy.sparse.csr_array) -> bool:
        """Whether the entries of a matrix are inside its pattern, which is widened if not."""
        known = getattr(self, name)
        marks = scipy.sparse.csr_array(
            (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        if known is None:
            setattr(self, name, marks)
            return True
        wider = (known + marks).tocsr()
        if wider.nnz == known.nnz:
            return True
        wider.data[:] = 1.0
        setattr(self, name, wider)
        return False


@dataclass
class Bridge:
    """The functions of a task as IPOPT asks for them: objective, rows, then linear rows of the set."""

    task: Task
    start: Evaluation
    patterns: Patterns = field(default_factory=Patterns)
    error: BaseException | None = None
    """What was raised while IPOPT asked: it can be raised again when IPOPT has ended."""
    best: Incumbent = field(init=False)

    def __post_init__(self) -> None:
        self.best = Incumbent(self.task.tolerance)
        self.best.offer(self.start, np.zeros(self.start.rows.size))
        steps = self.task.domain.cone_rows()
        self.lower, self.upper = steps.lower, steps.upper
        if any(cone.kind != "zero" for cone in steps.cones):
            raise ValueError("ipopt takes variables in boxes and simplices only")
        size = self.start.point.size
        parts = [cone.matrix for cone in steps.cones]
        self.linear = scipy.sparse.csr_array(
            scipy.sparse.vstack(parts) if parts else scipy.sparse.csr_array((0, size))
        )
        self.offset = np.concatenate([np.zeros(0), *(cone.offset for cone in steps.cones)])

    # ---- what IPOPT asks for

    def at(self, x: FloatArray) -> Evaluation:
        found = self.task.oracle.at(np.clip(x, self.lower, self.upper))
        self.best.offer(found, np.zeros(found.rows.size))
        return found

    def values(self, x: FloatArray) -> tuple[float, FloatArray]:
        found = self.at(x)
        return found.objective, np.concatenate([found.rows, self.linear @ x + self.offset])

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.at(x).gradient

    def jacobian(self, x: FloatArray) -> scipy.sparse.csr_array:
        """In the pattern that is known, which IPOPT wants to be the same at all points."""
        rows = scipy.sparse.csr_array(self.at(x).jacobian)
        whole = scipy.sparse.csr_array(scipy.sparse.vstack([rows, self.linear], format="csr"))
        return self._inside("jacobian", whole)

    def hessian(self, x: FloatArray, factor: float, weights: FloatArray) -> scipy.sparse.csr_array:
        """The upper triangle of ∇²(factor·F1 + weights·rows)."""
        found, oracle = self.at(x), self.task.oracle
        multipliers = weights[: found.rows.size]
        if factor > 0:
            whole = oracle.lagrangian_hessian(found, multipliers / factor)
        else:
            rows = oracle.restricted(objective=False)
            whole, factor = rows.lagrangian_hessian(rows.at(found.point), multipliers), 1.0
        plain = isinstance(whole, SparseHessian) and not (whole.plus.size or whole.minus.size)
        matrix = whole.sparse if plain else _dense(whole)  # type: ignore[union-attr]
        triangle = scipy.sparse.csr_array(scipy.sparse.triu(factor * matrix, format="csr"))
        return self._inside("hessian", triangle)

    def _inside(self, name: str, matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        matrix.sum_duplicates()
        if not self.patterns.covers(name, matrix):
            raise Outgrown
        known = getattr(self.patterns, name)
        if matrix.nnz == known.nnz:
            return matrix
        placed = known.copy()
        placed.data[:] = 0.0
        numbered = known.copy()
        numbered.data = np.arange(1.0, known.nnz + 1)
        marks = scipy.sparse.csr_array(
            (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        places = numbered.multiply(marks).tocsr()
        places.sort_indices()
        matrix.sort_indices()
        placed.data[places.data.astype(int) - 1] = matrix.data
        return placed

    # ---- the run

    def solved(self, options: IpoptOptions) -> State:
        from hcmodel.solvers.second_order.ipopt_callbacks import run_ipopt  # imports casadi

        x = self.start.point
        self.jacobian(x)
        exact = options.hessian == "exact" and self._affords(x, options)
        inequalities = self.start.inequalities
        count = self.start.rows.size + self.offset.size
        lowest = np.zeros(count)
        lowest[:inequalities] = -np.inf
        settings = {
            "tol": options.accuracy * self.task.tolerance,
            "max_iter": options.max_iterations,
            "bound_relax_factor": 0.0,  # no point outside of the box is evaluated
        }
        left = seconds_left()
        if np.isfinite(left):
            settings["max_wall_time"] = max(left, self.task.tolerance)
        point, multipliers, words = run_ipopt(self, x, lowest, settings, exact=exact)
        return self._ended(point, multipliers, words)

    def _affords(self, x: FloatArray, options: IpoptOptions) -> bool:
        """Whether second derivatives are sparse or small; the first ones give their pattern."""
        stack = self.task.oracle.stack
        if x.size > options.most_dense and not getattr(stack, "sparse_hessian", False):
            return False
        try:
            self.hessian(x, 1.0, np.ones(self.start.rows.size))
        except NotImplementedError:  # plain functions without second derivatives
            return False
        pattern = self.patterns.hessian
        return pattern is not None and pattern.nnz <= options.most_dense * max(
            x.size, options.most_dense
        )

    def _ended(self, point: FloatArray, multipliers: FloatArray, words: str) -> State:
        """The state after the run: IPOPT's point, or the best one that was evaluated."""
        task, rows = self.task, self.start.rows.size
        current, weights = self.best.evaluation or self.start, np.zeros(rows)
        try:
            if self.error is not None:
                raise self.error
            found = self.at(task.domain.project(task.settled(point)))
            if found.finite and found.differentiable:
                current, weights = found, np.asarray(multipliers[:rows])
                weights[: found.inequalities] = np.maximum(weights[: found.inequalities], 0.0)
            residual = max(kkt.residual(current, task.domain, weights), current.relative_violation)
        except ENDINGS as error:
            stop, cause = ending(error)
            best = self.best.evaluation or current
            return State(best, np.zeros(rows), phase="ipopt", stop=stop, cause=cause)
        stop = ENDS.get(words, Termination.STALLED)
        if residual <= task.tolerance:
            stop = Termination.CONVERGED
        conflict = None
        if stop is Termination.INFEASIBLE_STATIONARY:
            conflict = _conflict(current)
        return State(
            current, weights, phase="ipopt", residual=residual, stop=stop, conflict=conflict
        )


def _conflict(evaluation: Evaluation) -> FloatArray:
    """The violated rows, weighed by their violation: the gradient of ½‖violation‖²."""
    signs = np.sign(evaluation.rows)
    weights = evaluation.violations * signs
    return np.asarray(weights / max(float(np.max(np.abs(weights), initial=0.0)), 1.0))


def _dense(hessian: Any) -> Any:
    if hasattr(hessian, "toarray"):
        hessian = hessian.toarray()
    full = np.asarray(hessian)
    order = full.shape[0]
    columns = np.tile(np.arange(order), order)  # zeros are kept: the pattern is the same everywhere
    return scipy.sparse.csr_array(
        (full.ravel(), columns, np.arange(0, full.size + 1, order)), shape=full.shape
    )


def missing() -> str | None:
    """What has to be installed; None where casadi is there and can be imported."""
    if importlib.util.find_spec("casadi") is None:
        return "casadi, which is not installed: pip install 'hcmodel[fast]'"
    try:
        importlib.import_module("casadi")
    except Exception as error:  # a damaged package raises anything
        return (
            f"casadi, which is installed and cannot be imported ({type(error).__name__}: {error}): "
            "pip install --force-reinstall casadi"
        )
    return None
