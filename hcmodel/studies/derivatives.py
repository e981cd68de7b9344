"""Derivatives of a solution by the parameters: dx*/dp, dV/dp, their adjoint, and elasticities.

dV/dp = ∂L/∂p at the solution and its multipliers; dx*/dp by the implicit function theorem on the
optimality conditions (`optimality`). Where rows hold the solution with a multiplier of 0, or where rows
depend on each other, the derivative may exist from one side only: then it is NaN here, the reason is in
words, and the one-sided derivatives of the value are given.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.errors import ModelError, SolverError
from hcmodel.expressions.labels import in_order
from hcmodel.expressions.leaves import Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import dense
from hcmodel.records import dataclass
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Duals
from hcmodel.solvers.numerics import DEPENDENT, TINY
from hcmodel.solving.judge import Status
from hcmodel.solving.naming import Naming, axes_of, label
from hcmodel.solving.solution import Solution
from hcmodel.studies.optimality import (
    RULES,
    Conditions,
    NoDerivative,
    find_conditions,
    without_slack,
)

FloatArray = NDArray[np.float64]

# The share of the largest term under which a row that could move counts as staying, and by which the
# two one-sided derivatives of the value may differ: what Newton's steps leave of the point's error.
SAME = 1e-7
# Entries of a parameter or of a right-hand side that the table of elasticities lists one by one.
LISTED = 200


@dataclass(frozen=True)
class Derivative:
    """How value and variables move with one parameter.

    Arrays of variables have the shape of the variable, then that of the parameter. Where a derivative
    does not exist, its entries are NaN and `reason` says why; `value_left` and `value_right` are the
    derivatives of the optimal value when the entry of the parameter falls or rises, NaN where unknown.
    """

    parameter: str
    value: FloatArray
    value_left: FloatArray
    value_right: FloatArray
    variables: Mapping[str, FloatArray]
    reason: str | None
    at: FloatArray = field(repr=False)
    """The value of the parameter."""
    optimal_value: float = field(repr=False)
    point: Mapping[str, FloatArray] = field(repr=False)
    index: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict, repr=False)
    """Of names in the language: what each place on each axis is called."""

    @property
    def exists(self) -> bool:
        """Whether the derivatives of the variables exist."""
        return self.reason is None

    def __getitem__(self, variable: Variable | str) -> FloatArray:
        """The derivative of a variable, named or given."""
        return self.variables[_name(variable, self.variables, "variable")]

    @property
    def elasticity(self) -> FloatArray:
        """(p/V)·dV/dp: per cent of the value per per cent of the parameter; NaN where V is 0."""
        with np.errstate(all="ignore"):
            share = self.at * self.value / self.optimal_value
        return np.where(np.isfinite(share), share, np.nan)

    def elasticity_of(self, variable: Variable | str) -> FloatArray:
        """(p/x)·dx/dp, entry by entry; NaN where x is 0."""
        name = _name(variable, self.variables, "variable")
        x = self.point[name].reshape(self.point[name].shape + (1,) * self.at.ndim)
        with np.errstate(all="ignore"):
            share = self.at * self.variables[name] / x
        return np.where(np.isfinite(share), share, np.nan)

    def _repr_html_(self) -> str:
        from hcmodel.report.notebook import text_html

        return text_html(self)

    def __str__(self) -> str:
        from hcmodel.report.text import labelled_array, short_array

        def shown(array: FloatArray, *names: str) -> str:
            axes = [axis for name in names for axis in self.index.get(name, ())]
            return labelled_array(array, axes) or short_array(array)

        own = self.parameter
        lines = [f"d value / d {own} = {shown(self.value, own)}"]
        if not np.isfinite(self.value).all():
            lines[0] += (
                f"  (left {short_array(self.value_left)}, right {short_array(self.value_right)})"
            )
        lines.append(f"per cent per per cent: {shown(self.elasticity, own)}")
        if self.reason is not None:
            lines.append(f"variables: no derivative, because {self.reason}")
            return "\n".join(lines)
        for name, array in self.variables.items():
            lines.append(f"d {name} / d {own} = {shown(array, name, own)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Elasticity:
    """One line of the table: an entry of a parameter, or the right-hand side of a row."""

    name: str
    kind: str
    """"parameter" or "right-hand side"."""
    at: float
    derivative: float
    elasticity: float


@dataclass(frozen=True)
class Elasticities:
    """How the optimal value moves with every parameter and every right-hand side."""

    optimal_value: float
    rows: tuple[Elasticity, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Elasticity:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(
            f"{name!r} is not in the table; it has: {', '.join(r.name for r in self.rows)}"
        )

    def _repr_html_(self) -> str:
        from hcmodel.report.notebook import text_html

        return text_html(self)

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows] + [4])
        lines = [f"{'name':<{width}}  {'kind':<15} {'value':>12} {'dV/d·':>12} {'% per %':>10}"]
        for row in self.rows:
            numbers = f"{_cell(row.at, 12)} {_cell(row.derivative, 12)} {_cell(row.elasticity, 10)}"
            lines.append(f"{row.name:<{width}}  {row.kind:<15} {numbers}")
        return "\n".join([*lines, *self.notes])

    def to_pandas(self) -> Any:
        """The table as a data frame, indexed by name (extra `data`)."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ModelError("to_pandas needs pandas: pip install 'hcmodel[data]'") from None
        columns = ("name", "kind", "at", "derivative", "elasticity")
        records = [{name: getattr(row, name) for name in columns} for row in self.rows]
        return pandas.DataFrame(records, columns=columns).set_index("name")


