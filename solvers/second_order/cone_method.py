"""The whole problem as one cone program, solved by a backend (`cone`).

A model that is proven convex in coordinates u is a cone program in u (`hcmodel.reductions.cone`), so that
no step has to be taken through its functions. Where the backend finds no point, the least relaxation of
the rows says which of them contradict each other: a cone program too, which always has a solution.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.marks import every, largest, some
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.loop import Task, WholeProgram
from hcmodel.solvers.numerics import BACKEND_ROUNDING, LARGEST_LOG
from hcmodel.solvers.qp import (
    CONE_BACKENDS,
    DEFAULT_BACKEND,
    ConeOptions,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    make_cone_backend,
)
from hcmodel.solvers.qp.balance import (
    in_like_units,
    in_units,
    is_rough,
    is_unbalanced,
    row_error,
)
from hcmodel.solvers.qp.cone_program import ConeKind, is_accurate, within, without_rows
from hcmodel.solvers.qp.deeper import deeper
from hcmodel.solvers.qp.deferral import completed, deferred_rows
from hcmodel.solvers.qp.dense_quadratic import solve_dense
from hcmodel.solvers.qp.equations import on_equations
from hcmodel.solvers.qp.idle_logarithms import without_idle_logarithms
from hcmodel.solvers.qp.matrix_slacks import without_slacks
from hcmodel.solvers.qp.nonsingular import nonsingular
from hcmodel.solvers.qp.rays import recedes, recession, sharpened
from hcmodel.solvers.qp.regulator import solve_regulator
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.direct import EXACT, Answer, larger_unit

FloatArray = NDArray[np.float64]

ENDS = {
    ConeStatus.SOLVED: Termination.CONVERGED,
    ConeStatus.ALMOST_SOLVED: Termination.STALLED,
    ConeStatus.TIME_LIMIT: Termination.TIME_LIMIT,
    ConeStatus.ITERATION_LIMIT: Termination.STALLED,
    ConeStatus.UNBOUNDED: Termination.STALLED,  # the direction has to be followed first
    ConeStatus.ALMOST_UNBOUNDED: Termination.STALLED,
}
ENDLESS = (ConeStatus.UNBOUNDED, ConeStatus.ALMOST_UNBOUNDED)
# How near to a bound, relatively, an entry is that the bound may hold: the root of the accuracy.
NEAR = BACKEND_ROUNDING**0.5
# The share of the tolerance by which the objective may be worse where the minimum has no way back.
SPENT = 0.5
# A relaxation is known to this share of the least one that counts.
DIGITS = 0.1
# A solution with such unknowns has no digit of its rows.
FARTHEST = 1.0 / np.finfo(float).eps
# By how much points are put inside of cones where functions are not defined at the solution.
DEEPER = (1e-9, 1e-7)  # beyond the accuracy of backends, and below the default tolerance
# Where a backend ends like this, the rows may contradict each other.
DOUBTFUL = (
    ConeStatus.INFEASIBLE,
    ConeStatus.ALMOST_INFEASIBLE,
    ConeStatus.ITERATION_LIMIT,
    ConeStatus.FAILED,
)


@dataclass(frozen=True)
class ConeMethodOptions:
    backend: str = DEFAULT_BACKEND
    tolerance: float = BACKEND_ROUNDING
    """Residuals and gap at which the solver stops, relative."""
    max_iterations: int = 200  # Clarabel's default; well-posed programs take 10 to 50
    """Iterations of the solver, at most."""
    relaxed: float = 1e-8  # the accuracy at which Clarabel still calls a program solved
    """Rows that have to be relaxed by less than this, relatively, do not contradict each other."""
    slacks: bool = False
    """Whether the difference of the sides of a matrix inequality is a matrix of unknowns: that takes
    longer, and the rows hold more exactly."""

    def __post_init__(self) -> None:
        if self.backend not in CONE_BACKENDS:
            known = ", ".join(sorted(CONE_BACKENDS))
            raise ValueError(f"unknown cone backend {self.backend!r}; there are: {known}")
        if not (0 < self.tolerance < 1 and 0 < self.relaxed < 1):
            raise ValueError("tolerance and relaxed are numbers between 0 and 1")
        if self.max_iterations < 1:
            raise ValueError("max_iterations is a positive number")


class ConeMethod:
    """`cone`."""

    def __init__(self, options: ConeMethodOptions | None = None) -> None:
        self.options = options or ConeMethodOptions()

    def solve(self, task: Task, start: Callable[[], FloatArray]) -> Answer:
        whole = task.whole
        assert whole is not None
        solution = self._first_solved(task, whole.program)
        near = largest(np.abs(solution.primal)) < FARTHEST or whole.relaxed is None
        if solution.usable and near:
            solution = self._among_numbers(task, whole.program, solution)
            solution = _settled(task, whole.program, self._regular(task, whole, solution))
            return self._answer(task, whole, solution)
        if solution.usable or solution.status in DOUBTFUL:
            return self._relaxed(task, whole, solution.iterations)
        if solution.status in ENDLESS:
            return self._endless(task, whole, solution)
        return Answer(ENDS[solution.status], iterations=solution.iterations)

    def _first_solved(self, task: Task, program: ConeProgram) -> ConeSolution:
        """The solution, in a way that its structure allows, or else by the backend."""
        if self.options.backend == DEFAULT_BACKEND:
            dense = solve_dense(program, self.options.tolerance)
            if dense is not None:
                return dense
            # where units differ much, a backend knows fewer digits of the point than of the value
            far = is_unbalanced(program)
            regulator = solve_regulator(program, self.options.relaxed, small=far)
            if regulator is not None:
                return regulator
        solution = self._by_backend(task, program)
        if solution.status is ConeStatus.SOLVED or self.options.backend != DEFAULT_BACKEND:
            return solution
        return solve_regulator(program, self.options.relaxed, small=True) or solution

    def _by_backend(self, task: Task, program: ConeProgram) -> ConeSolution:
        """The solution, found without bounds that seldom hold it where there are such."""
        deferred = deferred_rows(program)
        spent = 0
        if deferred is not None:
            part = self._solved(task, without_rows(program, deferred))
            found = completed(program, deferred, part) if part.usable else None
            if found is not None and is_accurate(program, found, self.options.relaxed):
                return replace(found, status=ConeStatus.SOLVED)
            spent = part.iterations
        solution = self._solved(task, program)
        return replace(solution, iterations=solution.iterations + spent)

    def _solved(self, task: Task, program: ConeProgram) -> ConeSolution:
        """The solution, found without slacks of matrix inequalities and logarithms that no row needs."""
        named = None if self.options.slacks else without_slacks(program)
        if named is not None:
            return named.solution(self._in_larger_units(task, named.program))
        smaller = without_idle_logarithms(program, task.domain.dimension)
        if smaller is None:
            return self._in_larger_units(task, program)
        return smaller.solution(self._in_larger_units(task, smaller.program))

    def _in_larger_units(self, task: Task, program: ConeProgram) -> ConeSolution:
        """The solution, in larger units where numbers are small: backends stop at absolute errors."""
        sizes = [largest(np.abs(part)) for part in (program.linear, program.quadratic.data)]
        objective, offset = larger_unit(max(sizes)), larger_unit(largest(np.abs(program.offset)))
        fine = isinstance(task.oracle.stack, LogStack) and every(task.oracle.stack.logs)
        found = self._in_units(program, objective, offset, fine)
        plain = task.oracle.outer.objective_form == "plain"
        value = objective * offset * abs(_value(program, found)) if found.usable and plain else 0.0
        if not self.options.tolerance < value < self.options.tolerance / (EXACT * task.tolerance):
            return found
        # a slack may stand for the objective, so that no coefficient says how small it is
        again = self._in_units(program, objective * larger_unit(value), offset, fine)
        better = again if again.status is ConeStatus.SOLVED else found
        return replace(better, iterations=found.iterations + again.iterations)

    def _in_units(
        self, program: ConeProgram, objective: float, offset: float, fine: bool
    ) -> ConeSolution:
        """`fine` in logarithms, which have no edge of a domain that a point could be beyond."""
        options = ConeOptions(self.options.tolerance, self.options.max_iterations, fine=fine)
        backend = make_cone_backend(self.options.backend)
        if objective == offset == 1.0:
            found = backend.solve(program, options)
        else:
            units = in_units(program, objective, offset)
            found = units.solution(backend.solve(units.program, options))
        like = in_like_units(program) if is_rough(program, found) else None
        if like is None:
            return found
        again = like.solution(backend.solve(like.program, options))
        if found.usable:
            better = again.usable and row_error(program, again) < row_error(program, found)
        else:  # a certificate gives way to a solution only, and not to one of reduced accuracy
            better = again.status is ConeStatus.SOLVED
        return replace(again if better else found, iterations=found.iterations + again.iterations)

    def _among_numbers(
        self, task: Task, program: ConeProgram, solution: ConeSolution
    ) -> ConeSolution:
        """The solution, or one next to it whose exponentials are numbers: minima need not be bounded."""
        stack = task.oracle.stack
        if not isinstance(stack, LogStack):
            return solution
        logs = stack.logs.nonzero()[0]
        if largest(np.abs(solution.primal[logs])) <= LARGEST_LOG:
            return solution
        found = self._solved(task, within(program, logs, LARGEST_LOG))
        if not found.usable:
            return solution
        count = program.offset.size
        return replace(
            found,
            slack=found.slack[:count],
            dual=found.dual[:count],
            iterations=solution.iterations + found.iterations,
        )

    def _regular(self, task: Task, whole: WholeProgram, solution: ConeSolution) -> ConeSolution:
        """A solution within the tolerance that can be taken back, where the minimum itself cannot."""
        value = float(whole.program.linear @ solution.primal) + (whole.program.constant or 0.0)
        allowed = SPENT * task.tolerance * abs(value)
        solved = functools.partial(self._solved, task)
        found = nonsingular(whole.program, solution, whole.divisors, allowed, solved)
        return found or solution

    def _answer(self, task: Task, whole: WholeProgram, solution: ConeSolution) -> Answer:
        return Answer(
            ENDS[solution.status],
            point=_snapped(solution, whole, task.domain.dimension),
            multipliers=whole.multipliers(solution.dual),
            solution=solution,
            inside=lambda: self._inside(task, whole.program),
            costly_polish=any(cone.kind is ConeKind.PSD_TRIANGLE for cone in whole.program.cones),
            residual=_exact_residual(whole.program, solution),
            iterations=solution.iterations,
        )

    def _inside(self, task: Task, program: ConeProgram) -> Iterator[FloatArray]:
        """Solutions of programs whose points are farther inside of their cones."""
        for amount in DEEPER:
            found = self._solved(task, deeper(program, amount))
            if found.usable:
                yield found.primal[: task.domain.dimension]

    def _endless(self, task: Task, whole: WholeProgram, solution: ConeSolution) -> Answer:
        """The direction, and a point of the rows from which it can be followed."""
        program, size = whole.program, task.domain.dimension
        rows = replace(
            program, quadratic=0.0 * program.quadratic, linear=np.zeros_like(program.linear)
        )
        inside = self._solved(task, rows)
        return Answer(
            ENDS[solution.status],
            point=inside.primal[:size] if inside.usable else None,
            iterations=solution.iterations + inside.iterations,
            **self._along(task, whole, solution),
        )

    def _along(self, task: Task, whole: WholeProgram, solution: ConeSolution) -> dict[str, Any]:
        """What a ray of the program is among the coordinates, where it falls along it."""
        program = whole.program
        ray = sharpened(program, solution.primal)
        if not program.linear @ ray < -self.options.relaxed * float(largest(np.abs(ray))):
            return {}
        return {"direction": ray[: task.domain.dimension], "recedes": recedes(program, ray)}

    def _relaxed(self, task: Task, whole: WholeProgram, iterations: int) -> Answer:
        """The point of the least relaxation, and the weights of the rows that it relaxes."""
        relaxation = None if whole.relaxed is None else whole.relaxed()
        if relaxation is None:
            return Answer(Termination.BACKEND_FAILED, iterations=iterations)
        options = replace(self.options, tolerance=DIGITS * self.options.relaxed)
        solution = ConeMethod(options)._solved(task, relaxation.program)
        iterations += solution.iterations
        if not solution.usable:
            return Answer(
                ENDS.get(solution.status, Termination.BACKEND_FAILED), iterations=iterations
            )
        point = solution.primal[: task.domain.dimension]
        weights = relaxation.weights(solution.dual)
        amount = solution.primal[relaxation.amount]
        if amount <= self.options.relaxed or not np.any(weights):
            ray = self._solved(task, recession(whole.program))
            return Answer(
                Termination.STALLED,
                point,
                iterations=iterations + ray.iterations,
                **(self._along(task, whole, ray) if ray.usable else {}),
            )
        return Answer(Termination.INFEASIBLE, point, conflict=weights, iterations=iterations)


def _value(program: ConeProgram, solution: ConeSolution) -> float:
    point = solution.primal
    value = float(program.linear @ point) + (program.constant or 0.0)
    return (
        value + 0.5 * float(point @ (program.quadratic @ point)) if program.quadratic.nnz else value
    )


def _settled(task: Task, program: ConeProgram, solution: ConeSolution) -> ConeSolution:
    """The solution with equations that hold up to rounding, where they hold nearly."""
    if solution.beside or not program.is_semidefinite:
        return solution
    if row_error(program, solution) <= EXACT * task.tolerance:
        return solution
    point = on_equations(program, solution.primal)
    return replace(solution, primal=point, slack=program.offset - program.sparse @ point)


def _exact_residual(program: ConeProgram, solution: ConeSolution) -> float | None:
    """|P x + Aᵀz + q|; None where rounding in it may be large in the multipliers of the model.

    Those that pass through exponential cones are rough: of logdet by up to 1e-4.
    """
    if solution.beside or not program.is_semidefinite:
        return None
    slope = program.pull(solution.dual) + program.linear
    if program.quadratic.nnz:
        slope += program.quadratic @ solution.primal
    return float(np.abs(slope).max(initial=0.0))


def _snapped(solution: ConeSolution, whole: WholeProgram, dimension: int) -> FloatArray:
    """The point with entries at the bounds that hold them: an interior-point method stops short of them.

    A bound is taken to hold an entry if its multiplier exceeds the distance to it, and is more than what
    rounding leaves of the slopes that it balances: in small units these are large, and an entry of 1e-8
    is not next to 0. A wrong guess is undone by the Newton step that follows, or leaves a point that is
    judged like any other.
    """
    point = solution.primal[:dimension].copy()
    if solution.beside:  # where equations hold up to rounding
        return point
    rows, entries, values = whole.bounds
    held = solution.dual[rows] > np.maximum(solution.slack[rows], 0.0)
    held &= np.abs(point[entries] - values) <= NEAR * np.maximum(1.0, np.abs(values))
    if some(held):
        program = whole.program
        slopes = np.abs(program.linear) + program.pulled_sizes(solution.dual)
        held &= solution.dual[rows] > NEAR * slopes[entries]
    for divisor in whole.divisors:  # which has no way back at 0
        held &= rows != divisor.start
    point[entries[held]] = values[held]
    return point
