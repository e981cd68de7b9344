"""Clarabel, the interior-point method of Goulart and Chen, as the general backend.

Programs of one pattern, as the steps of one run mostly are, go into the solver object that is already
set up: only the numbers are replaced.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import clarabel
import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.limits import TimeExhausted, check_time, seconds_left
from hcmodel.solvers.memory import check_factors, check_semidefinite
from hcmodel.solvers.numerics import BACKEND_ROUNDING, INFINITE, TINY
from hcmodel.solvers.qp.balance import balanced
from hcmodel.solvers.qp.columns import above_bounds, diagonal, upper_triangle
from hcmodel.solvers.qp.cone_options import ConeOptions
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    without_point,
)
from hcmodel.solvers.qp.effort import effort
from hcmodel.solvers.qp.program import Cone, QPSolution, QPStatus, QuadraticProgram

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ClarabelRules:
    """What is asked of Clarabel, beside the accuracy `BACKEND_ROUNDING`."""

    # Iterations, half of Clarabel's own default.
    max_iterations: int = 100  # development set (tests/benchmarks/calls.py)
    # A multiplier above this, and above the distance to its bound, marks the bound as active.
    snap: float = 1e-7  # development set (tests/benchmarks/calls.py)
    # Entries of a cone program up to which it is solved to this accuracy, if Clarabel gets there: twenty
    # iterations more take less time than a Newton step on the model.
    few: int = 100  # programs of CBLIB: not faster with 100 entries, slower with 200
    finest: float = (
        1e-13  # with 1e-12 the certificate of Ex-CGP takes a Newton step, with 1e-13 none
    )
    # Entries of the rows up to which no estimate is made: an iteration takes milliseconds.
    small: int = 10_000  # at 2e9 operations per second (effort.py), with 100 entries in each row
    # From this many variables on, the factorisation that works in blocks (faer) is used.
    blocked: int = 500  # where it is the faster one (tests/benchmarks/large.py)
    # The same from this many entries of a semidefinite matrix on, which are a dense block of the factor.
    blocked_matrix: int = (
        60  # of 55 it takes as long, of 120 0.84 of the time, of 300 0.39 (regulators)
    )


RULES = ClarabelRules()

STATUSES = {
    "Solved": QPStatus.SOLVED,
    "AlmostSolved": QPStatus.ALMOST_SOLVED,
    "PrimalInfeasible": QPStatus.INFEASIBLE,
    "AlmostPrimalInfeasible": QPStatus.INFEASIBLE,
    "DualInfeasible": QPStatus.UNBOUNDED,
    "AlmostDualInfeasible": QPStatus.UNBOUNDED,
}


CONE_STATUSES = {
    "Solved": ConeStatus.SOLVED,
    "AlmostSolved": ConeStatus.ALMOST_SOLVED,
    "PrimalInfeasible": ConeStatus.INFEASIBLE,
    "AlmostPrimalInfeasible": ConeStatus.ALMOST_INFEASIBLE,
    "DualInfeasible": ConeStatus.UNBOUNDED,
    "AlmostDualInfeasible": ConeStatus.ALMOST_UNBOUNDED,
    "MaxTime": ConeStatus.TIME_LIMIT,
    "MaxIterations": ConeStatus.ITERATION_LIMIT,
}


# Clarabel ends like this where it gets no further.
UNDECIDED = (ConeStatus.FAILED, ConeStatus.ITERATION_LIMIT)
# The exception by which Rust code ends that cannot go on.
PANIC = "PanicException"


CONES = {
    "zero": clarabel.ZeroConeT,
    "nonnegative": clarabel.NonnegativeConeT,
    "psd": clarabel.PSDTriangleConeT,
}


class ClarabelBackend:
    def __init__(self) -> None:
        self._pattern: tuple[Any, ...] | None = None
        self._solver: Any = None

    def solve(self, program: QuadraticProgram) -> QPSolution:
        check_time()
        data = _Conic(program)
        pattern = data.pattern()
        settings = _settings(data.q.size, data.orders)
        settings.time_limit = _time_limit(data.A, data.orders)
        if self._solver is not None and _same(pattern, self._pattern):
            numbers = {"P": data.P.data, "q": data.q, "A": data.A.data, "b": data.b}
            # settings are replaced only where they differ: a small program takes no longer than that
            timed = {"settings": settings} if np.isfinite(settings.time_limit) else {}
            self._solver.update(**numbers, **timed)
        else:
            self._solver = clarabel.DefaultSolver(
                data.P, data.q, data.A, data.b, data.cones, settings
            )
            self._pattern = pattern
        answer = _answered(self._solver, data.A.shape)
        self._solver = None if answer.status == PANIC else self._solver
        if str(answer.status) == "MaxTime":
            raise TimeExhausted
        return data.solution(answer, STATUSES.get(str(answer.status), QPStatus.FAILED))


def _answered(solver: Any, shape: tuple[int, ...]) -> Any:
    """Clarabel's answer; one without numbers where its code panics, as over an eigenvalue of NaN.

    A panic is no `Exception`, so that nothing else would catch it; its class has no name to import.
    """
    try:
        return solver.solve()
    except BaseException as error:
        if type(error).__name__ != PANIC:
            raise
    rows, columns = (np.full(size, np.nan) for size in shape)
    return SimpleNamespace(status=PANIC, x=columns, s=rows, z=rows, iterations=0)


def _time_limit(A: Any, orders: Sequence[int]) -> float:
    """Seconds for Clarabel, which finishes an iteration that it has begun; raises where they are too few.

    Memory that the factors do not have is refused here, too.
    """
    if A.nnz <= RULES.small and not orders:
        return seconds_left()
    cost = effort(A, [order * (order + 1) // 2 for order in orders])
    check_factors(cost.entries)
    limit = cost.time_limit()
    if limit is None:
        raise TimeExhausted
    return limit


def _settings(size: int, orders: Sequence[int]) -> Any:
    settings = clarabel.DefaultSettings()
    largest = max((order * (order + 1) // 2 for order in orders), default=0)
    blocked = size >= RULES.blocked or largest >= RULES.blocked_matrix
    if blocked and hasattr(settings, "max_threads"):  # as long as there is faer
        settings.direct_solve_method = "faer"
        settings.max_threads = 1  # the same numbers on every machine
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = BACKEND_ROUNDING
    settings.max_iter = RULES.max_iterations
    # What Clarabel asks for before it lets the numbers of a solver object be replaced.
    settings.presolve_enable = False
    settings.chordal_decomposition_enable = False
    settings.input_sparse_dropzeros = False
    return settings


class ClarabelConeBackend:
    """Keeps the solver object: a program of the same pattern only replaces its numbers."""

    def __init__(self) -> None:
        self._pattern: tuple[Any, ...] | None = None
        self._solver: Any = None

    def fits(self, program: ConeProgram) -> bool:
        return True

    def solve(self, program: ConeProgram, options: ConeOptions) -> ConeSolution:
        balance = balanced(program)
        if balance is None:
            return self._solved(program, options)
        return balance.solution(self._solved(balance.program, options))

    def _solved(self, program: ConeProgram, options: ConeOptions) -> ConeSolution:
        has_matrices = any(cone.kind is ConeKind.PSD_TRIANGLE for cone in program.cones)
        if not options.fine or has_matrices or program.matrix.nnz > RULES.few:
            return self._run(program, options)
        began = time.monotonic()
        finer = self._run(program, options, min(options.tolerance, RULES.finest))
        if finer.status not in UNDECIDED:
            return finer
        left = options.time_limit - (time.monotonic() - began)
        self._solver = None  # one that has failed ends worse than a new one
        found = self._run(program, replace(options, time_limit=max(left, 0.0)))
        return replace(found, iterations=finer.iterations + found.iterations)

    def _run(
        self, program: ConeProgram, options: ConeOptions, aim: float | None = None
    ) -> ConeSolution:
        """The solution within the tolerance; with an `aim`, as near to that as Clarabel gets."""
        P, A = _upper_triangle(program.quadratic), program.matrix
        orders = [cone.order for cone in program.cones if cone.kind is ConeKind.PSD_TRIANGLE]
        settings = _settings(program.linear.size, orders)
        settings.max_iter = options.max_iterations
        stop = options.tolerance
        if aim is not None:
            settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = stop
            settings.reduced_tol_feas, stop = stop, aim
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = stop
        check_semidefinite(orders)
        try:
            settings.time_limit = min(options.time_limit, _time_limit(A, orders))
        except TimeExhausted:
            return without_point(program, ConeStatus.TIME_LIMIT)
        pattern = (program.cones, A.shape, A.indptr, A.indices, P.indptr, P.indices)
        if self._solver is not None and _same(pattern, self._pattern):
            numbers = {"P": P.data, "q": program.linear, "A": A.data, "b": program.offset}
            self._solver.update(**numbers, settings=settings)
        else:
            cones = [part for block in program.cones for part in _clarabel_cones(block)]
            self._solver = clarabel.DefaultSolver(
                P, program.linear, A, program.offset, cones, settings
            )
            self._pattern = pattern
        answer = _answered(self._solver, A.shape)
        self._solver = None if answer.status == PANIC else self._solver
        found = _cone_solution(program, answer)
        if aim is not None and found.status is ConeStatus.ALMOST_SOLVED:
            return replace(found, status=ConeStatus.SOLVED)  # within the tolerance
        return found


def _clarabel_cones(block: ConeBlock) -> list[Any]:
    if block.kind is ConeKind.ZERO:
        return [clarabel.ZeroConeT(block.size)]
    if block.kind is ConeKind.NONNEGATIVE:
        return [clarabel.NonnegativeConeT(block.size)]
    if block.kind is ConeKind.SECOND_ORDER:
        return [clarabel.SecondOrderConeT(block.size)]
    if block.kind is ConeKind.PSD_TRIANGLE:
        return [clarabel.PSDTriangleConeT(block.order)]
    if block.kind is ConeKind.POWER:
        return [clarabel.PowerConeT(block.exponent)] * (block.size // 3)
    return [clarabel.ExponentialConeT()] * (block.size // 3)


def _cone_solution(program: ConeProgram, answer: Any) -> ConeSolution:
    status = CONE_STATUSES.get(str(answer.status), ConeStatus.FAILED)
    x, s, z = np.array(answer.x), np.array(answer.s), np.array(answer.z)
    if status in (ConeStatus.INFEASIBLE, ConeStatus.ALMOST_INFEASIBLE):
        z = z / max(-float(program.offset @ z), TINY)
    elif status in (ConeStatus.UNBOUNDED, ConeStatus.ALMOST_UNBOUNDED):
        x = x / max(-float(program.linear @ x), TINY)
        s = -(program.sparse @ x)
    elif not (all_finite(x) and all_finite(s) and all_finite(z)):
        status = ConeStatus.FAILED
    return ConeSolution(status, x, s, z, int(answer.iterations))


def _order(cone: Cone) -> int:
    """The order of the matrices of a semidefinite cone."""
    return int((np.sqrt(8 * cone.offset.size + 1) - 1) / 2)


class _Conic:
    """The program as A s + slack = b with the slack in a product of cones: zero, nonnegative, rest."""

    def __init__(self, program: QuadraticProgram) -> None:
        self.program = program
        self.q = program.linear
        self.P = _upper_triangle(program.quadratic)
        self.A: Any
        domain = program.domain
        self.finite_lower = (domain.lower > -INFINITE).nonzero()[0]
        self.finite_upper = (domain.upper < INFINITE).nonzero()[0]
        rows = (program.equality, program.inequality)
        if domain.cones or not all(isinstance(block, np.ndarray) for block in rows):
            self.A = self._stacked()
        else:
            self.A = above_bounds(np.concatenate(rows), self.finite_upper, self.finite_lower)
            if self.A.nnz > RULES.small:  # the effort is estimated
                self.A = scipy.sparse.csc_matrix(self.A[:3], shape=self.A.shape)
        self.b = np.concatenate(
            [
                program.equality_bound,
                program.inequality_bound,
                domain.upper[self.finite_upper],
                -domain.lower[self.finite_lower],
                *[cone.offset for cone in domain.cones],
            ]
        )
        equalities = program.equality_bound.size
        nonnegative = self.b.size - equalities - sum(cone.offset.size for cone in domain.cones)
        self.kinds: list[tuple[str, int]] = []
        if equalities:
            self.kinds.append(("zero", equalities))
        if nonnegative:
            self.kinds.append(("nonnegative", nonnegative))
        self.orders = [_order(cone) for cone in domain.cones if cone.kind == "psd"]
        check_semidefinite(self.orders)
        for cone in domain.cones:
            if cone.kind not in ("psd", "zero"):
                raise ValueError(f"unknown cone {cone.kind!r}; there are: psd, zero")
            self.kinds.append((cone.kind, _order(cone) if cone.kind == "psd" else cone.offset.size))

    @property
    def cones(self) -> list[Any]:
        """The cones as Clarabel takes them."""
        return [CONES[kind](size) for kind, size in self.kinds]

    def _stacked(self) -> Any:
        """All rows by columns: scipy's `vstack` takes ten times as long as a small program."""
        program, cones = self.program, self.program.domain.cones
        above, below = self.finite_upper, self.finite_lower
        parts = [
            _entries(program.equality),
            _entries(program.inequality),
            (np.arange(above.size), above, np.ones(above.size)),
            (np.arange(below.size), below, -np.ones(below.size)),
            *[_entries(cone.matrix, -1.0) for cone in cones],
        ]
        heights = [program.equality.shape[0], program.inequality.shape[0], above.size, below.size]
        starts = np.cumsum([0, *heights, *[cone.offset.size for cone in cones]])
        shifted = [part[0] + start for part, start in zip(parts, starts, strict=False)]
        rows, columns, values = (
            np.concatenate(each) for each in (shifted, *list(zip(*parts, strict=True))[1:])
        )
        order = np.lexsort((rows, columns))
        counts = np.bincount(columns, minlength=program.dimension)
        return scipy.sparse.csc_matrix(
            (values[order], rows[order], np.concatenate([[0], counts.cumsum()])),
            shape=(int(starts[-1]), program.dimension),
        )

    def pattern(self) -> tuple[Any, ...]:
        A, P = self.A, self.P
        return (tuple(self.kinds), A.shape, A.indptr, A.indices, P.indptr, P.indices)

    def solution(self, answer: Any, status: QPStatus) -> QPSolution:
        step, multipliers = np.array(answer.x), np.array(answer.z)
        equalities = self.program.equality_bound.size
        inequalities = self.program.inequality_bound.size
        first = equalities + inequalities
        second = first + self.finite_upper.size
        equality, inequality = multipliers[:equalities], multipliers[equalities:first]
        upper, lower = multipliers[first:second], multipliers[second:][: self.finite_lower.size]
        bounds = np.zeros(self.program.dimension)
        bounds[self.finite_upper] += upper
        bounds[self.finite_lower] -= lower
        # An interior-point method stops short of a bound that holds the step; put it there.
        domain = self.program.domain
        for held, multiplier, bound in (
            (self.finite_upper, upper, domain.upper),
            (self.finite_lower, lower, domain.lower),
        ):
            active = held[multiplier > RULES.snap + np.abs(step[held] - bound[held])]
            step[active] = bound[active]
        if not (np.isfinite(step).all() and np.isfinite(multipliers).all()):
            status = QPStatus.FAILED
        return QPSolution(status, step, np.maximum(inequality, 0.0), equality, bounds)