class Sensitivity:
    """The optimality conditions of a solved problem, for the parameters that are named."""

    def __init__(
        self, forms: Forms, model: Model, solution: Solution, parameters: Sequence[Parameter]
    ) -> None:
        self.forms, self.model, self.solution = forms, model, solution
        self.parameters = tuple(parameters)
        self.conditions: Conditions | None = None
        self.reason: str | None = None
        try:
            self.conditions = find_conditions(forms, _lifted_point(forms, solution), parameters)
        except NoDerivative as stop:
            self.reason = str(stop)
            return
        matrix, _, self._right = self.conditions.system()
        self._matrix = matrix
        self._spare = without_slack(self.conditions)

    @property
    def sign(self) -> float:
        return self.forms.sign.before.sign

    def _moves(self) -> tuple[FloatArray | None, str | None]:
        """d(x, multipliers)/dp in stored entries, or why there is none."""
        assert self.conditions is not None
        found = self.conditions.solved(self._matrix, -self._right)
        if not found.unique:
            return None, (
                "the solution is not unique to second order: another point nearby is as good, or a row "
                "holds it with a multiplier of 0"
            )
        if found.residual > SAME:
            return None, "the rows that hold the solution depend on each other"
        spare = self._moving_rows(found.y)
        if spare.size:
            return None, f"{self._row_names(spare)} would become violated or slack: one side only"
        return found.y, None

    def _moving_rows(self, moves: FloatArray) -> NDArray[np.intp]:
        """Rows without slack that are no equations, and that do not stay at 0 when p moves."""
        assert self.conditions is not None
        if not self._spare.size:
            return self._spare
        n = self.conditions.x.size
        _, jacobian, _ = self.conditions.all_rows()
        own = jacobian[self._spare]
        change = own[:, :n] @ moves[:n] + own[:, n:]
        size = np.abs(own[:, :n]) @ np.abs(moves[:n]) + np.abs(own[:, n:])
        moving = np.abs(change) > SAME * np.maximum(size, TINY)
        scale = np.maximum(np.abs(self.conditions.functions.parameters), 1.0)
        reach = np.abs(own[:, :n]) @ self.conditions.units
        moving &= np.abs(change) * scale > RULES.active * reach[:, None]
        return np.asarray(self._spare[moving.any(axis=1)])

    def _row_names(self, rows: NDArray[np.intp]) -> str:
        """Rows in words; those of sets are named as such."""
        naming, chain, front = Naming.of(self.forms.user), self.forms.lifted.chain, self.forms.front
        size, found = self.forms.lifted.canonical.outer.size, []
        for row in rows:
            origin = chain.origin(int(row)) if row < size else None
            origin = None if origin is None else front.origin(origin)
            found.append("a bound or a kink" if origin is None else f"row {naming.row(origin)}")
        return ", ".join(dict.fromkeys(found))

    def derivative(self, number: int) -> Derivative:
        """By the parameter of this number."""
        parameter = self.parameters[number]
        at = np.asarray(dense(parameter.value), dtype=float)
        if self.conditions is None:
            nothing = np.full(at.shape, np.nan)
            empty = {
                each.name: np.full(each.shape + at.shape, np.nan) for each in self.model.variables
            }
            return self._record(number, nothing, nothing, nothing, empty, self.reason)
        left, right = self._value_sides()
        sides = [self._by_entry(number, part) for part in (left, right)]
        same = np.abs(sides[1] - sides[0]) <= SAME * (TINY + np.abs(sides[0]) + np.abs(sides[1]))
        value = np.where(same, 0.5 * (sides[0] + sides[1]), np.nan)
        moves, reason = self._moves()
        variables = self._variables(number, moves)
        return self._record(number, value, sides[0], sides[1], variables, reason)

    def _record(
        self,
        number: int,
        value: FloatArray,
        left: FloatArray,
        right: FloatArray,
        variables: Mapping[str, FloatArray],
        reason: str | None,
    ) -> Derivative:
        parameter, found = self.parameters[number], self.solution.value
        at = np.asarray(dense(parameter.value), dtype=float)
        optimum = np.nan if found is None else float(found)
        point, index = self.solution.point, axes_of(self.model)
        return Derivative(
            parameter.name, value, left, right, variables, reason, at, optimum, point, index
        )

    def _value_sides(self) -> tuple[FloatArray, FloatArray]:
        """dV/dp from the left and from the right, by stored entries of all parameters.

        V'(p; d) is the largest ∂L/∂p·d over all multipliers (for a convex model with one solution). One
        linear program for each entry, only where multipliers are not unique.
        """
        assert self.conditions is not None
        conditions = self.conditions
        n = conditions.x.size
        _, jacobian, gradient = conditions.all_rows()
        middle = gradient[n:] + jacobian[:, n:].T @ conditions.multipliers
        rows = np.union1d(conditions.active, self._spare)
        columns = jacobian[rows, :n].T * conditions.units[:, None]
        sizes = np.linalg.svd(columns, compute_uv=False) if rows.size else np.zeros(0)
        independent = rows.size <= n and bool((sizes > DEPENDENT * sizes.max(initial=0.0)).all())
        # of several solutions each has its own ∂L/∂p, unless p moves no function along them
        found = conditions.solved(self._matrix, -self._right)
        unknown = np.zeros(middle.size, dtype=bool) if found.unique else found.residuals > SAME
        middle = np.where(unknown, np.nan, middle)
        if independent or conditions.blocks:
            return self._signed(middle, middle)
        lower = np.where(conditions.equalities()[rows], -np.inf, 0.0)
        low, high = middle.copy(), middle.copy()
        for entry in np.flatnonzero(np.abs(jacobian[rows, n:]).max(axis=0, initial=0.0)):
            slope = jacobian[rows, n + entry]
            for sign, target in ((1.0, low), (-1.0, high)):
                found = scipy.optimize.linprog(
                    sign * slope,
                    A_eq=columns,
                    b_eq=-gradient[:n] * conditions.units,
                    bounds=np.column_stack([lower, np.full(rows.size, np.inf)]),
                )
                # multipliers without bound: the model cannot be perturbed in this direction
                value = sign * found.fun if found.status == 0 else np.nan
                target[entry] = np.nan if unknown[entry] else gradient[n + entry] + value
        return self._signed(low, high)

    def _signed(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From the left and from the right, for the user's sign."""
        return self.sign * low, self.sign * high

    def _by_entry(self, number: int, stored: FloatArray) -> FloatArray:
        assert self.conditions is not None
        layout = self.conditions.functions.layout
        block = layout.blocks[number]
        return np.array(block.expand(np, stored[block.start : block.stop]), dtype=float)

    def _variables(self, number: int, moves: FloatArray | None) -> dict[str, FloatArray]:
        """d(variable)/d(parameter) by name, NaN where there are no moves."""
        assert self.conditions is not None
        parameter = self.parameters[number]
        if moves is None:
            return {
                each.name: np.full(each.shape + parameter.shape, np.nan)
                for each in self.model.variables
            }
        block = self.conditions.functions.layout.blocks[number]
        n = self.conditions.x.size
        columns = [
            self._user_direction(moves[:n, column]) for column in range(block.start, block.stop)
        ]
        found = {}
        for variable in self.model.variables:
            if columns:
                stacked = np.stack([each[variable.name].reshape(-1) for each in columns], axis=1)
            else:
                stacked = np.zeros((variable.size, 0))
            rows = [np.asarray(block.expand(np, row)).reshape(-1) for row in stacked]
            found[variable.name] = np.array(rows).reshape(variable.shape + parameter.shape)
        return found

    def _user_direction(self, direction: FloatArray) -> dict[str, FloatArray]:
        layout = self.forms.lifted.canonical.layout
        arrays = layout.unpack(np, direction)
        pairs = zip(layout.variables, arrays, strict=True)
        return {variable.name: np.asarray(array, dtype=float) for variable, array in pairs}

    def adjoint(self, weights: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """The gradient by the parameters of Σ weight·x*, one solve with the transposed matrix."""
        if self.conditions is None:
            raise SolverError(f"the solution has no derivative: {self.reason}")
        _, reason = self._moves()
        if reason is not None:
            raise SolverError(f"the solution has no derivative: {reason}")
        layout = self.forms.lifted.canonical.layout
        target = np.zeros(self._matrix.shape[0])
        for variable in layout.variables:
            if variable.name in weights:
                # stored entries are scaled so that inner products are kept
                target[layout.slice(variable)] = variable.set.store(weights[variable.name])
        pulled = self.conditions.pulled(self._matrix, self._right, target)
        return {
            parameter.name: self._by_entry(number, pulled)
            for number, parameter in enumerate(self.parameters)
        }

    def elasticities(self) -> Elasticities:
        """The table of all parameters and all right-hand sides."""
        naming = Naming.of(self.forms.user)
        optimum = np.nan if self.solution.value is None else float(self.solution.value)
        rows, notes = [], []
        for number, parameter in enumerate(self.parameters):
            found = self.derivative(number)
            if parameter.size > LISTED:
                notes.append(
                    f"{parameter.name} has {parameter.size} entries: see problem.derivative"
                )
                continue
            for entry in np.ndindex(*parameter.shape):
                name = naming.entry(parameter.name, entry)
                slope = float(found.value[entry])
                rows.append(_line(name, "parameter", float(found.at[entry]), slope, optimum))
        if self.reason is not None:
            notes.append(f"no derivatives: {self.reason}")
        else:
            rows += self._right_sides(naming, optimum)
            if self._spare.size:
                notes.append(
                    f"{self._row_names(self._spare)}: without slack and with multiplier 0, the value may "
                    "bend here"
                )
        return Elasticities(optimum, tuple(rows), tuple(notes))

    def _right_sides(self, naming: Naming, optimum: float) -> list[Elasticity]:
        """One line for each right-hand side that is constant, from the multipliers."""
        assert self.conditions is not None
        u, forms = self.conditions.x, self.forms
        there: Duals = forms.lifted.chain.duals_back(u, self.conditions.row_multipliers)
        found = forms.front.duals_back(forms.lifted.chain.point_back(u), there)
        lines = []
        for position, (written, dual) in enumerate(
            zip(forms.user.constraints, found.rows, strict=True)
        ):
            if dual is None or written.is_semidefinite or written.rhs.variables():
                continue
            if written.size > LISTED:
                continue
            slope = self.sign * (1.0 if written.sense == ">=" else -1.0) * dual
            at = np.broadcast_to(np.asarray(dense(written.rhs.value), dtype=float), written.shape)
            for entry in np.ndindex(*written.shape):
                name = label(naming.constraints[position], entry, naming.families, naming.first)
                lines.append(
                    _line(name, "right-hand side", float(at[entry]), float(slope[entry]), optimum)
                )
        return lines


def _line(name: str, kind: str, at: float, slope: float, optimum: float) -> Elasticity:
    share = at * slope / optimum if optimum else np.nan
    return Elasticity(name, kind, at, slope, share)


def _cell(number: float, width: int) -> str:
    return f"{number:>{width}.5g}" if np.isfinite(number) else f"{'-':>{width}}"


def _lifted_point(forms: Forms, solution: Solution) -> FloatArray:
    """The solution as a point of the lifted model."""
    x = forms.user.layout.pack([solution.point[each.name] for each in forms.user.variables])
    return forms.lifted.chain.point(forms.sign.point(forms.front.point(x)))


def checked_solution(solution: Solution | None) -> Solution:
    """The solution, if it is one that can be differentiated."""
    if solution is None:
        raise ModelError("derivatives belong to a solution: call problem.solve() first")
    solved = (Status.OPTIMAL, Status.LOCALLY_OPTIMAL, Status.OPTIMAL_INACCURATE)
    if solution.status not in solved:
        raise ModelError(
            f"derivatives belong to a solution, and the last solve ended with status "
            f"'{solution.status.value}'"
        )
    return solution


def chosen_parameters(model: Model, wanted: Sequence[Any]) -> list[Parameter]:
    """The parameters that are meant, by themselves or by name."""
    known = {parameter.name: parameter for parameter in model.parameters}
    found = []
    for each in wanted:
        if isinstance(each, Parameter) and not any(each is own for own in model.parameters):
            raise ModelError(_not_part(each, known, "parameter"))
        found.append(known[_name(each, known, "parameter")])
    for parameter in found:
        if parameter.value is None:
            raise ModelError(f"parameter '{parameter.name}' has no value")
    return found


def chosen_weights(model: Model, weights: Any) -> dict[str, FloatArray]:
    """Weights by the names of variables, in their shapes."""
    if not isinstance(weights, Mapping) or not weights:
        raise ModelError("adjoint takes a dict {variable: weight}, as {x: 1.0}")
    known = {variable.name: variable for variable in model.variables}
    found = {}
    for key, weight in weights.items():
        name = _name(key, known, "variable")
        if isinstance(key, Variable) and key is not known[name]:
            raise ModelError(_not_part(key, known, "variable"))
        try:
            weight = in_order(weight, known[name].labels, f"the weight of variable '{name}'")
            array, shape = np.asarray(weight, dtype=float), known[name].shape
        except (TypeError, ValueError):
            raise ModelError(
                f"the weight of variable '{name}' is a number or an array of numbers, not {weight!r}"
            ) from None
        try:
            found[name] = np.broadcast_to(array, shape).copy()
        except ValueError:
            raise ModelError(
                f"the weight of variable '{name}' has shape {array.shape}, but {shape} is needed"
            ) from None
    return found


def _name(key: Any, known: Mapping[str, Any], what: str) -> str:
    name = key if isinstance(key, str) else getattr(key, "name", None)
    if isinstance(name, str) and name in known:
        return name
    raise ModelError(_not_part(key, known, what))


def _not_part(key: Any, known: Mapping[str, Any], what: str) -> str:
    listed = ", ".join(known) or "none"
    hint = ""
    if what == "parameter" and isinstance(key, (str, Parameter)):
        hint = (
            "; numbers, and parameters that set a shape, a range or a bound, are fixed when "
            "the model is made: write a bound as a row to differentiate by it"
        )
    return f"{key!r} is not a {what} of this problem, which has: {listed}{hint}"
