"""The one loop that runs every method: limits, trace, callback, interruption, the best point so far.

A method is three functions on a small frozen state: `init`, `step`, `terminate`. It never looks at a
clock; the oracle and the backends stop it by raising `BudgetExhausted`, and the loop keeps the best
point found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.limits import TimeExhausted, beyond, check_time
from hcmodel.solvers.numerics import MERIT_ROUNDING
from hcmodel.solvers.oracle import (
    CallsExhausted,
    Evaluation,
    Oracle,
    OracleFailed,
)
from hcmodel.solvers.qp.cone_program import ConeProgram, ConeSolution
from hcmodel.solvers.result import Record, Result, Termination, WeightedPoint
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]
Callback = Callable[[Record], "bool | None"]


class CallbackFailed(Exception):  # noqa: N818  (a signal to the loop, as those of the oracle are)
    """The callback raised an exception, which is the cause of this one."""


# The exceptions that end a run, and why it ended.
REASONS: dict[type[BaseException], Termination] = {
    CallsExhausted: Termination.CALL_LIMIT,
    TimeExhausted: Termination.TIME_LIMIT,
    KeyboardInterrupt: Termination.INTERRUPTED,
    MemoryError: Termination.OUT_OF_MEMORY,
    OracleFailed: Termination.FAILED,
    CallbackFailed: Termination.FAILED,
    np.linalg.LinAlgError: Termination.STALLED,  # numbers that a factorisation cannot work with
    ArithmeticError: Termination.STALLED,
}
ENDINGS = tuple(REASONS)
# The endings after which the last point is what the method has found.
ENDED_WELL = (
    Termination.CONVERGED,
    Termination.LEVEL_REACHED,
    Termination.GAP_CLOSED,
    Termination.HULL_STATIONARY,
    Termination.PROMISE_DONE,
    Termination.INFEASIBLE_STATIONARY,
    Termination.INFEASIBLE,
)
# The endings of a run in the middle of an iteration, whose points no state has told of.
CUT_SHORT = (
    Termination.CALL_LIMIT,
    Termination.TIME_LIMIT,
    Termination.INTERRUPTED,
    Termination.OUT_OF_MEMORY,
    Termination.FAILED,
)


@dataclass(frozen=True)
class LoopRules:
    """Limits of the loop that hold for every method."""

    # Iterations of a run.
    max_iterations: int = 100_000  # a safeguard: every method ends by a rule of its own
    # Random points tried for a start at which every function is defined, when the one given is not.
    start_attempts: int = (
        50  # if a share p of X is the domain, they fail with probability (1 − p)⁵⁰
    )
    # The most that a unit of violation within the tolerance is charged when points are compared.
    highest_price: float = 1e6  # multipliers of dependent rows are arbitrarily large
    # Points without rows that are remembered: the rows are evaluated if the run is cut short.
    points_alone: int = 10  # as few calls of rows as a user minds who has stopped the run
    # Iterations in a row without a new point that end a run: only parameters of the method change.
    idle_iterations: int = 20  # above every method's own number of failures in a row
    # Accepted steps shorter than this, in natural units, after which the gradient differs by this share …
    short: float = 1e-3  # tests/benchmarks/black_boxes.py
    jump: float = 0.3  # tests/benchmarks/black_boxes.py
    # … and how many of them show that there are kinks.
    jumps: int = 4  # tests/benchmarks/black_boxes.py
    # What a minimum may be off, in tolerances: as much of its value, and this.
    absolute: float = 1e-3  # the gap up to which a point counts as optimal
    # Into about how many records the trace of a method with prescribed iterations is cut.
    records: int = 1000  # what a plot can show


RULES = LoopRules()


@dataclass(frozen=True)
class WholeProgram:
    """A convex program that says the same as the functions of a task, in the task's coordinates.

    Its unknowns begin with the vector of the task, and `rows[i]` is the row of the program that stands
    for row i of the task, whose multiplier is `signs[i]` times the program's. `bounds` are the rows of
    the program that bound an entry of the vector, these entries, and the bounds. `relaxed` makes
    the program of the least relaxation. Where the program has rows in another form than the task,
    `factors` at its point are what multipliers are multiplied with. `divisors` are the rows of matrices
    and of positive numbers that the way back to the model divides by.
    """

    program: Any
    rows: NDArray[np.intp]
    signs: FloatArray
    bounds: tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]
    relaxed: Callable[[], RelaxedProgram | None] | None = None
    factors: Callable[[FloatArray], FloatArray] | None = None
    divisors: tuple[slice, ...] = ()

    @property
    def is_semidefinite(self) -> bool:
        return isinstance(self.program, ConeProgram) and self.program.is_semidefinite

    def multipliers(self, dual: FloatArray, point: FloatArray | None = None) -> FloatArray:
        """Multipliers of the task's rows, from the program's dual, at the point that `factors` needs."""
        found = np.asarray(self.signs * dual[self.rows])
        if self.factors is None:
            return found
        assert point is not None
        return found * self.factors(point)


@dataclass(frozen=True)
class RelaxedProgram:
    """The least t by which all rows have to be relaxed so that a point satisfies them; t is `amount`.

    An equality is two rows here, `rows[i]` and `others[i]`; `others[i]` is −1 for an inequality.
    """

    program: Any
    amount: int
    rows: NDArray[np.intp]
    others: NDArray[np.intp]

    def weights(self, dual: FloatArray) -> FloatArray:
        """How much each row of the task takes part in a contradiction."""
        return np.asarray(dual[self.rows] - np.where(self.others >= 0, dual[self.others], 0.0))


class Certified(Protocol):
    def __call__(
        self,
        evaluation: Evaluation,
        multipliers: FloatArray,
        solution: ConeSolution | None = None,
    ) -> bool | None:
        """Whether the point is shown to be good enough; None where nothing can be shown.

        `solution` is that of the cone program of the task, where there is one.
        """


@dataclass(frozen=True)
class Task:
    """What a method works on. `tolerance` is relative feasibility and the KKT residual aimed at.

    `geometry` holds the hidden coordinates, if there are any; `certified` says whether a point is
    shown to be good enough. `settle` moves entries of a point that the others determine. `whole` is
    for methods that solve a convex program at once, and `affords_hessian` says whether second
    derivatives are worth their price to them. `images` gives, for methods that work in u, the
    coordinates and a set that contains their values. `ends_at_kinks` ends a run of a smooth method
    whose gradients jump. `keeps_points` puts the point of each record into the trace.
    """

    oracle: Oracle
    domain: Domain
    tolerance: float
    optimal_value: float | None = None
    geometry: Coordinates | None = None
    certified: Certified | None = None
    settle: Callable[[FloatArray], FloatArray] | None = None
    whole: WholeProgram | None = None
    affords_hessian: bool = False
    images: Callable[[Evaluation], Any] | None = None
    ends_at_kinks: bool = False
    keeps_points: bool = False

    def settled(self, x: FloatArray) -> FloatArray:
        """The point with entries that others determine, such as bounds of kinks, at their values."""
        return x if self.settle is None else self.settle(x)


@dataclass(frozen=True)
class State:
    """What every method's state tells the loop; methods extend it with their own fields."""

    current: Evaluation
    multipliers: FloatArray
    phase: str = ""
    step: float = np.nan
    level: float = np.nan
    shift: float = np.nan
    residual: float = np.inf
    stop: Termination | None = None
    cause: BaseException | None = None
    conflict: FloatArray | None = None
    bound: float = -np.inf
    weighted: tuple[WeightedPoint, ...] = ()
    surrounded: bool = False
    passed: bool = False

    def weighted_points(self) -> tuple[WeightedPoint, ...]:
        """The points that the bound rests on, which a method may gather only when they are asked for."""
        return self.weighted


