"""What a method may ask of a problem: values and first derivatives, honestly counted.

A problem reaches the methods as a compiled stack of functions φ(x) (`Stack`) and a static description
of how the objective and the rows are made from it (`Outer`). `Oracle` joins the two, counts as the
paper does, remembers the last point and refuses to go past a budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.hessians import Hessian, with_squares
from hcmodel.solvers.algebra.marks import all_are_0, all_finite, largest, some
from hcmodel.solvers.limits import BudgetExhausted, check_time
from hcmodel.solvers.numerics import LARGEST_NUMBER, TINY
from hcmodel.solvers.outer import Outer, row_floors

FloatArray: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = "FloatArray | scipy.sparse.csr_array"


class Forward(Protocol):
    """One forward pass: the values, and derivatives from the same tape when they are asked for."""

    @property
    def values(self) -> FloatArray: ...
    def jacobian(self) -> Matrix: ...
    def pullback(self, weights: FloatArray) -> FloatArray:
        """The gradient of weights·φ."""


class Stack(Protocol):
    """The functions φ: the objective's inner parts first, then those of the constraints."""

    @property
    def dimension(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def objective_size(self) -> int: ...
    @property
    def kinked(self) -> bool: ...
    def evaluate(self, x: FloatArray, part: str) -> Forward:
        """The "objective", the "constraints", "all" of both, or the "map" of hidden coordinates."""

    def hessian(self, x: FloatArray, weights: FloatArray) -> Matrix:
        """Of weights·φ; weights of the map's entries may follow."""


class CallsExhausted(BudgetExhausted):
    """The limit on calls is reached."""


class OracleFailed(Exception):  # noqa: N818  (a signal to the loop, which keeps the best point)
    """A function of the problem raised an exception, which is the cause of this one."""


class _Failing:
    """Exceptions of the functions inside are told apart from those of a method."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, BudgetExhausted | OracleFailed):
            raise OracleFailed(str(error)) from error


_FAILING = _Failing()  # nothing is kept, so that one serves all: it is entered twice at each point


@dataclass
class OracleCalls:
    """Counts as in the paper: an objective evaluation is one call, all rows together another."""

    objective: int = 0
    constraints: int = 0
    points: int = 0
    hessians: int = 0
    outside: int = 0

    @property
    def total(self) -> int:
        return self.objective + self.constraints

    def plus(self, other: OracleCalls) -> OracleCalls:
        """The calls of both."""
        return OracleCalls(
            self.objective + other.objective,
            self.constraints + other.constraints,
            self.points + other.points,
            self.hessians + other.hessians,
            self.outside + other.outside,
        )

    def as_dict(self) -> dict[str, int]:
        names = ("objective", "constraints", "total", "points", "hessians", "outside")
        return {name: int(getattr(self, name)) for name in names}


@dataclass
class Budget:
    """A limit that holds to the call: no evaluation starts once it, or the deadline, is reached."""

    max_calls: int | None = None

    def check(self, calls: OracleCalls, cost: int) -> None:
        if self.max_calls is not None and calls.total + cost > self.max_calls:
            raise CallsExhausted
        check_time()


@dataclass
class _Memo:
    """The forward passes of the last point, one for each part."""

    point: FloatArray | None = None
    passes: dict[str, _Slice] = field(default_factory=dict)
    watch: Callable[[Evaluation], None] | None = None


class _Slice:
    """The part of a forward pass that belongs to the objective or to the constraints."""

    __slots__ = ("_forward", "_rows", "values")

    def __init__(self, forward: Forward, rows: slice) -> None:
        self._forward, self._rows = forward, rows
        self.values = forward.values[rows]

    def jacobian(self) -> Matrix:
        check_time()
        with _FAILING:
            return self._forward.jacobian()[self._rows]


class Evaluation:
    """Objective and rows at one point; derivatives are computed when first asked for."""

    def __init__(
        self, point: FloatArray, outer: Outer, objective: _Slice | None, rows: _Slice | None
    ) -> None:
        self.point = point
        self._outer = outer
        self._objective_pass = objective
        self._rows_pass = rows
        self.objective = np.nan if objective is None else outer.objective_value(objective.values)
        if rows is None:
            self.rows = np.zeros(0)
            self.magnitudes = np.ones(0)
        else:
            self.rows, self.magnitudes = outer.row_values(rows.values)
        self.has_objective = objective is not None
        self.has_rows = rows is not None or outer.size == 0
        self._gradient: FloatArray | None = None
        self._jacobian: Matrix | None = None
        self._finite: bool | None = None
        self._differentiable: bool | None = None

    def joined(self, other: Evaluation) -> Evaluation:
        """This evaluation with the part, objective or rows, that only another one at the point has."""
        objective = other._objective_pass if self._objective_pass is None else self._objective_pass
        rows = other._rows_pass if self._rows_pass is None else self._rows_pass
        return Evaluation(self.point, self._outer, objective, rows)

    @property
    def inequalities(self) -> int:
        """How many of the rows, the first ones, are inequalities `row <= 0`."""
        return self._outer.inequalities if self.rows.size else 0

    @cached_property
    def violations(self) -> FloatArray:
        """[g]₊ for inequalities and |h| for equalities, absolute."""
        count = self.inequalities
        if count == self.rows.size:
            found = np.maximum(self.rows, 0.0)
        else:
            parts = (np.maximum(self.rows[:count], 0.0), np.abs(self.rows[count:]))
            found = np.concatenate(parts)
        found.flags.writeable = False
        return found

    @cached_property
    def relative_violation(self) -> float:
        """The largest violation over max(1, |lhs|, |rhs|); feasible means at most the tolerance."""
        return largest(self.violations / self.magnitudes)

    def violation_in_units(self, units: FloatArray) -> float:
        """The largest violation over max(|lhs|, |rhs|, t), t = min(1, max_j |∂row/∂x_j| unit_j)."""
        violations = self.violations
        if self._rows_pass is None or all_are_0(violations):
            return 0.0
        if not all_finite(violations):
            return np.inf
        sizes = self._outer.row_sizes(self._rows_pass.values)
        if some(small := (violations > 0) & (sizes < 1.0)):
            sizes = np.where(small, np.maximum(sizes, self.row_floors(units)), sizes)
        sizes = np.where(np.isinf(sizes), self.magnitudes, np.maximum(sizes, TINY))
        return largest(violations / sizes)

    def row_floors(self, units: FloatArray) -> FloatArray:
        """The least sizes of the rows at this point, from their slopes."""
        return row_floors(self.jacobian, units)

    @property
    def gradient(self) -> FloatArray:
        if self._gradient is None:
            if self._objective_pass is None:
                self._gradient = np.zeros(self.point.size)
            else:
                values, jacobian = self._objective_pass.values, self._objective_pass.jacobian()
                self._gradient = self._outer.objective_gradient(values, jacobian)
        return self._gradient

    @property
    def jacobian(self) -> Matrix:
        if self._jacobian is None:
            if self._rows_pass is None:
                self._jacobian = np.zeros((0, self.point.size))
            else:
                values, jacobian = self._rows_pass.values, self._rows_pass.jacobian()
                self._jacobian = self._outer.row_jacobian(values, jacobian)
        return self._jacobian

    @property
    def row_factors(self) -> FloatArray | None:
        """Multipliers over these are those of left − right beside the plain objective.

        None where objective or rows have not been evaluated.
        """
        if self._objective_pass is None or self._rows_pass is None:
            return None
        return self._outer.row_factors(self._objective_pass.values, self._rows_pass.values)

    def lagrangian(
        self, multipliers: FloatArray
    ) -> tuple[FloatArray, list[tuple[FloatArray, Matrix]]]:
        """Weights on φ of the Lagrangian, and the squares that the normal forms add to its Hessian."""
        empty = np.zeros((0, self.point.size))
        top, slopes = None, (empty, empty)
        values = np.zeros(self._outer.left.width)
        if self._objective_pass is not None:
            top, slopes = self._objective_pass.values, (self._objective_pass.jacobian(), empty)
        if self._rows_pass is not None:
            values = self._rows_pass.values
            slopes = (slopes[0], self._rows_pass.jacobian())
        weights = self._outer.lagrangian_weights(top, values, multipliers)
        return weights, self._outer.lagrangian_squares(top, values, slopes, multipliers)

    @property
    def finite(self) -> bool:
        """Whether the point lies in the domain of every function."""
        if self._finite is None:
            known = not self.has_objective or math.isfinite(self.objective)
            near = largest(np.abs(self.point)) <= LARGEST_NUMBER
            self._finite = bool(known and near and all_finite(self.rows))
        return self._finite

    @property
    def differentiable(self) -> bool:
        """Whether the derivatives are finite too (they are not for √x at 0)."""
        if self._differentiable is None:
            jacobian = self.jacobian
            entries = jacobian if type(jacobian) is np.ndarray else np.asarray(jacobian.data)
            self._differentiable = all_finite(self.gradient) and all_finite(entries)
        return self._differentiable


class Oracle:
    """Objective and rows of a problem, counted. `restricted` gives a view with a part left out."""

    def __init__(
        self,
        stack: Stack,
        outer: Outer,
        *,
        calls: OracleCalls | None = None,
        budget: Budget | None = None,
        parts: tuple[bool, bool] = (True, True),
        memo: _Memo | None = None,
    ) -> None:
        self.stack = stack
        self.outer = outer
        self.calls = calls or OracleCalls()
        self.budget = budget or Budget()
        self._with_objective, with_rows = parts
        self._with_rows = with_rows and outer.size > 0
        self._wanted = ("objective",) * self._with_objective + ("constraints",) * self._with_rows
        self._memo = memo or _Memo()

    @property
    def dimension(self) -> int:
        return self.stack.dimension

    @property
    def inequalities(self) -> int:
        return self.outer.inequalities if self._with_rows else 0

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.outer.size if self._with_rows else 0

    @property
    def smooth(self) -> bool:
        return not self.stack.kinked

    def restricted(self, *, objective: bool = True, rows: bool = True) -> Oracle:
        """The same problem without its objective or without its rows; the counts are shared."""
        return Oracle(
            self.stack,
            self.outer,
            calls=self.calls,
            budget=self.budget,
            parts=(objective and self._with_objective, rows and self._with_rows),
            memo=self._memo,
        )

    def at(self, x: FloatArray) -> Evaluation:
        """Evaluate at x. What the last point's memo already holds is not counted again."""
        if self._memo.point is None or not _is_same(self._memo.point, x):
            fresh = np.array(x, dtype=float)
            fresh.flags.writeable = False
            passes: dict[str, _Slice] = {}
        else:
            fresh, passes = self._memo.point, self._memo.passes
        missing = [part for part in self._wanted if part not in passes]
        if missing:
            self.budget.check(self.calls, len(missing))
            self.calls.points += not passes
            with _FAILING:
                self._run(fresh, missing, passes)
        self._memo.point, self._memo.passes = fresh, passes
        evaluation = Evaluation(
            fresh,
            self.outer,
            passes["objective"] if self._with_objective else None,
            passes["constraints"] if self._with_rows else None,
        )
        if missing and not evaluation.finite:
            self.calls.outside += 1
        if missing and self._memo.watch is not None:
            self._memo.watch(self._whole(evaluation))
        return evaluation

    def show_to(self, watch: Callable[[Evaluation], None]) -> None:
        """Show each new evaluation, with all that is known at its point, to a function."""
        self._memo.watch = watch

    def _whole(self, evaluation: Evaluation) -> Evaluation:
        passes = self._memo.passes
        if len(passes) == evaluation.has_objective + (evaluation.has_rows and self.outer.size > 0):
            return evaluation
        point = evaluation.point
        return Evaluation(point, self.outer, passes.get("objective"), passes.get("constraints"))

    def _run(self, x: FloatArray, missing: list[str], passes: dict[str, _Slice]) -> None:
        split = self.stack.objective_size
        if len(missing) == 2:
            forward = self.stack.evaluate(x, "all")
            passes["objective"] = _Slice(forward, slice(0, split))
            passes["constraints"] = _Slice(forward, slice(split, None))
        else:
            passes[missing[0]] = _Slice(self.stack.evaluate(x, missing[0]), slice(None))
        for part in missing:
            setattr(self.calls, part, getattr(self.calls, part) + 1)

    def lagrangian_hessian(
        self,
        evaluation: Evaluation,
        multipliers: FloatArray,
        map_weights: FloatArray | None = None,
    ) -> Hessian:
        """∇²(F1 + Σ multipliers·rows + map_weights·c), c being the map of the stack."""
        check_time()
        self.calls.hessians += 1
        weights, squares = evaluation.lagrangian(multipliers)
        if map_weights is not None:
            weights = np.concatenate([weights, map_weights])
        with _FAILING:
            hessian = self.stack.hessian(evaluation.point, weights)
        return with_squares(hessian, squares)


def _is_same(one: FloatArray, other: FloatArray) -> bool:
    """Whether two points of one dimension are the same; most differ in their first entry."""
    return not one.size or bool(one[0] == other[0] and (one == other).all())


@dataclass(frozen=True)
class _CallablePass:
    values: FloatArray
    derivative: Callable[[], FloatArray]

    def jacobian(self) -> FloatArray:
        return self.derivative()

    def pullback(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ self.derivative())


@dataclass(frozen=True)
class FunctionStack:
    """A stack made of plain callables, so that the methods can be used without the modelling layer.

    `objective(x)` returns (value, gradient); `rows(x)` returns (values, Jacobian).
    """

    dimension: int
    objective: Callable[[FloatArray], tuple[float, FloatArray]]
    rows: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None = None
    row_count: int = 0
    kinked: bool = False
    objective_size: int = 1

    @property
    def size(self) -> int:
        return 1 + self.row_count

    def evaluate(self, x: FloatArray, part: str) -> Forward:
        values: list[FloatArray] = []
        derivatives: list[FloatArray] = []
        if part in ("objective", "all"):
            value, gradient = self.objective(x)
            values.append(np.atleast_1d(np.asarray(value, dtype=float)))
            derivatives.append(np.asarray(gradient, dtype=float).reshape(1, -1))
        if part in ("constraints", "all") and self.rows is not None:
            row_values, jacobian = self.rows(x)
            values.append(np.asarray(row_values, dtype=float).reshape(-1))
            derivatives.append(np.asarray(jacobian, dtype=float).reshape(-1, self.dimension))
        return _CallablePass(np.concatenate(values), lambda: np.vstack(derivatives))

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        raise NotImplementedError("plain callables carry no second derivatives")


Callables: TypeAlias = "Callable[[FloatArray], tuple[FloatArray, FloatArray]]"


def _with_shapes(
    function: Callable[[FloatArray], tuple[Any, Any]],
    value_shape: tuple[int, ...],
    derivative_shape: tuple[int, ...],
    what: str,
) -> Callable[[FloatArray], tuple[Any, FloatArray]]:
    """The function with what it returns checked, since a wrong shape would be broadcast somewhere."""

    def checked(x: FloatArray) -> tuple[Any, FloatArray]:
        found = function(x)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ValueError(f"{what} must return a pair (value, derivative), not {found!r}")
        value, derivative = np.asarray(found[0]), np.asarray(found[1])
        for part, array, shape in (
            ("value", value, value_shape),
            ("derivative", derivative, derivative_shape),
        ):
            if array.dtype.kind not in "biuf":
                raise ValueError(f"the {part} of {what} is not an array of real numbers: {array!r}")
            if _without_ones(array.shape) != _without_ones(shape):
                raise ValueError(
                    f"the {part} of {what} has shape {array.shape}, but {shape} is needed"
                )
        return (float(value.reshape(())) if not value_shape else value), derivative.reshape(
            derivative_shape
        )

    return checked


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of length 1 are a habit of notation."""
    return tuple(length for length in shape if length != 1)


def function_oracle(
    dimension: int,
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    *,
    inequalities: Callables | None = None,
    equalities: Callables | None = None,
    sizes: Sequence[int] = (0, 0),
    smooth: bool = True,
) -> Oracle:
    """An oracle from callables that return (value, derivative); `sizes` counts the rows of each."""
    if not any(sizes) and (inequalities is not None or equalities is not None):
        raise ValueError("sizes = (inequalities, equalities) must count the rows")
    count_le = sizes[0] if inequalities is not None else 0
    count_eq = sizes[1] if equalities is not None else 0

    given = ((inequalities, count_le, "inequalities"), (equalities, count_eq, "equalities"))
    checked = [
        _with_shapes(function, (count,), (count, dimension), f"the {what}")
        for function, count, what in given
        if function is not None
    ]

    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = [function(x) for function in checked]
        values = np.concatenate([np.atleast_1d(value) for value, _ in parts])
        return values, np.vstack([np.reshape(jacobian, (-1, dimension)) for _, jacobian in parts])

    count = count_le + count_eq
    objective = _with_shapes(objective, (), (dimension,), "the objective")
    stack = FunctionStack(dimension, objective, rows if count else None, count, kinked=not smooth)
    return Oracle(stack, Outer.of_rows(count_le, count_eq))