def _upper_triangle(quadratic: Any) -> Any:
    if is_sparse(quadratic):
        if not quadratic.nnz or _is_upper(quadratic):
            return quadratic
        return scipy.sparse.csc_matrix(scipy.sparse.triu(quadratic, format="csc"))
    if quadratic.ndim == 2:
        return upper_triangle(quadratic)
    return diagonal(quadratic)


def _is_upper(matrix: Any) -> bool:
    """Whether a matrix in compressed columns has nothing below its diagonal, as a diagonal one."""
    if type(matrix) is not scipy.sparse.csc_matrix or not matrix.has_sorted_indices:
        return False
    columns = np.arange(matrix.shape[1]).repeat(np.diff(matrix.indptr))
    return bool((matrix.indices <= columns).all())


def _entries(matrix: Any, factor: float = 1.0) -> tuple[Any, Any, FloatArray]:
    """Rows, columns and values of a matrix times a number.

    Zeros of a dense matrix are kept, so that its pattern is the same at every step.
    """
    if is_sparse(matrix):
        compressed = scipy.sparse.csr_array(matrix)
        rows = np.arange(compressed.shape[0]).repeat(np.diff(compressed.indptr))
        return rows, compressed.indices, factor * compressed.data
    height, width = matrix.shape
    rows, columns = np.arange(height).repeat(width), np.tile(np.arange(width), height)
    return rows, columns, factor * matrix.ravel()


def _same(one: tuple[Any, ...], other: tuple[Any, ...] | None) -> bool:
    return other is not None and all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(one, other, strict=True)
    )