S = TypeVar("S", bound=State)


class Method(Protocol[S]):
    def init(self, task: Task, start: Evaluation) -> S: ...
    def step(self, task: Task, state: S) -> S: ...
    def terminate(self, task: Task, state: S) -> Termination | None: ...


class Recorder(Generic[S]):
    """A method that keeps the point of every state of the method that it wraps, to draw its path."""

    def __init__(self, method: Method[S]) -> None:
        self.method = method
        self.points: list[FloatArray] = []

    def init(self, task: Task, start: Evaluation) -> S:
        return self._kept(self.method.init(task, start))

    def step(self, task: Task, state: S) -> S:
        return self._kept(self.method.step(task, state))

    def terminate(self, task: Task, state: S) -> Termination | None:
        return self.method.terminate(task, state)

    def _kept(self, state: S) -> S:
        self.points.append(state.current.point)
        return state


class Incumbent:
    """The best point so far: the lowest F1 + |λ|·violation among feasible ones, else the least violation.

    The multipliers are the method's latest; without them a point would look better the more of the
    tolerance it uses up.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.evaluation: Evaluation | None = None
        self.multipliers: FloatArray = np.zeros(0)

    def _key(self, evaluation: Evaluation, multipliers: FloatArray) -> tuple[bool, float]:
        violation = evaluation.relative_violation
        if violation > self.tolerance:
            return (True, violation)
        if not evaluation.has_objective:
            return (False, np.inf)
        prices = np.minimum(np.abs(multipliers), RULES.highest_price)
        return (False, evaluation.objective + float(prices @ evaluation.violations))

    def is_above(self, evaluation: Evaluation, multipliers: FloatArray) -> bool:
        """Whether another point is as good as the best one, up to what a minimum may be off."""
        if self.evaluation is None or not (evaluation.finite and evaluation.has_rows):
            return True
        broken, own = self._key(self.evaluation, multipliers)
        others, its = self._key(evaluation, multipliers)
        if broken or others:
            return broken
        if self.evaluation.relative_violation > evaluation.relative_violation:
            return True  # lower by what the rows may be off, at prices that are unknown
        return its <= own + self.tolerance * (abs(own) + RULES.absolute)

    def is_as_good_as(self, evaluation: Evaluation, multipliers: FloatArray) -> bool:
        """Whether another point is not better than the best one, up to rounding."""
        if self.evaluation is None:
            return False
        broken, own = self._key(self.evaluation, multipliers)
        others, its = self._key(evaluation, multipliers)
        if broken or others:
            return (broken, own) <= (others, its)
        return own <= its + MERIT_ROUNDING * abs(its)

    def offer(self, evaluation: Evaluation, multipliers: FloatArray) -> None:
        if not evaluation.finite or not evaluation.has_rows:
            return
        best = self.evaluation
        if best is None or self._key(evaluation, multipliers) <= self._key(best, multipliers):
            self.evaluation, self.multipliers = evaluation, multipliers


class Seen:
    """The best of all points that were evaluated, which states need not tell of.

    `alone` has the points whose rows are not known, as some methods begin with the objective: those at
    which it was the lowest so far. `strict` is the best of the points that break no row at all.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.whole: Evaluation | None = None
        self.strict: Evaluation | None = None
        self.alone: list[Evaluation] = []

    def look(self, evaluation: Evaluation) -> None:
        if not evaluation.has_objective or not evaluation.finite:
            return
        if evaluation.has_rows and not evaluation.violations.any():
            strict = self.strict
            if strict is None or evaluation.objective < strict.objective:
                self.strict = evaluation
        lowest = self.whole
        if not evaluation.has_rows:
            lowest = self.alone[-1] if self.alone else None
        if lowest is not None and not evaluation.objective < lowest.objective:
            return
        if not evaluation.has_rows:
            self.alone = [*self.alone[1 - RULES.points_alone :], evaluation]
        elif evaluation.relative_violation <= self.tolerance:
            self.whole = evaluation

    def offer(self, best: Incumbent, task: Task, *, cut_short: bool, with_rows: bool) -> None:
        """Offer what was seen; rows that are not known are evaluated where `with_rows` allows it.

        A method that ended by itself has chosen among points that use up the tolerance of the rows.
        """
        found = self.whole if cut_short else self.strict
        if found is not None and task.domain.contains(found.point, task.tolerance):
            _offer_at_prices(best, found)
        if not with_rows:
            return
        spare = Oracle(task.oracle.stack, task.oracle.outer, parts=(False, True))
        try:
            with beyond():  # some evaluations of the rows, without derivatives
                for each in reversed(self.alone):
                    whole = each.joined(spare.at(each.point))
                    if task.domain.contains(each.point, task.tolerance):
                        _offer_at_prices(best, whole)
                    if whole.relative_violation <= task.tolerance:
                        return
        except ENDINGS:
            return


