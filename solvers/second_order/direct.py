"""Methods that solve a whole convex program at once, and the run of one.

Such a method asks no oracle: it is handed the program (`Task.whole`) and answers with a point and
multipliers. The functions of the task are evaluated once, at that point, so that nothing rests on the
answer of a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.limits import beyond, check_time
from hcmodel.solvers.loop import (
    ENDINGS,
    Callback,
    Incumbent,
    State,
    Task,
    called,
    ending,
    find_start,
    offer_start,
    record_of,
    result_of,
)
from hcmodel.solvers.oracle import CallsExhausted, Evaluation
from hcmodel.solvers.qp.cone_program import ConeSolution
from hcmodel.solvers.result import Record, Result, Termination
from hcmodel.solvers.second_order.polishing import polishing_step

FloatArray = NDArray[np.float64]

# An objective or a right-hand side all of whose numbers are below this is scaled: errors of 1e-10 would
# be more than 1e-9 of it, and points stop short of the bounds that hold them (60 linear programs of size
# 1e-6, tests/hcmodel/solving/test_small_units.py).
SMALL = 0.1


@dataclass(frozen=True)
class Answer:
    """What a direct method has found; `conflict` weighs the rows where no point satisfies them all.

    Without a point the program had no answer, and `termination` says why.
    """

    termination: Termination
    point: FloatArray | None = None
    multipliers: FloatArray | None = None
    conflict: FloatArray | None = None
    iterations: int = 0
    direction: FloatArray | None = None
    """A direction in which the program has no minimum."""
    recedes: bool = False
    """Whether all of its rows can be followed in this direction without end."""
    solution: ConeSolution | None = None
    """The solution of a cone program, from which a certificate can be made."""
    residual: float | None = None
    """The KKT residual of the program, where its multipliers are as exact as those of the model."""
    inside: Callable[[], Iterator[FloatArray]] | None = None
    """Points farther inside of the domains of functions, for a point that is outside by rounding."""
    costly_polish: bool = False
    """Whether a polishing step takes as long as the solution did: it is left out where the solution is
    certified as it is."""


# The multiple of the tolerance above which multipliers of a certified point are rough: those of logdet.
ROUGH = 1e2
# The share of the tolerance under which a point is exact enough: two more digits than are asked for.
EXACT = 1e-2
# How far a point of the boundary moves to the middle of the domain where a function is not defined at it:
# by as little as helps, and by less than the tolerance (matrix fractions of a singular matrix).
RETREATS = (1e-12, 1e-10, 1e-8)
# The name of the only phase in the trace.
PHASE = "convex program"


class Direct(Protocol):
    def solve(self, task: Task, start: Callable[[], FloatArray]) -> Answer:
        """Solve `task.whole` within the time that the budget of the oracle leaves.

        `start` makes the start, for methods whose functions are not defined everywhere.
        """


def larger_unit(size: float) -> float:
    """A power of two that makes numbers of this size, if they are small, ones of size 1.

    Methods stop at errors that are absolute.
    """
    return 1.0 if size == 0.0 or size >= SMALL else float(2.0 ** -np.floor(np.log2(size)))


def run_direct(
    method: Direct,
    task: Task,
    start: Callable[[], FloatArray],
    callback: Callback | None = None,
) -> Result:
    """Run a method once and look at its point; without one the start, made then, is what is left."""
    best = Incumbent(task.tolerance)
    trace: list[Record] = []
    state: State | None = None
    answer = Answer(Termination.STALLED)
    cause: BaseException | None = None
    try:
        check_time()
        answer = method.solve(task, start)
        state, termination = _state(task, answer)
        if state is None:
            state = _start(task, start())
        if state is None:
            termination = Termination.OUTSIDE_DOMAIN
        else:
            best.offer(state.current, state.multipliers)
            trace.append(record_of(0, state, task))
            if called(callback, trace[-1]):
                termination = Termination.CALLBACK
    except ENDINGS as error:
        termination, cause = ending(error)
    if best.evaluation is None:
        with beyond():
            first = start()
        offer_start(best, task, first)
    result = result_of(termination, best, state, answer.iterations, task, trace)
    direction = {"direction": answer.direction, "recedes": answer.recedes}
    return replace(result, **direction, cone=answer.solution, cause=cause)


def _state(task: Task, answer: Answer) -> tuple[State | None, Termination]:
    """The answer's point, evaluated; None where there is none or the functions are not defined at it.

    Whether the method has converged is decided here: by the certificate, or else by the KKT residual.
    """
    if answer.point is None or not all_finite(answer.point):
        return None, answer.termination
    point = task.domain.project(task.settled(answer.point))
    wanted = answer.residual is None and answer.conflict is None
    current = _evaluated(task, point, derivatives=wanted)
    if current is None and answer.inside is not None:
        nearby = (_evaluated(task, task.domain.project(each), wanted) for each in answer.inside())
        current = next((each for each in nearby if each is not None), None)
    if current is None:
        lost = answer.termination is Termination.CONVERGED
        return None, Termination.BACKEND_FAILED if lost else answer.termination
    multipliers = answer.multipliers
    if multipliers is None:
        multipliers = np.zeros(current.rows.size)
    if wanted and not current.differentiable:
        return _without_slopes(task, current, multipliers, answer)
    if answer.conflict is not None or answer.direction is not None:
        # no minimum is near that a step could lead to
        return State(current, multipliers, PHASE, conflict=answer.conflict), answer.termination
    certified: bool | None = None
    # at a kink the residual, which a step is judged by, says nothing
    smooth = task.oracle.smooth
    if (answer.costly_polish or not smooth) and (
        current.relative_violation <= EXACT * task.tolerance
    ):
        certified = _certified(task, current, multipliers, answer)
    if certified and answer.residual is not None and answer.residual <= ROUGH * task.tolerance:
        error = answer.residual  # derivatives of the functions would say the same
    else:
        error = _error(task, current, multipliers) if certified else np.inf
    if not certified or (smooth and error > ROUGH * task.tolerance):
        current, multipliers, error = _polished(task, current, multipliers)
        certified = _certified(task, current, multipliers, answer)
    state = State(current, multipliers, PHASE, residual=error)
    if answer.termination is Termination.CONVERGED:
        feasible = current.relative_violation <= task.tolerance  # else a gap below 0 says nothing
        done = (certified and feasible) or state.residual <= task.tolerance
        return state, Termination.CONVERGED if done else Termination.STALLED
    return state, answer.termination


def _without_slopes(
    task: Task, current: Evaluation, multipliers: FloatArray, answer: Answer
) -> tuple[State | None, Termination]:
    """A point at the edge of a domain, as of √x with x <= 0: only the dual can show what it is."""
    feasible = current.relative_violation <= task.tolerance
    if answer.termination is Termination.CONVERGED and not (
        feasible and _certified(task, current, multipliers, answer)
    ):
        return None, Termination.BACKEND_FAILED
    return State(current, multipliers, PHASE, residual=np.inf), answer.termination


def _evaluated(task: Task, point: FloatArray, derivatives: bool) -> Evaluation | None:
    """The point, or one next to it where the functions are defined: a singular matrix has no inverse.

    Where derivatives are asked for and no such point has them, the first one without.
    """
    defined: Evaluation | None = None
    for share in (0.0, *RETREATS):
        there = point if not share else point + share * (task.domain.middle() - point)
        current = task.oracle.at(there)
        if current.finite and (not derivatives or current.differentiable):
            return current
        if current.finite and defined is None:
            defined = current
    return defined


def _certified(
    task: Task, current: Evaluation, multipliers: FloatArray, answer: Answer
) -> bool | None:
    if task.certified is None:
        return None
    return task.certified(current, multipliers, answer.solution)


def _start(task: Task, start: FloatArray) -> State | None:
    """The start; where the method has used up the time, `offer_start` leaves it."""
    first = find_start(task, start)
    return None if first is None else State(first, np.zeros(first.rows.size), phase="start")


def _polished(
    task: Task, current: Evaluation, multipliers: FloatArray
) -> tuple[Evaluation, FloatArray, float]:
    """The point after a Newton step, where one is affordable and better; and its error.

    An interior-point method that knows the value to 1e-10 knows the point to about 1e-5.
    """
    error = _error(task, current, multipliers)
    if task.geometry is None or not task.affords_hessian or error <= EXACT * task.tolerance:
        return current, multipliers, error
    step = polishing_step(task.oracle, task.geometry, task.settled, current, multipliers)
    if step is None:
        return current, multipliers, error
    try:
        there, found = task.oracle.at(step[0]), step[1]
    except CallsExhausted:
        return current, multipliers, error
    if not (there.finite and there.differentiable):
        return current, multipliers, error
    count = there.inequalities
    found[:count] = np.maximum(found[:count], 0.0)
    if there.relative_violation > max(current.relative_violation, task.tolerance):
        return current, multipliers, error
    new_error = _error(task, there, found)
    return (there, found, new_error) if new_error < error else (current, multipliers, error)


def _error(task: Task, evaluation: Evaluation, multipliers: FloatArray) -> float:
    residual = kkt.residual(evaluation, task.domain, multipliers)
    return max(residual, evaluation.relative_violation)
