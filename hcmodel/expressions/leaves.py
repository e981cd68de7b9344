"""What models are written with: variables, parameters, constants, expressions, constraints.

Variables and parameters are the two leaves with a state of their own: a variable has a set and a value
that either the user or a solve wrote, a parameter is data that may change between solves without
compiling again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.arguments import as_flag
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.foreign_habits import (
    PARAMETER,
    VARIABLE,
    refuse_arguments,
)
from hcmodel.expressions.labels import Labels, in_order
from hcmodel.expressions.node import Apply, Constant, Expression, Leaf, as_data, as_expression
from hcmodel.expressions.shapes import MOST_SPARSE, Shape, as_shape
from hcmodel.expressions.sparse_data import Numbers, extremes, frozen
from hcmodel.expressions.variable_sets import (
    BoxSet,
    SemidefiniteSet,
    SimplexSet,
    SymmetricSet,
    VariableSet,
)
from hcmodel.solvers.algebra.marks import some

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
# Bounds that a message shows.
MOST_SHOWN = 4


class Variable(Leaf):
    """An unknown array of this shape; () is a single number.

    `bounds` is a pair (lower, upper) of numbers or arrays; None is infinite. `pos=True` means > 0 and
    allows logarithms as coordinates; `nonneg=True` means >= 0. `symmetric=True` makes a symmetric
    matrix, `PSD=True` a positive semidefinite one; `PSD=1e-3` and `PSD=(1e-3, 1e3)` bound its
    eigenvalues. `simplex=True` makes distributions along the last axis. `start` is where solves begin. ::

        x = hc.Variable(2, name="x", bounds=(0.4, 3))
        P = hc.Variable((3, 3), name="P", PSD=1e-3)
        policy = hc.Variable((states, actions), name="policy", simplex=True)

    After a solve `x.value` is the value at the solution.
    """

    __slots__ = ("_entries", "_value", "_value_origin", "labels", "name", "set", "start")
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
        **foreign: Any,
    ) -> None:
        if foreign:
            refuse_arguments(VARIABLE, foreign, "hc.Variable", Variable)
        _refuse_name(shape, "hc.Variable")
        if all(isinstance(each, (int, np.integer)) for each in (shape, name)):  # as in CVXPY
            raise ModelError(
                f"a name is text, and the shape is one argument: hc.Variable(({shape}, {name}))"
            )
        self.name = _checked_name(name, "variable") or f"var{next(_unnamed)}"
        self._shape = as_shape(shape, f"variable '{self.name}'")
        self.labels: Labels | None = None
        named = {"nonneg": nonneg, "pos": pos, "symmetric": symmetric, "simplex": simplex}
        flags = {key: as_flag(given, key) for key, given in named.items()}
        self.set = self._checked_set(bounds, psd=PSD, **flags)
        self.start = self._checked_start(start)
        self._value: np.ndarray | None = None
        self._value_origin: str | None = None
        self._entries: dict[int, Expression] = {}

    def __getitem__(self, key: Any) -> Expression:
        if type(key) is not int:
            return super().__getitem__(key)
        entry = self._entries.get(key)  # models built in loops ask for each many times
        if entry is None:
            entry = self._entries[key] = super().__getitem__(key)
        return entry

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Without the entries, which refer to the variable."""
        names = ("_shape", *self.__slots__)
        return None, {**{name: getattr(self, name) for name in names}, "_entries": {}}

    @property
    def lower(self) -> np.ndarray:
        """The lower bounds of the entries, −∞ where there is none."""
        return self.set.lower

    @property
    def upper(self) -> np.ndarray:
        """The upper bounds of the entries, ∞ where there is none."""
        return self.set.upper

    @property
    def pos(self) -> bool:
        """Whether the variable was declared to be positive."""
        return self.set.pos

    @property
    def eigenvalue_bounds(self) -> tuple[float, float] | None:
        """The smallest and largest eigenvalue of a PSD variable, None of others."""
        return self.set.eigenvalue_bounds

    @property
    def has_bounds(self) -> bool:
        """Whether any entry has a bound of its own."""
        return self.set.has_bounds

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
        value = in_order(value, self.labels, what)
        return self.set.fitting(_fitted(as_data(value, what), self._shape, what), what)

    def _checked_start(self, start: Any) -> np.ndarray | None:
        if start is None:
            return None
        what = f"the start of variable '{self.name}'"
        start = in_order(start, self.labels, what)
        array = _fitted(as_data(start, what), self._shape, what, spread=True)
        return self.set.fitting(array, what)

    def _checked_set(
        self, bounds: Any, *, nonneg: bool, pos: bool, symmetric: bool, psd: Any, simplex: bool
    ) -> VariableSet:
        lower, upper = self._checked_bounds(bounds, nonneg or pos, pos)
        eigenvalues = self._checked_eigenvalue_bounds(psd)
        common = (self.name, self._shape, lower, upper, pos)
        if simplex and (symmetric or eigenvalues is not None):
            raise ModelError(f"variable '{self.name}' cannot be a matrix cone and a simplex")
        if simplex:
            return SimplexSet(*common)
        if eigenvalues is not None:
            return SemidefiniteSet(*common, eigenvalues)
        return SymmetricSet(*common) if symmetric else BoxSet(*common)

    def _checked_bounds(
        self, bounds: Any, nonneg: bool, pos: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        if bounds is None:
            bounds = (None, None)
        if isinstance(bounds, (tuple, list)):
            _refuse_pairs(bounds, self._shape, self.name)
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
            if isinstance(bound, Expression) and bound.variables():
                raise ModelError(f"{what} is a number or an array; write a constraint for {bound}")
            array = as_data(infinity if bound is None else bound, what, infinite=True)
            sides.append(_fitted(array, self._shape, what, spread=True))
        lower, upper = sides
        if nonneg:
            lower = np.asarray(np.maximum(lower, 0.0))
        empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
        if pos:
            empty |= upper <= 0.0
        if some(empty):
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

    def __repr__(self) -> str:
        return f"Variable({self._shape}, name={self.name!r})"


class Parameter(Leaf):
    """Data that may change between solves, without a new compilation. ::

        cap = hc.Parameter(name="cap", value=1.0)
        problem.solve()
        cap.value = 2.0
        problem.solve()

    `pos=True` and `nonneg=True` promise a sign, which proofs may use. `version` counts the changes.
    """

    __slots__ = ("_value", "labels", "name", "nonneg", "pos", "version")
    is_parameter = True

    def __init__(
        self,
        shape: Any = (),
        name: str | None = None,
        value: Any = None,
        pos: bool = False,
        nonneg: bool = False,
        **foreign: Any,
    ) -> None:
        if foreign:
            refuse_arguments(PARAMETER, foreign, "hc.Parameter", Parameter)
        _refuse_name(shape, "hc.Parameter")
        self.name = _checked_name(name, "parameter") or f"param{next(_unnamed)}"
        self._shape: Shape = as_shape(shape, f"parameter '{self.name}'", MOST_SPARSE)
        self.labels: Labels | None = None
        self.pos = as_flag(pos, "pos")
        self.nonneg = as_flag(nonneg, "nonneg")
        self.version = 0
        self._value: Numbers | None = None
        if value is not None:
            self.value = value

    @property
    def value(self) -> Numbers | None:
        """The current data, read-only; assign a new array, dense or sparse, to change it."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if value is not None:
            what = f"the value of parameter '{self.name}'"
            value = in_order(value, self.labels, what)
            value = frozen(_fitted(as_data(value, what, sparse=True), self._shape, what))
            smallest = extremes(value)[0] if self.size else np.inf
            if self.pos and not smallest > 0.0:
                raise DataError(f"{what} must be positive; its smallest entry is {smallest:g}")
            if self.nonneg and not smallest >= 0.0:
                raise DataError(f"{what} must be >= 0; its smallest entry is {smallest:g}")
        self._value = value
        self.version += 1

    def __repr__(self) -> str:
        return f"Parameter({self._shape}, name={self.name!r})"


def _as_number(value: Any) -> float:
    """The number that was given, NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _refuse_name(shape: Any, called: str) -> None:
    """Raise where the name is the first argument, as in GPkit."""
    if isinstance(shape, str):
        raise ModelError(
            f"the first argument of {called} is the shape: write {called}(name={shape!r}), or "
            f"{called}(n, name={shape!r}) for a vector"
        )


def _refuse_pairs(bounds: Sequence[Any], shape: Shape, name: str) -> None:
    """Raise where bounds are pairs, one for each entry, as in scipy.

    Two tuples for two entries may be a pair for each entry, or the lower and the upper bounds.
    """
    pairs = [each for each in bounds if isinstance(each, (tuple, list)) and len(each) == 2]
    if not pairs or len(pairs) != len(bounds) or shape != (len(pairs),):
        return
    lower, upper = (_listed([pair[side] for pair in pairs]) for side in (0, 1))
    if len(pairs) != 2:
        raise ModelError(
            f"bounds of variable '{name}' are a pair of all lower and all upper bounds, and not a pair "
            f"for each entry: write bounds=({lower}, {upper})"
        )
    if all(isinstance(pair, tuple) for pair in pairs):
        first, second = map(_listed, pairs)
        raise ModelError(
            f"bounds of variable '{name}' can be read in two ways: for a pair (lower, upper) for each "
            f"entry, as in scipy, write bounds=({lower}, {upper}); for the lower bounds {first} and the "
            f"upper bounds {second}, write bounds=({first}, {second})"
        )


def _listed(values: Sequence[Any]) -> str:
    """A list as it is written, cut where it is long."""
    shown = [repr(value) for value in values[:MOST_SHOWN]]
    return f"[{', '.join([*shown, '…'] if len(values) > MOST_SHOWN else shown)}]"


def _checked_name(name: Any, what: str) -> str | None:
    if name is not None and (not isinstance(name, str) or not name):
        raise ModelError(f"the name of a {what} is a non-empty string, not {name!r}")
    return name


def _fitted(array: np.ndarray, shape: Shape, what: str, *, spread: bool = False) -> np.ndarray:
    """`array` with `shape`, or an error; `spread` broadcasts where numpy would."""
    if array.shape == shape:
        return array
    if spread and not array.shape:
        return np.full(shape, array)
    if spread:
        try:
            return np.broadcast_to(array, shape).copy()
        except ValueError:
            pass
    raise DataError(f"{what} has shape {array.shape}, but shape {shape} is needed")
