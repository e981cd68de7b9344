"""Active sets for small dense quadratic programs, with Clarabel behind them.

The bounds and rows that hold a step change little from one program of a run to the next. So a set of them
is guessed (the last one, or what the step 0 violates), the program with equalities in its place is solved
by one Cholesky factorisation, and multipliers and slacks of the wrong sign correct the set, all at once
(the primal-dual active set method: Hintermüller, Ito and Kunisch, SIAM J. Optim. 13, 2002). A set that
needs no correction gives the solution. The method does not always settle; then Clarabel answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import PRODUCT_ROUNDING
from hcmodel.solvers.qp.clarabel_ import ClarabelBackend
from hcmodel.solvers.qp.program import QPSolution, QPStatus, QuadraticProgram

FloatArray = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class ActiveSetRules:
    """When active sets are tried, and for how long."""

    # Unknowns, and rows, up to which a dense factorisation takes less than Clarabel's set-up.
    largest: int = 400  # tests/benchmarks/calls.py
    most_rows: int = 50  # tests/benchmarks/calls.py
    # Corrections of the set. Most settle in two to six, some in thirty, which is faster than Clarabel.
    corrections: int = 40  # posynomial with 100 unknowns (tests/problems: fatkhullin_cgp100)
    # What the rows of a settled set may miss, in the sizes of their terms. Clarabel is asked for more
    # only where the rows depend on each other.
    accuracy: float = 1e-10  # as BACKEND_ROUNDING


RULES = ActiveSetRules()


@dataclass(frozen=True)
class _Held:
    """Which unknowns are held at their lower or upper bound, and which inequalities are equations."""

    lower: Marks
    upper: Marks
    rows: Marks

    def key(self) -> bytes:
        return self.lower.tobytes() + self.upper.tobytes() + self.rows.tobytes()


@dataclass(frozen=True)
class _Trial:
    """The solution of the program with equations for what is held."""

    step: FloatArray
    row_multipliers: FloatArray  # of equalities, then of the inequalities that are held
    bound_multipliers: FloatArray


class ActiveSetBackend:
    """An instance belongs to one run: the set of the last program is the first guess for the next.

    A run has programs of several kinds, with and without a level: the last one with as many rows counts,
    where there is one.
    """

    def __init__(self) -> None:
        self._clarabel = ClarabelBackend()
        self._last: dict[int, _Held] = {}  # by the number of rows, the latest at the end
        self.trials = 0
        """Sets that were tried for the last program."""

    def solve(self, program: QuadraticProgram) -> QPSolution:
        check_time()
        found = self.settled(program) if _fits(program) else None
        return self._clarabel.solve(program) if found is None else found

    def settled(self, program: QuadraticProgram) -> QPSolution | None:
        """The solution of a dense program by active sets; None where these do not settle."""
        refused = _beyond_the_box(program)
        if refused is not None:
            return refused
        held, seen = self._guess(program), set[bytes]()
        present, sizes = held.key(), np.abs(program.inequality)
        last: tuple[_Held, _Trial] | None = None
        for number in range(RULES.corrections):
            check_time()
            self.trials = number + 1
            trial = _solved(program, held)
            if trial is None:
                return None if last is None else _refused(program, *last)
            corrected = _corrected(program, held, trial, sizes)
            key = corrected.key()
            if key == present:
                self._keep(held)
                return _solution(QPStatus.SOLVED, program, held, trial)
            if key in seen:
                return None
            seen.add(key)
            last = held, trial
            held, present = corrected, key
        return None

    def _keep(self, held: _Held) -> None:
        self._last.pop(held.rows.size, None)
        self._last[held.rows.size] = held

    def _guess(self, program: QuadraticProgram) -> _Held:
        none = np.zeros(program.dimension, dtype=bool)
        rows = program.inequality_bound < 0
        last = self._last.get(rows.size) or next(reversed(self._last.values()), None)
        if last is None or last.lower.size != none.size:
            return _Held(none, none, rows)
        # a bound that has moved away cannot hold
        lower = last.lower & np.isfinite(program.domain.lower)
        upper = last.upper & np.isfinite(program.domain.upper) & ~lower
        return _Held(lower, upper, last.rows if last.rows.size == rows.size else rows)


def _fits(program: QuadraticProgram) -> bool:
    arrays = (program.quadratic, program.inequality, program.equality)
    rows = program.inequality_bound.size + program.equality_bound.size
    return (
        all(isinstance(array, np.ndarray) for array in arrays)
        and not program.domain.cones
        and program.dimension <= RULES.largest
        and rows <= RULES.most_rows
    )


def _solved(program: QuadraticProgram, held: _Held) -> _Trial | None:
    """None where the matrix is not definite, the rows depend on each other, or numbers are not finite."""
    fixed = held.lower | held.upper
    free = (~fixed).nonzero()[0]
    rows, bound = program.inequality, program.inequality_bound
    if not held.rows.all():
        rows, bound = rows[held.rows], bound[held.rows]
    if program.equality_bound.size:
        rows = np.concatenate([program.equality, rows])
        bound = np.concatenate([program.equality_bound, bound])
    if bound.size > free.size:
        return None
    step = np.zeros(fixed.size)
    slopes, missing, own = program.linear, bound, rows
    if free.size < step.size:
        step = np.where(held.lower, program.domain.lower, step)
        step = np.where(held.upper, program.domain.upper, step)
        slopes = (program.times_quadratic(step) + program.linear)[free]
        missing, own = bound - rows @ step, rows[:, free]
    inverse = _factor(program.quadratic, free)
    if inverse is None:
        return None
    alone = -inverse(slopes)
    multipliers = bound
    if bound.size:
        across = inverse(own.T)
        weights = _weights(own @ across, own @ alone - missing)
        if weights is None:
            return None
        multipliers = weights
        alone = alone - across @ multipliers
        misses, sizes = np.abs(own @ alone - missing), np.abs(own) @ np.abs(alone) + np.abs(missing)
        if not (misses <= RULES.accuracy * sizes).all():
            return None
    step[free] = alone
    gradient = program.times_quadratic(step) + program.linear
    if bound.size:
        gradient += multipliers @ rows
    if not np.isfinite(gradient).all():
        return None
    gradient[free] = 0.0
    return _Trial(step, multipliers, -gradient)


def _factor(quadratic: FloatArray, free: NDArray[np.intp]) -> Any:
    """The function that solves with the part of the matrix of the free unknowns; None if indefinite."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    if quadratic.ndim == 1 or not free.size:
        own = quadratic[free] if quadratic.ndim == 1 else np.zeros(0)
        if not (own > 0).all():
            return None
        return lambda right: right / (own if right.ndim == 1 else own[:, None])
    part, own_copy = quadratic, free.size < quadratic.shape[0]
    if own_copy:
        part = quadratic.take(free, 0).take(free, 1)  # twice as fast as by both indices at once
    # symmetric, and column by column as LAPACK takes it
    factor, failed = dpotrf(part.T, lower=1, clean=0, overwrite_a=own_copy)
    return None if failed else lambda right: dpotrs(factor, right, lower=1)[0]