def _offer_at_prices(best: Incumbent, evaluation: Evaluation) -> None:
    """Offer a point without multipliers of its own, at the prices of the best one."""
    prices = best.multipliers
    fitting = prices.size == evaluation.rows.size
    own = prices if fitting else np.zeros(evaluation.rows.size)
    if not best.is_as_good_as(evaluation, own):
        best.offer(evaluation, own)


def run(
    method: Method[Any],
    task: Task,
    start: FloatArray,
    callback: Callback | None = None,
    max_iterations: int = RULES.max_iterations,
) -> Result:
    """Run a method from a start until it ends, a limit is reached or the user stops it."""
    oracle = task.oracle
    best, seen = Incumbent(task.tolerance), Seen(task.tolerance)
    oracle.show_to(seen.look)
    trace: list[Record] = []
    state: State | None = None
    iteration = 0
    idle, points, jumps = 0, -1, 0
    termination: Termination | None = None
    cause: BaseException | None = None
    try:
        first = find_start(task, start)
        if first is None:
            return result_of(Termination.OUTSIDE_DOMAIN, best, state, iteration, task, trace)
        best.offer(first, np.zeros(first.rows.size))
        state = method.init(task, first)
        while termination is None:
            best.offer(state.current, state.multipliers)
            trace.append(record_of(iteration, state, task))
            if called(callback, trace[-1]):
                termination = Termination.CALLBACK
                break
            termination, cause = state.stop or method.terminate(task, state), state.cause
            if termination is None and iteration >= max_iterations:
                termination = Termination.ITERATION_LIMIT
            idle = 0 if oracle.calls.points != points else idle + 1
            points = oracle.calls.points
            if termination is None and idle >= RULES.idle_iterations:
                termination = Termination.STALLED
            if termination is None:
                check_time()
                before, state = state.current, method.step(task, state)
                iteration += 1
                jumps += task.ends_at_kinks and _jumps(task, before, state.current)
                if jumps >= RULES.jumps and state.stop is None:
                    termination = Termination.KINKS
    except ENDINGS as error:
        termination, cause = ending(error)
    cut = termination in CUT_SHORT
    seen.offer(
        best, task, cut_short=cut, with_rows=cut and termination is not Termination.CALL_LIMIT
    )
    if best.evaluation is None:
        offer_start(best, task, start)
    result = result_of(termination, best, state, iteration, task, trace)
    return result if cause is None else replace(result, cause=cause)


