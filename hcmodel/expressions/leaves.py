"""What models are written with: variables, parameters, constants, expressions, constraints.

Variables and parameters are the two leaves with a life of their own: a variable knows its domain
and carries a value that either the user or a solve wrote, a parameter is data that may change
between solves without compiling again.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.node import Apply, Constant, Expression, Leaf, as_data, as_expression
from hcmodel.expressions.shapes import Shape, as_shape

__all__ = [
    "Apply",
    "Constant",
    "Constraint",
    "Expression",
    "Leaf",
    "Parameter",
    "Variable",
    "as_expression",
]

_unnamed = itertools.count()

# A matrix this near to its transpose, relative to its size, differs from it by rounding.
ASYMMETRY = 1e-9


class Variable(Leaf):
    """An unknown array.

    `bounds` is a pair (lower, upper) of scalars or arrays, None being infinite. `pos` and `nonneg`
    fold into the lower bound (`pos` also promises that 0 itself is never needed). `symmetric`,
    `PSD` and `simplex` are kinds of domain, kept in `domain_kind`: "box", "symmetric", "psd" or
    "simplex"; `eigenvalue_bounds` belongs to "psd".
    """

    __slots__ = (
        "_value",
        "_value_origin",
        "domain_kind",
        "eigenvalue_bounds",
        "lower",
        "name",
        "pos",
        "start",
        "upper",
    )
    is_variable = True

    def __init__(
        self,
        shape: Any = (),
        name: str | None = None,
        *,
        bounds: Any = None,
        start: Any = None,
        nonneg: bool = False,
        pos: bool = False,
        symmetric: bool = False,
        PSD: Any = False,
        simplex: bool = False,
    ) -> None:
        self.name = _checked_name(name, "variable") or f"var{next(_unnamed)}"
        self._shape = as_shape(shape, f"variable '{self.name}'")
        self.pos = bool(pos)
        self.lower, self.upper = self._checked_bounds(bounds, nonneg or pos)
        self.eigenvalue_bounds = self._checked_eigenvalue_bounds(PSD)
        self.domain_kind = self._checked_kind(bool(symmetric), bool(simplex))
        self.start = self._checked_start(start)
        self._value: np.ndarray | None = None
        self._value_origin: str | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether any entry has a bound of its own."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @property
    def value(self) -> np.ndarray | None:
        """The value that the user set or the last solve wrote."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._write(value, "user")

    def _write(self, value: Any, origin: str) -> None:
        """Set the value; `origin` is "user" or "solve", which decides whether it is a start."""
        if value is None:
            self._value = self._value_origin = None
        else:
            self._value = self._checked_value(value, "value of variable")
            self._value_origin = origin

    def _checked_value(self, value: Any, what: str) -> np.ndarray:
        what = f"the {what} '{self.name}'"
        return self.fitting(_fitted(as_data(value, what), self._shape, what), what)

    def _checked_start(self, start: Any) -> np.ndarray | None:
        if start is None:
            return None
        what = f"the start of variable '{self.name}'"
        array = _fitted(as_data(start, what), self._shape, what, spread=True)
        return self.fitting(array, what)

    def _checked_bounds(self, bounds: Any, nonneg: bool) -> tuple[np.ndarray, np.ndarray]:
        if bounds is None:
            bounds = (None, None)
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise ModelError(
                f"bounds of variable '{self.name}' are a pair (lower, upper), None being "
                f"infinite; got {bounds!r}"
            )
        sides = []
        for side, bound, infinity in zip(
            ("lower", "upper"), bounds, (-np.inf, np.inf), strict=True
        ):
            what = f"the {side} bound of variable '{self.name}'"
            array = as_data(infinity if bound is None else bound, what, infinite=True)
            sides.append(_fitted(array, self._shape, what, spread=True))
        lower, upper = sides
        if nonneg:
            lower = np.asarray(np.maximum(lower, 0.0))
        empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
        if self.pos:
            empty |= upper <= 0.0
        if empty.any():
            entry = tuple(int(i) for i in np.argwhere(empty)[0])
            label = self.name + (str(list(entry)) if entry else "")
            raise ModelError(
                f"variable '{self.name}' has an empty box at {label}: lower {lower[entry]:g}, "
                f"upper {upper[entry]:g}; make lower <= upper"
            )
        lower.flags.writeable = upper.flags.writeable = False
        return lower, upper

    def _checked_eigenvalue_bounds(self, psd: Any) -> tuple[float, float] | None:
        if psd is None or (isinstance(psd, (bool, np.bool_)) and not psd):
            return None
        pair = psd if isinstance(psd, (tuple, list)) else (psd, np.inf)
        numbers = [0.0 if bound is True else _as_number(bound) for bound in pair]
        if len(numbers) != 2 or not 0.0 <= numbers[0] <= numbers[1] or np.isinf(numbers[0]):
            raise ModelError(
                f"PSD of variable '{self.name}' is True, a smallest eigenvalue >= 0, or a pair "
                f"(smallest, largest) in order; got {psd!r}"
            )
        return numbers[0], numbers[1]

    def _checked_kind(self, symmetric: bool, simplex: bool) -> str:
        matrix = symmetric or self.eigenvalue_bounds is not None
        if matrix and simplex:
            raise ModelError(f"variable '{self.name}' cannot be a matrix cone and a simplex")
        if matrix and (self.ndim != 2 or self._shape[0] != self._shape[1] or not self.size):
            raise ModelError(
                f"variable '{self.name}' is symmetric or PSD and needs a square shape (n, n) with "
                f"n >= 1, not {self._shape}"
            )
        if simplex and (self.ndim == 0 or self._shape[-1] == 0):
            raise ModelError(
                f"variable '{self.name}' is a simplex and needs a last axis to sum over; its "
                f"shape is {self._shape}"
            )
        if simplex:
            conflict = simplex_conflict(self.lower, self.upper)
            if conflict is not None:
                row, reason = conflict
                where = f"row {list(row)} of variable" if row else "variable"
                raise ModelError(f"{where} '{self.name}' is in a simplex, but {reason}")
            return "simplex"
        if matrix:
            self.lower, self.upper = self._symmetric_bounds()
        if self.eigenvalue_bounds is not None:
            return "psd"
        return "symmetric" if symmetric else "box"

    def _symmetric_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Entries (i, j) and (j, i) are one number, so the tighter bounds hold for both."""
        lower = np.maximum(self.lower, self.lower.T)
        upper = np.minimum(self.upper, self.upper.T)
        if (lower > upper).any():
            i, j = (int(place) for place in np.argwhere(lower > upper)[0])
            raise ModelError(
                f"variable '{self.name}' is symmetric, but its bounds at {[i, j]} and {[j, i]} leave no "
                f"number: lower {lower[i, j]:g}, upper {upper[i, j]:g}"
            )
        lower.flags.writeable = upper.flags.writeable = False
        return lower, upper

    def fitting(self, array: np.ndarray, what: str) -> np.ndarray:
        """The array, made symmetric where the variable is and only rounding stands in the way."""
        if self.domain_kind not in ("symmetric", "psd"):
            return array
        differences = np.abs(array - array.T)
        largest = float(differences.max())
        if largest > ASYMMETRY * max(1.0, float(np.abs(array).max())):
            i, j = (int(place) for place in np.unravel_index(differences.argmax(), array.shape))
            raise DataError(
                f"{what} is not symmetric, but the variable is: entry {[i, j]} is {array[i, j]:g} and "
                f"entry {[j, i]} is {array[j, i]:g}; give (M + M.T) / 2 if that is what you mean"
            )
        return np.asarray(0.5 * (array + array.T)) if largest else array

    def __repr__(self) -> str:
        return f"Variable({self._shape}, name={self.name!r})"


class Parameter(Leaf):
    """Data that may change between solves; `version` grows each time it does."""

    __slots__ = ("_value", "name", "nonneg", "pos", "version")
    is_parameter = True

    def __init__(
        self,
        shape: Any = (),
        name: str | None = None,
        value: Any = None,
        pos: bool = False,
        nonneg: bool = False,
    ) -> None:
        self.name = _checked_name(name, "parameter") or f"param{next(_unnamed)}"
        self._shape: Shape = as_shape(shape, f"parameter '{self.name}'")
        self.pos = bool(pos)
        self.nonneg = bool(nonneg)
        self.version = 0
        self._value: np.ndarray | None = None
        if value is not None:
            self.value = value

    @property
    def value(self) -> np.ndarray | None:
        """The current data, read-only; assign a new array to change it."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if value is not None:
            what = f"the value of parameter '{self.name}'"
            value = _fitted(as_data(value, what), self._shape, what)
            if self.pos and not (value > 0.0).all():
                raise DataError(f"{what} must be positive; its smallest entry is {value.min():g}")
            if self.nonneg and not (value >= 0.0).all():
                raise DataError(f"{what} must be >= 0; its smallest entry is {value.min():g}")
            value.flags.writeable = False
        self._value = value
        self.version += 1

    def __repr__(self) -> str:
        return f"Parameter({self._shape}, name={self.name!r})"