def _weights(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """The multipliers of the rows that are held; None where these depend on each other."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    scale = np.sqrt(np.diagonal(matrix))
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return None
    factor, failed = dpotrf(matrix / np.outer(scale, scale), lower=1, clean=0)
    return None if failed else np.asarray(dpotrs(factor, right / scale, lower=1)[0] / scale)


def _corrected(program: QuadraticProgram, held: _Held, trial: _Trial, entries: FloatArray) -> _Held:
    """What is violated is held next, what is held by a multiplier of the wrong sign is not.

    `entries` are the sizes of those of the inequalities.
    """
    step, pushes = trial.step, trial.bound_multipliers
    lengths = np.abs(step)
    near = PRODUCT_ROUNDING * (1.0 + lengths)
    small = PRODUCT_ROUNDING * max(1.0, float(np.abs(pushes).max(initial=0.0)))
    free = ~(held.lower | held.upper)
    lower = (held.lower & (pushes <= small)) | (free & (step < program.domain.lower - near))
    upper = (held.upper & (pushes >= -small)) | (free & (step > program.domain.upper + near))
    bound = program.inequality_bound
    if not bound.size:
        return _Held(lower, upper, held.rows)
    sizes = entries @ lengths + np.abs(bound)
    # held too where numbers are none, so that the next trial fails
    rows = ~(program.inequality @ step <= bound + RULES.accuracy * sizes)
    rows[held.rows] = trial.row_multipliers[program.equality_bound.size :] >= 0
    return _Held(lower, upper, rows)


def _beyond_the_box(program: QuadraticProgram) -> QPSolution | None:
    """The answer that there is no step, where an inequality alone has none in the box (Farkas)."""
    rows, bound, domain = program.inequality, program.inequality_bound, program.domain
    if not bound.size:
        return None
    ends = rows * np.where(rows > 0, domain.lower, np.where(rows < 0, domain.upper, 0.0))
    sizes = np.sum(np.abs(ends), axis=1) + np.abs(bound)
    beyond = np.sum(ends, axis=1) - bound > RULES.accuracy * sizes
    if not beyond.any():
        return None
    weights = np.zeros(bound.size)
    weights[np.argmax(beyond)] = 1.0
    none = np.zeros(program.equality_bound.size)
    step = np.zeros(program.dimension)
    return QPSolution(QPStatus.INFEASIBLE, step, weights, none, -(weights @ rows))


def _refused(program: QuadraticProgram, held: _Held, trial: _Trial) -> QPSolution | None:
    """The answer that there is no step, where the multipliers of a trial show it."""
    found = _solution(QPStatus.INFEASIBLE, program, held, trial)
    return found if _impossible(program, found) else None


def _impossible(program: QuadraticProgram, found: QPSolution) -> bool:
    """Whether multipliers of the rows show that no step satisfies them (Farkas).

    The rows, weighed by the multipliers and added, are above their bound everywhere on the box.
    """
    weights = np.concatenate([found.equality_multipliers, found.inequality_multipliers])
    rows = np.concatenate([program.equality, program.inequality])
    bounds = np.concatenate([program.equality_bound, program.inequality_bound])
    if not (found.inequality_multipliers >= 0).all():
        return False
    slope = weights @ rows
    used = slope.nonzero()[0]
    ends = np.where(slope > 0, program.domain.lower, program.domain.upper)[used] * slope[used]
    sizes = float(np.sum(np.abs(ends)) + np.abs(weights) @ np.abs(bounds))
    return float(np.sum(ends)) - float(weights @ bounds) > RULES.accuracy * sizes


def _solution(
    status: QPStatus, program: QuadraticProgram, held: _Held, trial: _Trial
) -> QPSolution:
    count = program.equality_bound.size
    inequalities = np.zeros(program.inequality_bound.size)
    inequalities[held.rows] = trial.row_multipliers[count:]
    return QPSolution(
        status, trial.step, inequalities, trial.row_multipliers[:count], trial.bound_multipliers
    )