def ending(error: BaseException) -> tuple[Termination, BaseException | None]:
    """Why a run ends with an exception, and what raised it where that was not hcmodel."""
    for kinds, termination in REASONS.items():
        if isinstance(error, kinds):
            return termination, _cause(error)
    raise error


def _cause(error: BaseException) -> BaseException | None:
    if isinstance(error, MemoryError):
        return error
    return error.__cause__ if isinstance(error, OracleFailed | CallbackFailed) else None


def called(callback: Callback | None, record: Record) -> bool:
    """Whether the callback asks to stop; what it raises is told apart from other exceptions."""
    if callback is None:
        return False
    try:
        return bool(callback(record))
    except Exception as error:
        raise CallbackFailed(str(error)) from error


def offer_start(best: Incumbent, task: Task, start: FloatArray) -> None:
    """The start, where a limit or an exception has left no other point; outside of the budget."""
    spare = Oracle(task.oracle.stack, task.oracle.outer)
    try:
        with beyond():  # one evaluation, without derivatives
            first = spare.at(task.domain.project(np.asarray(start, dtype=float)))
    except (OracleFailed, KeyboardInterrupt):
        return
    best.offer(first, np.zeros(first.rows.size))


def _jumps(task: Task, before: Evaluation, after: Evaluation) -> bool:
    """Whether gradients at two points close to each other are far from each other, as at a kink."""
    if not (after.finite and after.has_objective and before.has_objective):
        return False
    metric = task.domain.metric(before.point)
    moved = float(np.max(np.abs(after.point - before.point) / metric, initial=0.0))
    if not 0 < moved < RULES.short:
        return False
    one, other = before.gradient * metric, after.gradient * metric
    size = max(float(np.max(np.abs(one))), float(np.max(np.abs(other))))
    return float(np.max(np.abs(one - other))) > RULES.jump * size


def find_start(task: Task, start: FloatArray) -> Evaluation | None:
    """The projected start, or else the middle of X or a random point where all is defined."""
    generator = np.random.default_rng(0)
    domain = task.domain
    candidate = domain.project(np.asarray(start, dtype=float))
    for attempt in range(RULES.start_attempts + 2):
        evaluation = task.oracle.at(candidate)
        if evaluation.finite and evaluation.differentiable:
            return evaluation
        candidate = domain.middle() if attempt == 0 else domain.sample(generator)
    return None


def record_of(iteration: int, state: State, task: Task) -> Record:
    current, oracle = state.current, task.oracle
    return Record(
        iteration=iteration,
        phase=state.phase,
        calls=oracle.calls.total,
        points=oracle.calls.points,
        objective=current.objective if current.has_objective else np.nan,
        violation=float(np.max(current.violations, initial=0.0)) if current.has_rows else np.nan,
        step=state.step,
        level=state.level,
        shift=state.shift,
        residual=state.residual,
        bound=state.bound,
        point=current.point.copy() if task.keeps_points else None,
    )


def result_of(
    termination: Termination,
    best: Incumbent,
    state: State | None,
    iterations: int,
    task: Task,
    trace: list[Record],
) -> Result:
    evaluation, multipliers = best.evaluation, best.multipliers
    if state is not None and termination in ENDED_WELL:
        if best.is_above(state.current, state.multipliers):
            evaluation, multipliers = state.current, state.multipliers
        else:  # what the method has shown is shown of another point
            termination = Termination.STALLED
    return Result(
        evaluation,
        multipliers,
        termination,
        iterations,
        task.oracle.calls,
        tuple(trace),
        None if state is None else state.conflict,
        weighted=() if state is None else state.weighted_points(),
        surrounded=state is not None and state.surrounded,
        passed=state is not None and state.passed,
    )
