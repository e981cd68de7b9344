"""What a run leaves behind: why it stopped, where, with which multipliers, and the way there."""

from __future__ import annotations

from dataclasses import field, fields
from enum import Enum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.oracle import Evaluation, OracleCalls
from hcmodel.solvers.qp.cone_program import ConeSolution

FloatArray = NDArray[np.float64]


class Termination(Enum):
    """Why the loop stopped. Each member's value is the message for people."""

    CONVERGED = "the KKT residual is below the tolerance"
    LEVEL_REACHED = "the given optimal value was reached"
    LEVEL_PASSED = (
        "a feasible point lies below the given optimal value, which is therefore too high"
    )
    GAP_CLOSED = "the lower bound of the cuts has reached the value"
    HULL_STATIONARY = "the hull of gradients sampled near the point has an element that is almost 0"
    PROMISE_DONE = "the iterations that the theorem asks for are done"
    STALLED = "no further progress is possible at this accuracy"
    KINKS = "gradients jump between points close to each other, as at kinks"
    INFEASIBLE_STATIONARY = "the violation has a stationary point above the tolerance"
    INFEASIBLE = "the rows of the convex program contradict each other"
    EXCLUDED = "the rows and bounds leave no point at which every function is defined"
    CONTRADICTED = "a function lies below one of its cuts: it is not convex in these coordinates"
    UNBOUNDED = "the objective is unbounded"
    CALL_LIMIT = "the limit on oracle calls was reached"
    TIME_LIMIT = "the time limit was reached"
    INTERRUPTED = "interrupted by the user"
    ITERATION_LIMIT = "the limit on iterations was reached"
    CALLBACK = "stopped by the callback"
    OUTSIDE_DOMAIN = "no start was found at which every function is defined"
    FAILED = "a function of the model, or the callback, raised an exception"
    OUT_OF_MEMORY = "there is not enough memory"
    BACKEND_FAILED = "the QP backend found no answer"


@dataclass(frozen=True)
class Record:
    """One line of the trace. Numbers that a method does not have are NaN.

    `calls` and `points` are totals until here, `violation` is the largest one, `residual` that of the
    optimality conditions, `level` the level of bundle methods and `bound` the lower bound known so far.
    `shift` is what the methods page explains for each method.
    """

    iteration: int
    phase: str
    calls: int
    points: int
    objective: float
    violation: float
    step: float
    level: float
    shift: float
    residual: float
    bound: float = -np.inf
    point: Any = field(default=None, repr=False, compare=False)
    """The vector of the method; of a solution, the values of the variables by name. None unless kept."""


# What a trace has as columns; points are arrays of their own.
COLUMNS = tuple(each.name for each in fields(Record) if each.name != "point")


class Trace(tuple[Record, ...]):
    """The records of a run. `trace["objective"]` is a column as an array, `trace.columns` all of them.

    With `solve(trace_points=True)`, `trace.points["x"]` has the value of x at each record, as one array.
    """

    @overload  # type: ignore[override]
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Record, ...]: ...
    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in COLUMNS:
            raise KeyError(f"a trace has no column {key!r}; there are: {', '.join(COLUMNS)}")
        return np.array([getattr(record, key) for record in self])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns by name, ready for `pandas.DataFrame`."""
        return {name: self[name] for name in COLUMNS}

    @property
    def points(self) -> dict[str, FloatArray]:
        """The variables by name, with one value for each record along the first axis."""
        if any(record.point is None for record in self):
            raise ValueError(
                "this trace has no points; solve(trace_points=True) keeps the point of each record"
            )
        names = self[0].point if self else ()
        return {name: np.array([record.point[name] for record in self]) for name in names}


@dataclass(frozen=True)
class WeightedPoint:
    """A point of a bundle, and the weights of its cuts in a bound: of the objective and of each row."""

    evaluation: Evaluation
    objective: float
    rows: FloatArray


@dataclass(frozen=True)
class Result:
    """`conflict` weighs the rows that keep the violation up when no feasible point was found.

    `direction` is one in which a convex program has no minimum; `recedes` says that all of its rows can
    be followed in this direction without end. `weighted` are the points of a
    bundle whose cuts show a lower bound or a contradiction. `surrounded` says that the run has evaluated
    points in all directions from its last one, `passed` that one of them lies beyond it as seen from the
    start, `hurried` that the run needs more time. `cone` is the solution of the cone program of a method
    that has solved one. `cause` is the exception that ended the run.
    """

    evaluation: Evaluation | None
    multipliers: FloatArray
    termination: Termination
    iterations: int
    calls: OracleCalls
    trace: tuple[Record, ...]
    conflict: FloatArray | None = None
    direction: FloatArray | None = None
    recedes: bool = False
    weighted: tuple[WeightedPoint, ...] = ()
    surrounded: bool = False
    passed: bool = False
    hurried: bool = False
    cone: ConeSolution | None = None
    cause: BaseException | None = None

    def passed_on(self) -> Result:
        """The result, or Ctrl-C and a lack of memory again, where what called the run must end too."""
        if self.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if isinstance(self.cause, MemoryError):
            raise self.cause
        return self

    @property
    def point(self) -> FloatArray:
        if self.evaluation is None:
            raise ValueError(f"there is no point: {self.termination.value}")
        return self.evaluation.point