def simplex_conflict(lower: np.ndarray, upper: np.ndarray) -> tuple[tuple[int, ...], str] | None:
    """The first row that no distribution within the bounds exists for, and why; None if all have one."""
    low, high = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    least, most = low.sum(axis=-1), high.sum(axis=-1)
    slack = 1e-14 * lower.shape[-1]
    for kind, wrong in (
        ("entry", (low > high).any(axis=-1)),
        ("lower", least > 1.0 + slack),
        ("upper", most < 1.0 - slack),
    ):
        if not np.any(wrong):
            continue
        row = tuple(int(place) for place in np.argwhere(wrong)[0])
        if kind == "entry":
            return row, "one of its bounds leaves no number between 0 and 1"
        total = float(least[row] if kind == "lower" else most[row])
        side = "more" if kind == "lower" else "less"
        return row, f"its {kind} bounds sum to {total:g}, {side} than 1"
    return None


def _as_number(value: Any) -> float:
    """The number that was given, NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _checked_name(name: Any, what: str) -> str | None:
    if name is not None and (not isinstance(name, str) or not name):
        raise ModelError(f"the name of a {what} is a non-empty string, not {name!r}")
    return name


def _fitted(array: np.ndarray, shape: Shape, what: str, *, spread: bool = False) -> np.ndarray:
    """`array` with `shape`, or an error; `spread` broadcasts where numpy would."""
    if array.shape == shape:
        return array
    if spread:
        try:
            return np.broadcast_to(array, shape).copy()
        except ValueError:
            pass
    raise DataError(f"{what} has shape {array.shape}, but shape {shape} is needed")
